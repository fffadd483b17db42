"""Every position encoding against a NumPy reference, and that each overrides only its own hook."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from references import alibi_slopes, rotary, sinusoids, t5_bucket

from keras_seq2seq.layers import (
    LearnedPositions,
    LinearBias,
    PositionalEmbedding,
    Positions,
    RelativeBias,
    RotaryPositions,
    SinusoidalPositions,
)

B, T, H, K, D = 2, 5, 3, 6, 7
AT = np.array([[0, 3, 1, 40, 7], [5, 0, 900, 2, 2]], "int32")  # [B, T]


@pytest.mark.parametrize("size", [7, 8])
def test_sinusoidal_adds_the_published_table(rng: np.random.Generator, size: int) -> None:
    x = rng.normal(size=(B, T, size)).astype("float32")
    layer = SinusoidalPositions()
    table = sinusoids(1000, size)
    np.testing.assert_allclose(layer.embed(x, AT), x + table[AT], atol=2e-4)  # 900 radians in float32
    np.testing.assert_allclose(layer(x), x + table[:T], atol=1e-5)


def test_sinusoidal_has_no_limit_and_a_base() -> None:
    x = np.zeros((1, 1, 4), "float32")
    assert SinusoidalPositions().max_length is None
    np.testing.assert_allclose(
        SinusoidalPositions(base=10.0).embed(x, np.array([[3]]))[0, 0], sinusoids(4, 4, 10.0)[3], atol=1e-6
    )


def test_learned_adds_a_row_of_its_table(rng: np.random.Generator) -> None:
    layer = LearnedPositions(1000)
    x = rng.normal(size=(B, T, D)).astype("float32")
    layer.build(x.shape)
    table = np.asarray(layer.table.embeddings)
    assert table.shape == (1000, D)
    assert table.std() > 0
    np.testing.assert_allclose(layer.embed(x, AT), x + table[AT], atol=1e-6)


def test_learned_limit_is_an_error_that_names_limit_and_length() -> None:
    layer = PositionalEmbedding(9, 4, "learned", max_length=16)
    assert layer(np.ones((1, 16), "int32")).shape == (1, 16, 4)
    with pytest.raises(ValueError, match=r"16.*17"):
        layer(np.ones((1, 17), "int32"))
    with pytest.raises(ValueError, match=r"16.*17"):  # while a function is traced
        tf.function(layer)(tf.ones((1, 17), tf.int32))


def test_rotary_turns_each_head_by_its_rows_positions(rng: np.random.Generator) -> None:
    x = rng.normal(size=(B, H, T, K))
    out = RotaryPositions().rotate(x.astype("float32"), AT)
    for b in range(B):
        np.testing.assert_allclose(out[b], rotary(x[b], list(AT[b])), atol=5e-4)


def test_rotary_scores_depend_on_distance_alone(rng: np.random.Generator) -> None:
    q, k = rng.normal(size=(2, 1, 1, 1, K)).astype("float32")
    layer = RotaryPositions()

    def score(i: int, j: int) -> float:
        return float(np.sum(np.asarray(layer.rotate(q, np.array([[i]])) * layer.rotate(k, np.array([[j]])))))

    assert score(9, 4) == pytest.approx(score(105, 100), abs=1e-4)
    assert abs(score(9, 4) - score(9, 5)) > 1e-3
    assert score(3, 3) == pytest.approx(float((q * k).sum()), abs=1e-5)


def test_rotary_needs_an_even_head_size() -> None:
    with pytest.raises(ValueError, match=r"even.*key_dim=5"):
        RotaryPositions().rotate(np.zeros((1, 1, 1, 5), "float32"), np.array([[0]]))


@pytest.mark.parametrize("heads", [1, 2, 3, 4, 6, 8, 12, 16, 20])
def test_linear_bias_is_minus_slope_times_distance(heads: int) -> None:
    queries, keys = np.array([[0, 4]]), np.array([[0, 1, 6], [9, 2, 4]])
    bias = LinearBias(heads).bias(queries, keys, bidirectional=True)
    slopes = np.array(alibi_slopes(heads))
    distance = np.abs(queries[:, :, None] - keys[:, None, :])
    np.testing.assert_allclose(bias, -slopes[None, :, None, None] * distance[:, None], rtol=1e-6)


def test_linear_bias_lets_weight_fall_with_distance_for_equal_keys() -> None:
    bias = np.asarray(LinearBias(4).bias(np.array([[9]]), np.arange(10)[None], bidirectional=False))
    weights = np.exp(bias) / np.exp(bias).sum(-1, keepdims=True)
    assert (np.diff(weights[0, :, 0], axis=-1) > 0).all()


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("buckets", "maximum"), [(32, 128), (8, 20)])
def test_relative_bias_uses_the_published_buckets(bidirectional: bool, buckets: int, maximum: int) -> None:
    layer = RelativeBias(H, num_buckets=buckets, max_distance=maximum)
    layer.build()
    layer.table.embeddings.assign(np.arange(buckets)[:, None] + np.array([[0, 100, 1000]]))
    queries = np.array([[150, 3]], "int32")
    keys = np.arange(300, dtype="int32")[None]
    bias = np.asarray(layer.bias(queries, keys, bidirectional))  # [1, H, 2, 300]
    assert bias.shape == (1, H, 2, 300)
    for t, query in enumerate(queries[0]):
        expected = [t5_bucket(int(key - query), bidirectional, buckets, maximum) for key in keys[0]]
        for h, shift in enumerate([0, 100, 1000]):
            np.testing.assert_array_equal(bias[0, h, t] - shift, expected)


def test_relative_buckets_are_the_same_under_xla() -> None:
    layer = RelativeBias(1)
    layer.build()
    layer.table.embeddings.assign(np.arange(32)[:, None])
    keys = tf.range(600)[None]

    def bias(keys: tf.Tensor) -> tf.Tensor:
        return layer.bias(tf.constant([[300]]), keys, bidirectional=True)

    compiled = tf.function(bias, jit_compile=True, autograph=False)
    np.testing.assert_array_equal(bias(keys), compiled(keys))


@pytest.mark.parametrize(
    ("make", "hook"),
    [
        (Positions, None),
        (SinusoidalPositions, "embed"),
        (lambda: LearnedPositions(50), "embed"),
        (RotaryPositions, "rotate"),
        (lambda: LinearBias(H), "bias"),
        (lambda: RelativeBias(H), "bias"),
    ],
)
def test_an_encoding_acts_through_one_hook(rng: np.random.Generator, make, hook: str | None) -> None:
    layer, at = make(), np.array([[1, 2, 3, 4, 5]], "int32")
    layer.build((B, T, K))
    x, heads = rng.normal(size=(B, T, K)), rng.normal(size=(B, H, T, K))
    acts = {
        "embed": not np.allclose(layer.embed(x.astype("float32"), at), x, atol=1e-6),
        "rotate": not np.allclose(layer.rotate(heads.astype("float32"), at), heads, atol=1e-6),
        "bias": layer.bias(at, at, bidirectional=True) is not None,
    }
    assert [name for name, does in acts.items() if does] == ([hook] if hook else [])


def test_positional_embedding_scales_by_the_root_of_the_size() -> None:
    ids = np.array([[4, 8, 0]])
    for scale, factor in ((True, 3.0), (False, 1.0)):
        layer = PositionalEmbedding(11, 9, positions=None, scale=scale)
        out = np.asarray(layer(ids))
        np.testing.assert_allclose(out, factor * np.asarray(layer.tokens.embeddings)[ids], rtol=1e-6)


def test_positional_embedding_starts_with_unit_variance() -> None:
    layer = PositionalEmbedding(2000, 64, positions=None)
    x = np.asarray(layer(np.arange(2000)[None]))
    assert x.std() == pytest.approx(1.0, rel=0.02)
    # and logits of normalised activations are of unit variance too
    logits = np.asarray(layer.logits(np.random.default_rng(0).normal(size=(100, 64)).astype("float32")))
    assert logits.std() == pytest.approx(1.0, rel=0.05)


@pytest.mark.parametrize("bad", [("absolute", 5), ("learned", None), (3, None)])
def test_positional_embedding_refuses_unknown_positions(bad: tuple) -> None:
    with pytest.raises(ValueError, match="positions must be"):
        PositionalEmbedding(9, 4, *bad)


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4)])
def test_positional_embedding_refuses_ids_of_another_rank(shape: tuple) -> None:
    with pytest.raises(ValueError, match="expected ndim=2"):
        PositionalEmbedding(9, 4)(np.ones(shape, "int32"))


def test_positional_embedding_marks_real_tokens_for_keras_masks() -> None:
    ids = keras.Input((None,), dtype="int32")
    mask = keras.Model(ids, PositionalEmbedding(9, 4)(ids)).outputs[0]._keras_mask
    assert mask.shape == (None, None)
    layer = PositionalEmbedding(9, 4)
    np.testing.assert_array_equal(layer.compute_mask(np.array([[3, 0]])), [[True, False]])
