"""Any mix of a Transformer's choices works: all pairs of choices in a few models, and many drawn at random.

Each model is held to: a step gives the numbers of the full pass, a later token changes nothing before it,
padding changes nothing real, and a saved model comes back the same.
"""

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from c_loader import run_signature
from references import randomize

import keras_seq2seq as ks
from keras_seq2seq import models

V, B = 13, 3
CHOICES: dict[str, tuple] = {
    "positions": ("sinusoidal", "learned", "rotary", "alibi", "relative", "none"),
    "activation": ("relu", "gelu", "swiglu", "geglu"),
    "num_key_value_heads": (4, 2, 1),
    "normalization": ("layer", "rms"),
    "placement": ("pre", "post"),
    "dropout": (0.0, 0.1),
    "policy": ("float32", "mixed_bfloat16"),
    "tie_embeddings": (True, False),
    "kind": ("seq2seq", "lm"),
}
SIZES = {"num_layers": 2, "model_dim": 16, "feed_forward_dim": 24, "num_heads": 4, "max_length": 32}
SOURCE = np.array([[5, 6, 7, 8, 9, 3], [10, 11, 3, 0, 0, 0], [3, 0, 0, 0, 0, 0]], "int32")
TARGET = np.random.default_rng(1).integers(4, V, (B, 7)).astype("int32")
TARGET[:, 0] = 2
PROMPTS = np.array([1, 3, 2])
GREEDY, BEAM = ks.search.Greedy(), ks.search.Beam(3)

Mix = dict[str, object]


def pairs_of(mix: Mix) -> set[tuple]:
    return set(itertools.combinations(mix.items(), 2))


def covering_mixes(seed: int = 0) -> list[Mix]:
    """Pick mixes, of many drawn always the one with the most new pairs, until every pair was in one."""
    draw = random.Random(seed)
    missing = {
        ((a, x), (b, y))
        for (a, xs), (b, ys) in itertools.combinations(CHOICES.items(), 2)
        for x, y in itertools.product(xs, ys)
    }
    mixes = []
    while missing:
        drawn = [{name: draw.choice(values) for name, values in CHOICES.items()} for _ in range(300)]
        best = max(drawn, key=lambda mix: len(pairs_of(mix) & missing))
        if new := pairs_of(best) & missing:
            missing -= new
            mixes.append(best)
    return mixes


MIXES = covering_mixes()


def label(part: Any) -> str:
    return "-".join(str(value) for value in part.values()) if isinstance(part, dict) else type(part).__name__


@pytest.fixture(autouse=True)
def _keep_policy() -> Iterator[None]:
    policy = keras.config.dtype_policy()
    yield
    keras.config.set_dtype_policy(policy)


def build(mix: Mix) -> keras.Model:
    options = dict(mix)
    keras.config.set_dtype_policy(options.pop("policy"))
    if options.pop("kind") == "seq2seq":
        model = models.transformer_seq2seq(V, **SIZES, **options)
    else:
        model = models.transformer_lm(V, **SIZES, **options)
    randomize(model, 0.3)
    return model


def inputs_of(model: keras.Model, target: np.ndarray, source: np.ndarray = SOURCE) -> dict[str, np.ndarray]:
    return {"source": source, "target": target} if hasattr(model, "encoder") else {"target": target}


def run(model: keras.Model, target: np.ndarray, source: np.ndarray = SOURCE) -> np.ndarray:
    return np.asarray(model(inputs_of(model, target, source), training=False))


def check_step(model: keras.Model, full: np.ndarray, tolerance: float) -> None:
    """Prompts of unequal length, two hypotheses that swap places at every step."""
    prompts = np.where(np.arange(3) < PROMPTS[:, None], TARGET[:, :3], 0)
    state = model.start(inputs_of(model, prompts), 4, 2)
    carry, token = state.carry, np.repeat(np.asarray(state.token), 2)
    for index in range(4):
        logits, carry = model.step(token, np.int32(index), carry, state.context)
        rows = np.asarray(logits).reshape(B, 2, V)
        expected = full[np.arange(B), PROMPTS - 1 + index]
        np.testing.assert_allclose(rows[:, 0], expected, atol=tolerance)
        np.testing.assert_allclose(rows[:, 1], expected, atol=tolerance)
        carry = model.reorder(carry, np.array([[1, 0]] * B, "int32"))
        token = np.repeat(TARGET[np.arange(B), PROMPTS + index], 2)


def check(mix: Mix, path: Path) -> None:
    model = build(mix)
    full = run(model, TARGET)
    tolerance = float(np.abs(full).max()) * (1e-5 if mix["policy"] == "float32" else 0.06)
    assert full.dtype == np.float32
    assert np.isfinite(full).all()
    check_step(model, full, tolerance)
    later = TARGET.copy()
    later[:, 4:] = (later[:, 4:] + 3) % (V - 4) + 4
    assert np.abs(run(model, later)[:, 4:] - full[:, 4:]).max() > tolerance
    np.testing.assert_allclose(run(model, later)[:, :4], full[:, :4], atol=tolerance)
    pads = np.zeros((B, 3), "int32")
    padded = run(model, np.concatenate([TARGET, pads], 1), np.concatenate([SOURCE, pads], 1))
    np.testing.assert_allclose(padded[:, :7], full, atol=tolerance)
    model.save(path)
    np.testing.assert_array_equal(run(keras.saving.load_model(path), TARGET), full)


def test_the_mixes_are_few() -> None:
    """About as many as the two longest lists of choices multiply to."""
    assert len(MIXES) <= 32


@pytest.mark.parametrize("mix", MIXES, ids=label)
def test_all_pairs_of_choices(mix: Mix, tmp_path: Path) -> None:
    check(mix, tmp_path / "model.keras")


def exported_mixes() -> list[Mix]:
    """An encoder-decoder and a language model in float32, each with another encoding of positions."""
    chosen: dict[object, Mix] = {}
    for kind in ("seq2seq", "lm"):
        fitting = [mix for mix in MIXES if mix["kind"] == kind and mix["policy"] == "float32"]
        new = next(mix for mix in fitting if mix["positions"] not in chosen)
        chosen[new["positions"]] = new
    return list(chosen.values())


def check_export(mix: Mix, directory: Path, *strategies: Any) -> None:
    """Compare with memory, through TensorFlow's C interface with XLA off."""
    letters = ks.text.Characters.build("abcdefghi")  # with the control ids as many as V
    texts = ["abc", "h", "ihgfedc"]
    for number, strategy in enumerate(strategies):
        model = build(mix)
        if mix["kind"] == "seq2seq":
            served = ks.Translator(model, letters, strategy=strategy, max_length=12, max_source_length=12)
            name = "translation"
        else:
            served = ks.Generator(model, letters, strategy, max_new_tokens=9)
            name = "completion"
        path = served.export(directory / str(number), samples=texts[:1])
        assert run_signature(path, "serving_default", {"text": texts})[name] == served(texts)


@pytest.mark.parametrize(
    ("mix", "strategy"), list(zip(exported_mixes(), [BEAM, GREEDY], strict=True)), ids=label
)
def test_exported_mixes_answer_as_in_memory(mix: Mix, strategy: Any, tmp_path: Path) -> None:
    check_export(mix, tmp_path, strategy)


def test_what_is_exported_are_two_mixes() -> None:
    assert [mix["kind"] for mix in exported_mixes()] == ["seq2seq", "lm"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(150))
def test_mixes_drawn_at_random(seed: int, tmp_path: Path) -> None:
    """Every tenth is exported, too; in float32, as ties in half precision may fall either way."""
    draw = random.Random(1000 + seed)
    mix = {name: draw.choice(values) for name, values in CHOICES.items()}
    check(mix, tmp_path / "model.keras")
    if seed % 10 == 0:
        check_export({**mix, "policy": "float32"}, tmp_path, GREEDY, BEAM)
