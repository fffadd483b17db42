"""The k largest by blocks: exactly those of a stable sort, ties and infinities included."""

import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from scripted import EOS, ScriptedModel, found, plain_beam, run, tables

from keras_seq2seq.search import Beam, Greedy, MinimumLength, NoRepeatedNgram, Sampling
from keras_seq2seq.search.top_k import top_k

# Divided by some block size, a prime, and so few that nothing is done by blocks.
VOCABULARIES = [1024, 2000, 4099, 30522, 50]


def logits(kind: str, vocabulary: int) -> np.ndarray:
    """Draw `[2, 3, V]`: all different, hardly any different, or nearly all ruled out."""
    generator = np.random.default_rng(vocabulary)
    drawn = generator.normal(size=(2, 3, vocabulary)).astype("float32")
    if kind == "ties":
        return np.round(drawn)
    if kind == "banned":
        drawn[generator.random(drawn.shape) < 1 - 8 / vocabulary] = -1e9
        drawn[:, 1][generator.random(drawn[:, 1].shape) < 0.5] = -np.inf
        drawn[1, 2] = -np.inf
    return drawn


@pytest.mark.parametrize("mode", ["eager", "graph", "xla"])
@pytest.mark.parametrize("kind", ["different", "ties", "banned"])
@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_equals_a_stable_sort(vocabulary: int, kind: str, mode: str) -> None:
    x = logits(kind, vocabulary)
    for k in (1, 10, 16) if mode == "eager" else (1, 10):

        def call(x: tf.Tensor, k: int = k) -> tuple:
            return top_k(x, k)

        if mode != "eager":
            signature = [tf.TensorSpec([2 if mode == "xla" else None, 3, vocabulary])]
            call = tf.function(call, signature, autograph=False, jit_compile=mode == "xla")
        values, ids = (part.numpy() for part in call(tf.constant(x)))
        expected = np.argsort(-x, axis=-1, kind="stable")[..., :k]
        assert ids.dtype == "int32"
        np.testing.assert_array_equal(ids, expected)
        np.testing.assert_array_equal(values, np.take_along_axis(x, expected, -1))


@pytest.mark.parametrize("mode", ["graph", "xla"])
def test_searches_over_a_large_vocabulary(mode: str) -> None:
    """The beam and the greedy search by blocks are those of the plain beam."""
    table = tables(3, 1200, seed=9)
    table[..., EOS] += 6.0
    model, source = ScriptedModel(table), np.arange(3, dtype="int32")[:, None]
    beam = run(mode, model, source, Beam(4, n_best=4), max_length=5)
    greedy = run(mode, model, source, Greedy(), max_length=5)
    for row in range(3):
        assert [h.tokens for h in found(beam, row)] == [h.tokens for h in plain_beam(model, row, 4, 5)[:4]]
        assert found(greedy, row)[0].tokens == plain_beam(model, row, 1, 5)[0].tokens


@pytest.mark.parametrize(
    "strategy",
    [
        Greedy(),
        Beam(4),
        Beam(8, stop="bound"),
        Sampling(2),
        Sampling(top_k=40, top_p=0.9),
        Sampling(top_p=0.9),
    ],
    ids=repr,
)
def test_no_search_sorts_or_normalises_a_whole_vocabulary(strategy, monkeypatch) -> None:
    """Whatever sorts sees blocks alone, and log-probabilities are never computed for all tokens."""
    vocabulary, seen = 30000, []

    def recorded(name: str):
        original = getattr(ops, name)

        def call(x, *arguments, **options):
            seen.append(name)
            assert x.shape[-1] < vocabulary / 8, f"{name} of {x.shape}"
            return original(x, *arguments, **options)

        return call

    for name in ("top_k", "sort", "argsort", "argmax", "softmax", "log_softmax"):
        monkeypatch.setattr(ops, name, recorded(name))
    rules = [MinimumLength(2, EOS), NoRepeatedNgram(2)]
    model, source = ScriptedModel(np.zeros((2, 3, vocabulary), "float32")), np.zeros((2, 1), "int32")
    run("graph", model, source, strategy, max_length=3, constraints=rules)
    assert seen
