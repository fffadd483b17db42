"""The search over a real Transformer with random weights: rows, n-best lists, and another backend."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from references import log_softmax, randomize
from scripted import BOS, EOS, PAD, found

from keras_seq2seq.models import Seq2Seq, transformer_lm, transformer_seq2seq
from keras_seq2seq.search import Beam, Greedy, Sampling, SearchResult, search

LIMIT, ROWS, VOCABULARY = 12, 64, 23
STRATEGIES = {"greedy": Greedy(), "beam": Beam(5, n_best=5, length_penalty=0.6)}


@pytest.fixture(scope="module")
def model() -> Seq2Seq:
    model = transformer_seq2seq(
        VOCABULARY,
        size="tiny",
        num_layers=2,
        model_dim=16,
        feed_forward_dim=24,
        num_heads=4,
        num_key_value_heads=2,
        positions="rotary",
        tie_embeddings=False,
    )
    randomize(model, scale=0.2, seed=5)  # a draw whose outputs vary and end
    return model


@pytest.fixture(scope="module")
def sources() -> np.ndarray:
    """Make 64 sentences of 1 to 9 tokens, EOS in."""
    generator = np.random.default_rng(1)
    rows = np.zeros((ROWS, 9), "int32")
    for row in rows:
        length = generator.integers(0, 9)
        row[:length] = generator.integers(EOS + 1, VOCABULARY, length)
        row[length] = EOS
    return rows


@pytest.fixture(scope="module", params=STRATEGIES)
def decode(request: pytest.FixtureRequest, model: Seq2Seq):
    """Search in one graph for all shapes."""

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None, None], tf.int32)])
    def decode(source: tf.Tensor) -> SearchResult:
        return search(model, {"source": source}, STRATEGIES[request.param], max_length=LIMIT)

    return lambda source: SearchResult(*(part.numpy() for part in decode(source)))


@pytest.fixture(scope="module")
def together(decode, sources: np.ndarray) -> SearchResult:
    return decode(sources)


def trimmed(sources: np.ndarray) -> np.ndarray:
    return sources[:, : int((sources != PAD).sum(1).max())]


def assert_rows(part: SearchResult, whole: SearchResult, rows: slice) -> None:
    np.testing.assert_array_equal(part.tokens, whole.tokens[rows])
    np.testing.assert_array_equal(part.lengths, whole.lengths[rows])
    np.testing.assert_array_equal(part.finished, whole.finished[rows])
    np.testing.assert_allclose(part.scores, whole.scores[rows], atol=1e-4)


def test_the_sentences_differ_enough_to_tell(together: SearchResult) -> None:
    """Outputs vary and some end, or the tests below would prove nothing."""
    assert len(np.unique(together.tokens[:, 0], axis=0)) > ROWS // 3
    assert together.finished[:, 0].mean() > 0.1


@pytest.mark.parametrize("batch", [1, 7])
def test_a_row_does_not_depend_on_its_batch(decode, sources, together: SearchResult, batch: int) -> None:
    """Three sources of unlike lengths among them, so that each must read its own."""
    for start in range(0, 15 if batch == 1 else ROWS, batch):
        rows = slice(start, start + batch)
        assert_rows(decode(trimmed(sources[rows])), together, rows)


def test_a_row_does_not_depend_on_a_long_neighbour(decode, sources, together: SearchResult) -> None:
    neighbour = np.random.default_rng(2).integers(EOS + 1, VOCABULARY, (1, 200))
    wide = np.concatenate([np.pad(sources[:5], ((0, 0), (0, 191))), neighbour]).astype("int32")
    result = decode(wide)
    assert_rows(SearchResult(*(part[:5] for part in result)), together, slice(0, 5))


def test_n_best_are_distinct_and_sorted_and_well_formed(together: SearchResult) -> None:
    for row in range(ROWS):
        hypotheses = found(together, row)
        assert len({h.tokens for h in hypotheses}) == len(hypotheses)
        order = [(not h.finished, -h.score) for h in hypotheses]
        assert order == sorted(order)


def test_scores_are_those_of_teacher_forcing(model, sources, decode, together: SearchResult) -> None:
    """Each score is the sum of its tokens' log-probabilities, PAD and BOS out, by the documented rule."""
    for n in range(together.tokens.shape[1]):
        tokens, lengths = together.tokens[:, n], together.lengths[:, n]
        target = np.concatenate([np.full((ROWS, 1), BOS), tokens[:, :-1]], axis=1)
        logits = np.array(model({"source": sources, "target": target}))
        logits[..., [PAD, BOS]] = -np.inf
        steps = np.take_along_axis(log_softmax(logits), tokens[..., None], -1)[..., 0]
        total = np.where(np.arange(LIMIT) < lengths[:, None], steps, 0.0).sum(-1)
        power = 0.6 if together.tokens.shape[1] > 1 else 0.0
        np.testing.assert_allclose(together.scores[:, n], total / lengths**power, atol=1e-5 * LIMIT)


def test_a_prefix_is_continued_as_if_it_had_been_generated(model, sources) -> None:
    """Greedy finds y; from every prefix y[:k] it finds the rest, also with uneven prefixes in one batch."""
    inputs = {"source": tf.constant(sources[:8])}
    whole = search(model, inputs, Greedy(), max_length=LIMIT)
    tokens, lengths = np.asarray(whole.tokens)[:, 0], np.asarray(whole.lengths)[:, 0]
    for shift in range(3):
        given = [min(int(n) - 1, (row + shift) % 5) for row, n in enumerate(lengths)]
        target = np.zeros((8, 5), "int32")
        for row, k in enumerate(given):
            target[row, : k + 1] = [BOS, *tokens[row, :k]]
        rest = search(model, {**inputs, "target": target}, Greedy(), max_length=LIMIT)
        for row, k in enumerate(given):
            ours = np.asarray(rest.tokens)[row, 0]
            np.testing.assert_array_equal(ours[: LIMIT - k], tokens[row, k:])
            assert rest.lengths[row, 0] >= lengths[row] - k


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_unequal_prompts_of_a_language_model_equal_one_by_one(strategy) -> None:
    model = transformer_lm(
        VOCABULARY, preset="llama", num_layers=2, model_dim=16, num_heads=4, positions="alibi"
    )
    randomize(model, scale=0.2)
    target = np.random.default_rng(3).integers(4, VOCABULARY, (4, 9)).astype("int32")
    target[:, 0] = BOS
    lengths = [1, 9, 4, 6]
    for row, length in zip(target, lengths, strict=True):
        row[length:] = PAD
    limits = {"max_length": 8, "min_length": 5}
    together = search(model, {"target": target}, strategy, **limits)
    assert (np.asarray(together.lengths) >= 5).all(), "the prompt is not counted"
    for row, length in enumerate(lengths):
        alone = search(
            model, {"target": target[row : row + 1, :length]}, strategy, max_length=8, min_length=5
        )
        np.testing.assert_array_equal(alone.tokens[0], together.tokens[row])
        np.testing.assert_allclose(alone.scores[0], together.scores[row], atol=1e-4)


IN_JAX = """
import json, sys, jax, keras, numpy as np
assert keras.backend.backend() == "jax"
import keras_seq2seq as ks
assert "tensorflow" not in sys.modules
path, sources = sys.argv[1], np.array(json.load(sys.stdin), "int32")
model = keras.saving.load_model(path)
out = []
beam, sampling = ks.search.Beam(5, n_best=5, length_penalty=0.6), ks.search.Sampling(2, top_p=0.9, seed=5)
for strategy in (ks.search.Greedy(), beam, sampling):
    decode = jax.jit(lambda s: ks.search.search(model, {"source": s}, strategy, max_length=12))
    result = decode(sources)
    out.append([np.asarray(result.tokens).tolist(), np.asarray(result.scores).tolist()])
print(json.dumps(out))
"""


def test_jax_gives_the_same(model, sources, tmp_path: Path) -> None:
    """The same file, loaded on the other backend and compiled by it, decodes to the same tokens."""
    path = tmp_path / "model.keras"
    model.save(path)
    sources = sources[:16]
    done = subprocess.run(
        [sys.executable, "-c", IN_JAX, str(path)],
        input=json.dumps(sources.tolist()),
        env={**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for strategy, (tokens, scores) in zip(
        [*STRATEGIES.values(), Sampling(2, top_p=0.9, seed=5)],
        json.loads(done.stdout.splitlines()[-1]),
        strict=True,
    ):
        ours = search(model, {"source": tf.constant(sources)}, strategy, max_length=LIMIT)
        np.testing.assert_array_equal(ours.tokens, tokens)
        np.testing.assert_allclose(ours.scores, scores, atol=1e-4)
