"""A small model with random weights, two tokenizers, and one export of each strategy for all tests."""

import gzip
import random
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_seq2seq as ks

DATA = Path(__file__).parents[2] / "examples" / "data" / "tatoeba" / "train.en-cmn.tsv.gz"


@pytest.fixture(scope="session")
def pairs() -> list[list[str]]:
    """Three hundred pairs of sentences."""
    with gzip.open(DATA, "rt", encoding="utf-8") as file:
        return [next(file).split("\t")[:2] for _ in range(300)]


@pytest.fixture(scope="session")
def english(pairs) -> ks.text.SentencePiece:
    """A tokenizer without byte fallback, so that there are unknown characters."""
    return ks.text.SentencePiece.train([source for source, _ in pairs], vocabulary_size=400)


@pytest.fixture(scope="session")
def chinese(pairs) -> ks.text.SentencePiece:
    """A tokenizer of the other side."""
    return ks.text.SentencePiece.train([target for _, target in pairs], vocabulary_size=1000)


def random_model(source_size: int, target_size: int, seed: int = 1, **options) -> ks.models.Seq2Seq:
    """Make a Transformer whose output varies with its input and ends sooner or later.

    Weights are drawn wide; the last norm's shift and EOS' column of the output have one direction in common.
    """
    random.seed(seed)
    options = {"tie_embeddings": False, "dropout": 0.5, **options}
    model = ks.models.transformer_seq2seq(
        source_size, target_size, num_layers=2, model_dim=32, feed_forward_dim=64, num_heads=2, **options
    )
    return randomize(model, seed)


def randomize(model: keras.Model, seed: int, end: float = 0.2) -> keras.Model:
    """Draw the weights of a model of width 32 as `random_model` says; a larger `end` ends sooner."""
    rng = np.random.default_rng(seed)
    for weight in model.trainable_weights:
        spread = 1.6 * weight.shape[0] ** -0.5 if len(weight.shape) == 2 else 0.1
        weight.assign_add(rng.normal(0, spread, weight.shape))
    direction = rng.normal(0, 1, 32)
    model.decoder.final_norm.beta.assign(direction)
    kernel = model.decoder.output_dense.kernel.numpy()
    kernel[:, 3] = 0.6 * kernel[:, 3] + end * direction
    model.decoder.output_dense.kernel.assign(kernel)
    return model


def random_lm(size: int, seed: int = 1, end: float = 0.2, **options) -> ks.models.LanguageModel:
    """Make a language model of the same kind."""
    random.seed(seed)
    options = {"preset": "gpt2", "positions": "rotary", "tie_embeddings": False, "dropout": 0.5, **options}
    model = ks.models.transformer_lm(size, num_layers=2, model_dim=32, num_heads=2, **options)
    return randomize(model, seed, end)


@pytest.fixture(scope="session")
def make_lm() -> Callable[..., keras.Model]:
    """Give `random_lm`."""
    return random_lm


@pytest.fixture(scope="session")
def make_model() -> Callable[..., keras.Model]:
    """Give `random_model`."""
    return random_model


@pytest.fixture(scope="session")
def model(english, chinese) -> keras.Model:
    """The model of most tests, with a dropout of one half."""
    return random_model(english.vocabulary_size, chinese.vocabulary_size)


@pytest.fixture(scope="session")
def texts(pairs) -> list[str]:
    """Varied texts: empty, blank, one token, 200 tokens, unknown characters, other scripts, emoji."""
    sources = [source for source, _ in pairs]
    return [
        *sources[:20], "", " ", "\u3000\t", "a", "I", "I I", "\u2603", "a\u2603b", " leading", "trailing ",
        "two  spaces", "café", "你好。", "Привет", "مرحبا", "😀🚀",
        "<s> </s> <pad> <unk>", "tab\tinside", "line\nbreak", "nul\x00inside", "\u2028", "\u200b", "x" * 60,
        " ".join(sources[20:50])[:570], sources[60] * 3,
    ]  # fmt: skip


@pytest.fixture(scope="session")
def greedy(model, english, chinese) -> ks.Translator:
    """A translator with greedy search."""
    return ks.Translator(model, english, chinese, ks.search.Greedy(), length_factor=1.0)


@pytest.fixture(scope="session")
def beam(model, english, chinese) -> ks.Translator:
    """A translator with a beam of 4."""
    return ks.Translator(model, english, chinese, ks.search.Beam(4), length_factor=1.0)


@pytest.fixture(scope="session")
def base(greedy, beam, tmp_path_factory) -> Path:
    """A base directory with two versions: 1 is greedy, 2 the beam."""
    directory = tmp_path_factory.mktemp("exports") / "base"
    assert greedy.export(directory) == str(directory / "1")
    assert beam.export(directory) == str(directory / "2")
    return directory
