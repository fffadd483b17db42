"""Sampling: its distribution, its cuts, and that a draw depends on seed, text, sample and step alone."""

import numpy as np
import pytest
import tensorflow as tf
from references import log_softmax
from scripted import BOS, EOS, PAD, ScriptedModel, run, tables

from keras_seq2seq.search import Greedy, Sampling, search
from keras_seq2seq.search.randomness import uniforms

V, ROWS, LIMIT = 12, 6, 8
MODEL = ScriptedModel(tables(ROWS, V, seed=5))
SOURCES = np.arange(ROWS)[:, None].astype("int32")


def one_step_model(logits: np.ndarray) -> ScriptedModel:
    return ScriptedModel(np.broadcast_to(logits.astype("float32"), (1, 997, len(logits))))


def first_tokens(logits: np.ndarray, strategy: Sampling) -> np.ndarray:
    """Draw one token many times, and count how often each came."""
    result = run("graph", one_step_model(logits), np.zeros((1, 1), "int32"), strategy, max_length=1)
    return np.bincount(result.tokens[0, :, 0], minlength=len(logits))


def nucleus(probabilities: np.ndarray, top_k: int | None, top_p: float | None) -> np.ndarray:
    """Cut and renormalise by sorting, as the papers describe it."""
    order = np.argsort(-probabilities)[: top_k or len(probabilities)]
    kept = probabilities[order] / probabilities[order].sum()
    size = 1 + int(np.searchsorted(np.cumsum(kept), top_p)) if top_p else len(order)
    cut = np.zeros_like(probabilities)
    cut[order[:size]] = kept[:size]
    return cut / cut.sum()


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(("top_k", "top_p"), [(None, None), (4, None), (None, 0.7), (6, 0.8)])
def test_tokens_come_as_often_as_they_should(temperature: float, top_k: int | None, top_p: float | None):
    logits = np.random.default_rng(3).normal(0, 1.5, V)
    count = 20000
    strategy = Sampling(count, temperature=temperature, top_k=top_k, top_p=top_p, seed=1)
    seen = first_tokens(logits, strategy)
    scaled = logits / temperature
    scaled[[PAD, BOS]] = -np.inf
    expected = nucleus(np.exp(log_softmax(scaled)), top_k, top_p)
    assert not seen[expected == 0].any()
    deviation = np.sqrt(count * expected * (1 - expected)) + 1e-9
    assert (np.abs(seen - count * expected) < 5 * deviation + 1).all()


@pytest.mark.parametrize(
    "strategy",
    [Sampling(top_k=1, seed=1), Sampling(top_p=1e-9, seed=1), Sampling(temperature=1e-6, seed=1)],
    ids=["top_k", "top_p", "temperature"],
)
def test_the_narrowest_settings_are_greedy(strategy: Sampling) -> None:
    greedy = run("graph", MODEL, SOURCES, Greedy(), max_length=LIMIT)
    sampled = run("graph", MODEL, SOURCES, strategy, max_length=LIMIT)
    np.testing.assert_array_equal(sampled.tokens, greedy.tokens)
    np.testing.assert_allclose(sampled.scores, greedy.scores, atol=1e-5)


@pytest.mark.parametrize("strategy", [Sampling(3, seed=7), Sampling(3, temperature=0.7, top_p=0.9, seed=7)])
def test_scores_are_those_of_the_model_and_results_are_in_order(strategy: Sampling) -> None:
    result = run("graph", MODEL, SOURCES, strategy, max_length=LIMIT, min_length=2)
    for row in range(ROWS):
        order = [
            (not done, -score) for done, score in zip(result.finished[row], result.scores[row], strict=True)
        ]
        assert order == sorted(order)
        for tokens, length, score, finished, _ in zip(*(part[row] for part in result), strict=True):
            kept = tokens[:length].tolist()
            assert (kept[-1] == EOS) == finished
            assert (tokens[length:] == PAD).all()
            assert PAD not in kept
            assert BOS not in kept
            assert EOS not in kept[:-1]
            steps = [MODEL.log_probabilities(row, kept[:i], 2)[token] for i, token in enumerate(kept)]
            assert score == pytest.approx(sum(steps), abs=1e-4)


@pytest.mark.parametrize("shift", [0.0, -700.0, 1e4])
@pytest.mark.parametrize("temperature", [1e-3, 1e-9, 1e-30, 1e-300])
def test_towards_a_temperature_of_0_the_best_token_wins(temperature: float, shift: float) -> None:
    """Wherever the logits lie: those of a model that ends in a log-softmax are all below 0."""
    model = ScriptedModel(tables(ROWS, V, seed=5) + np.float32(shift))
    cold = run("graph", model, SOURCES, Sampling(temperature=temperature, seed=1), max_length=LIMIT)
    best = run("graph", model, SOURCES, Greedy(), max_length=LIMIT)
    np.testing.assert_array_equal(cold.tokens, best.tokens)


@pytest.mark.parametrize("options", [{}, {"top_k": V}, {"top_p": 0.9999}])
def test_at_no_temperature_does_a_forbidden_token_come(options: dict) -> None:
    hot = run("graph", MODEL, SOURCES, Sampling(50, temperature=1e30, seed=1, **options), max_length=LIMIT)
    for row in range(ROWS):
        for tokens, length in zip(hot.tokens[row], hot.lengths[row], strict=True):
            assert not {PAD, BOS} & set(tokens[:length].tolist())


def test_the_same_seed_draws_the_same_in_every_mode() -> None:
    tf.random.normal(())  # another user of random numbers
    first = run("eager", MODEL, SOURCES, Sampling(2, seed=3), max_length=LIMIT)
    for mode in ("graph", "xla"):
        tf.random.normal(())
        again = run(mode, MODEL, SOURCES, Sampling(2, seed=3), max_length=LIMIT)
        np.testing.assert_array_equal(again.tokens, first.tokens)
    other = run("graph", MODEL, SOURCES, Sampling(2, seed=4), max_length=LIMIT)
    assert (other.tokens != first.tokens).any()


def test_without_a_seed_samples_differ() -> None:
    one, other = (run("eager", MODEL, SOURCES, Sampling(4), max_length=LIMIT).tokens for _ in range(2))
    assert (one != other).any()


def test_equal_sources_and_their_samples_differ() -> None:
    result = run("graph", MODEL, np.zeros((8, 1), "int32"), Sampling(4, seed=3), max_length=LIMIT)
    assert len({tuple(tokens) for tokens in result.tokens.reshape(-1, LIMIT).tolist()}) > 16


def test_a_draw_does_not_depend_on_the_batch_or_the_limit() -> None:
    strategy = Sampling(3, seed=11)
    seeds = np.asarray(strategy.row_seeds(np.arange(ROWS, dtype="int32")))
    together = run("graph", MODEL, SOURCES, strategy, max_length=LIMIT)
    for row in range(ROWS):
        inputs = {"source": SOURCES[row : row + 1]}
        alone = search(MODEL, inputs, strategy, max_length=LIMIT + 5, seeds=seeds[row : row + 1])
        done = together.finished[row]
        expected = sorted(together.tokens[row][done].tolist())
        got = [tokens[:LIMIT] for tokens in np.asarray(alone.tokens)[0].tolist()]
        assert all(tokens in got for tokens in expected)


def test_random_numbers_are_uniform_and_unrelated() -> None:
    numbers = np.asarray(uniforms(np.arange(64, dtype="int32"), 4, 256))
    assert numbers.min() >= 0
    assert numbers.max() < 1
    counts = np.histogram(numbers, 32, (0, 1))[0]
    expected = numbers.size / 32
    assert ((counts - expected) ** 2 / expected).sum() < 70  # chi-square with 31 degrees: 1e-4 beyond
    for axis in range(3):
        shifted = np.roll(numbers, 1, axis)
        assert abs(np.corrcoef(numbers.ravel(), shifted.ravel())[0, 1]) < 0.02
    assert len(np.unique(numbers)) > 0.99 * numbers.size


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *[
            ({name: value}, f"{name} must be {expected}, received {value!r}")
            for name, values, expected in (
                ("n", (0, 1.5, "3", True, None), "an integer of at least 1"),
                ("top_k", (0, 2.5, "3", True), "an integer of at least 1, or None"),
                ("top_p", (0.0, 1.5, "0.9", True, float("nan")), "above 0 and at most 1, or None"),
                ("seed", (1.5, "3", True), "an integer, or None"),
            )
            for value in values
        ],
        *[
            ({"temperature": value}, f"temperature must be a finite number above 0, received {value!r}")
            for value in (0.0, -1, float("nan"), float("inf"), "hot", None, True)
        ],
    ],
)
def test_impossible_values_are_named(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sampling(**options)
