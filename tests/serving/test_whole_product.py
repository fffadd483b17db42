"""Model families by searches, and by tokenizers, in the C loader with XLA off: the answers of memory."""

import random
from pathlib import Path
from typing import Any

import c_loader
import numpy as np
import pytest
import tensorflow as tf
from references import randomize
from tokenizer_kinds import LINES, MAKE

import keras_seq2seq as ks

TEXTS = [
    "the sea",
    "",
    "他住在",
    "s",
    "the quick brown fox sells 25 shells by the shore",
    "☃<s>\0",
    "lazy dog",
]
SEEDS = [5, 5, -5, 6, 2**50, 0, 1]
STRATEGIES: dict[str, Any] = {
    "greedy": ks.search.Greedy(),
    "beam": ks.search.Beam(3, length_penalty=0.6),
    "covering": ks.search.Beam(3, length_penalty=0.6, coverage_penalty=0.3),
    "sampling": ks.search.Sampling(2, temperature=0.7, top_p=0.9, seed=0),
}
FAMILIES = ("bahdanau", "luong", "no attention", "transformer", "language model")
RULES: dict[str, Any] = {"no_repeat_ngram": 3, "forbidden_tokens": [5]}


def make(family: str, tokenizer: ks.text.Tokenizer, strategy: Any) -> Any:
    """A translator or a generator with random weights that says various things of various length."""
    random.seed(4)
    size = tokenizer.vocabulary_size
    if family == "language model":
        model = ks.models.transformer_lm(size, num_layers=2, model_dim=16, feed_forward_dim=24, num_heads=2)
        randomize(model, 0.8, seed=4)
        return ks.Generator(model, tokenizer, strategy, max_new_tokens=12, min_new_tokens=2, **RULES)
    if family == "transformer":
        model = ks.models.transformer_seq2seq(
            size, num_layers=2, model_dim=16, feed_forward_dim=24, num_heads=2, tie_embeddings=False
        )
    else:
        attention = {"bahdanau": ks.layers.BahdanauAttention(8), "luong": ks.layers.LuongAttention("general")}
        options = {"input_feeding": False} if family == "luong" else {}
        model = ks.models.rnn_seq2seq(size, units=12, attention=attention.get(family), cell="gru", **options)
    randomize(model, 0.8, seed=4)
    return ks.Translator(model, tokenizer, strategy=strategy, max_length=12, min_length=2, **RULES)


def check(family: str, kind: str, strategy: str, directory: Path) -> None:
    """Ask for everything at once, for single texts and, with seeds, for samples."""
    served = make(family, MAKE[kind](LINES), STRATEGIES[strategy])
    path = served.export(directory / "base", samples=TEXTS[:1])
    requests: list = [("serving_default", {"text": TEXTS}), ("sample", {"text": TEXTS, "seed": SEEDS})]
    requests += [("serving_default", {"text": [text]}) for text in TEXTS]
    whole, drawn, *single = c_loader.run_signatures(path, requests)
    name = "completion" if family == "language model" else "translation"
    search = served.generate if name == "completion" else served.translate
    # Without a seed as input, each text is answered as if it were alone.
    found = [search([text])[0] for text in TEXTS] if strategy == "sampling" else search(TEXTS)
    expected = [hypotheses[0] for hypotheses in found]
    assert whole[name] == [each.text for each in expected]
    assert np.allclose(whole["score"], [each.score for each in expected], atol=1e-4)
    assert [answer[name][0] for answer in single] == whole[name]
    in_memory = served.sample(TEXTS, SEEDS)
    assert drawn[name] == [each.text for each in in_memory]
    assert np.allclose(drawn["score"], [each.score for each in in_memory], atol=1e-4)
    assert len(set(whole[name])) > 2
    check_saved_again(path, directory, requests[:1], whole)


def check_saved_again(path: str, directory: Path, requests: list, expected: dict[str, list]) -> None:
    """A user of the export may load it and save it again."""
    loaded = tf.saved_model.load(path)
    tf.saved_model.save(loaded, str(directory / "again"), signatures=loaded.signatures)
    assert c_loader.run_signatures(directory / "again", requests) == [expected]


def possible(family: str, strategy: str) -> bool:
    """A coverage penalty needs attention to a source."""
    return strategy != "covering" or family not in ("no attention", "language model")


# What other files of this folder do not export: see test_exported, test_generator_exported and
# test_sampling_exported.
FEW = [
    ("bahdanau", "sentence_piece", "greedy"),
    ("luong", "characters", "covering"),
    ("transformer", "words", "sampling"),
]
ALL = [
    (family, kind, strategy)
    for family in FAMILIES
    for kind in MAKE
    for strategy in STRATEGIES
    if possible(family, strategy)
]


@pytest.mark.parametrize(("family", "kind", "strategy"), FEW)
def test_a_few_exports_answer_as_in_memory(family: str, kind: str, strategy: str, tmp_path: Path) -> None:
    check(family, kind, strategy, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "kind", "strategy"), ALL)
def test_every_export_answers_as_in_memory(family: str, kind: str, strategy: str, tmp_path: Path) -> None:
    check(family, kind, strategy, tmp_path)
