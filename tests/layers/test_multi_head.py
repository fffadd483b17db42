"""Multi-head attention against NumPy, Keras and PyTorch; masks, shapes and scores."""

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from references import Weights, alibi_slopes, multi_head, randomize, rotary

from keras_seq2seq.layers import (
    BahdanauAttention,
    LinearBias,
    LuongAttention,
    MultiHeadAttention,
    MultiHeadSelfAttention,
    RotaryPositions,
)

# All sizes differ, so that no axis can stand in for another.
B, H, T, S, D, E, K = 2, 8, 5, 6, 12, 10, 4


def fused(dense, names: list[str], sizes: list[int]) -> Weights:
    """Cut a fused projection into its parts."""
    parts, start = {}, 0
    for name, size in zip(names, sizes, strict=True):
        parts[name] = np.asarray(dense.kernel)[:, start : start + size]
        if dense.use_bias:
            parts[f"{name}_bias"] = np.asarray(dense.bias)[start : start + size]
        start += size
    assert start == dense.kernel.shape[1]
    return parts


def weights_of(layer) -> Weights:
    """Name the weights of either layer as `references.multi_head` wants them."""
    heads, output = layer.num_heads, fused(layer.output_dense, ["output"], [layer.output_dense.units])
    size = layer.output_dense.kernel.shape[0] // heads
    query, group = heads * size, layer.groups * size
    if isinstance(layer, MultiHeadSelfAttention):
        names = ["query", "key", "value"]
        return output | fused(layer.query_key_value_dense, names, [query, group, group])
    parts = output | fused(layer.query_dense, ["query"], [query])
    if layer.own_key:
        parts |= fused(layer.key_dense, ["key"], [group])
        return parts | fused(layer.value_dense, ["value"], [group])
    return parts | fused(layer.key_value_dense, ["key", "value"], [group, group])


@pytest.fixture
def x(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(B, T, D)).astype("float32")


@pytest.fixture
def value(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(B, S, E)).astype("float32")


@pytest.mark.parametrize("groups", [8, 4, 2, 1])
@pytest.mark.parametrize("use_bias", [True, False])
def test_self_attention_equals_numpy(x: np.ndarray, groups: int, use_bias: bool) -> None:
    layer = MultiHeadSelfAttention(H, K, num_key_value_heads=groups, use_bias=use_bias)
    layer.build(x.shape)
    randomize(layer)
    keys = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], bool)
    mask = keys[:, None] & np.tril(np.ones((T, T), bool))
    out, scores = layer(x, attention_mask=keys, use_causal_mask=True, return_attention_scores=True)
    expected, weights = multi_head(x, x, x, weights_of(layer), H, groups, mask)
    np.testing.assert_allclose(scores, weights, atol=1e-6)
    np.testing.assert_allclose(out, expected, atol=1e-5)
    np.testing.assert_allclose(layer(x, attention_mask=mask), expected, atol=1e-5)


@pytest.mark.parametrize("groups", [8, 2, 1])
@pytest.mark.parametrize("own_key", [True, False])
def test_attention_equals_numpy(
    x: np.ndarray, value: np.ndarray, rng: np.random.Generator, groups: int, own_key: bool
) -> None:
    key = rng.normal(size=(B, S, 7)).astype("float32") if own_key else None
    mask = rng.random((B, T, S)) < 0.6
    layer = MultiHeadAttention(H, K, num_key_value_heads=groups)
    layer(x, value, key)
    randomize(layer)
    out, scores = layer(x, value, key, attention_mask=mask, return_attention_scores=True)
    expected, weights = multi_head(
        x, value if key is None else key, value, weights_of(layer), H, groups, mask
    )
    np.testing.assert_allclose(scores, weights, atol=1e-6)
    np.testing.assert_allclose(out, expected, atol=1e-5)


@pytest.mark.parametrize("causal", [True, False])
def test_self_attention_applies_positions(x: np.ndarray, causal: bool) -> None:
    mask = np.tril(np.ones((T, T), bool)) if causal else None
    rotating = MultiHeadSelfAttention(H, K, positions=RotaryPositions())
    biased = MultiHeadSelfAttention(H, K, positions=LinearBias(H))
    distance = np.abs(np.arange(T)[:, None] - np.arange(T))
    bias = -np.array(alibi_slopes(H))[None, :, None, None] * distance
    for layer, extra in (
        (rotating, {"rotate": lambda head: rotary(head, list(range(T)))}),
        (biased, {"bias": bias}),
    ):
        layer.build(x.shape)
        randomize(layer)
        expected, _ = multi_head(x, x, x, weights_of(layer), H, H, mask, **extra)
        np.testing.assert_allclose(layer(x, use_causal_mask=causal), expected, atol=1e-5)


@pytest.mark.parametrize("groups", [8, 2])
def test_equal_to_keras(x: np.ndarray, value: np.ndarray, groups: int) -> None:
    """The same weights in Keras' layers, which project each head by a slice of `[D, H, K]`."""
    layer = MultiHeadAttention(H, K, num_key_value_heads=groups)
    layer(x, value)
    randomize(layer)
    theirs = (
        keras.layers.MultiHeadAttention(H, K)
        if groups == H
        else keras.layers.GroupQueryAttention(K, H, groups)
    )
    theirs.build(x.shape, value.shape)
    w = weights_of(layer)
    theirs.set_weights(
        [
            part
            for name, heads in (("query", H), ("key", groups), ("value", groups))
            for part in (w[name].reshape(-1, heads, K), w[f"{name}_bias"].reshape(heads, K))
        ]
        + [w["output"].reshape(H, K, D), w["output_bias"]]
    )
    mask = np.tri(T, S, 1, dtype=bool)[None].repeat(B, 0)
    ours = layer(x, value, attention_mask=mask, return_attention_scores=True)
    keras_ = theirs(x, value, attention_mask=mask, return_attention_scores=True)
    for a, b in zip(ours, keras_, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-6)


def test_equal_to_torch() -> None:
    """Golden values of PyTorch 2.13, `torch.nn.MultiheadAttention(12, 3, batch_first=True)`.

    All its parameters were drawn from N(0, 0.4); the file holds them, the inputs, and what came out with
    `attn_mask=~may_attend` for every head and `average_attn_weights=False`.
    """
    with np.load(Path(__file__).parent / "torch_attention.npz") as golden:
        g = {name: golden[name] for name in golden.files}
    heads = int(g["heads"])
    width = g["query"].shape[-1]
    layer = MultiHeadAttention(heads, width // heads)
    layer(g["query"], g["value"], g["key"])
    kernels, biases = np.split(g["in_proj_weight"], 3), np.split(g["in_proj_bias"], 3)
    for dense, kernel, bias in (
        (layer.query_dense, kernels[0], biases[0]),
        (layer.key_dense, kernels[1], biases[1]),
        (layer.value_dense, kernels[2], biases[2]),
        (layer.output_dense, g["out_proj_weight"], g["out_proj_bias"]),
    ):
        dense.set_weights([kernel.T, bias])
    out, scores = layer(
        g["query"], g["value"], g["key"], attention_mask=g["may_attend"], return_attention_scores=True
    )
    np.testing.assert_allclose(out, g["output"], atol=2e-6)
    np.testing.assert_allclose(scores, g["scores"], atol=2e-6)


def test_padding_and_causal_masks_are_anded_in_self_attention(x: np.ndarray) -> None:
    keys = np.array([[1, 1, 1, 0, 0], [1, 0, 1, 1, 1]], bool)
    layer = MultiHeadSelfAttention(H, K)
    _, scores = layer(x, attention_mask=keys, use_causal_mask=True, return_attention_scores=True)
    may = np.broadcast_to((keys[:, None] & np.tri(T, dtype=bool))[:, None], (B, H, T, T))
    np.testing.assert_array_equal(np.asarray(scores) > 0, may)
    np.testing.assert_allclose(np.sum(scores, -1), 1.0, atol=1e-5)


@pytest.mark.parametrize("rank", [2, 3])
def test_cross_masks_give_masked_keys_no_weight(x, value, rng: np.random.Generator, rank: int) -> None:
    mask = rng.random((B, S) if rank == 2 else (B, T, S)) < 0.6
    mask[..., 1] = True
    _, scores = MultiHeadAttention(H, K)(x, value, attention_mask=mask, return_attention_scores=True)
    may = np.broadcast_to(mask[:, None, None] if rank == 2 else mask[:, None], (B, H, T, S))
    np.testing.assert_array_equal(np.asarray(scores) > 0, may)
    np.testing.assert_allclose(np.sum(scores, -1), 1.0, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "mixed_float16", "mixed_bfloat16"])
def test_fully_masked_rows_have_no_weights_and_no_context(x, value, dtype: str) -> None:
    mask = np.ones((B, T, S), bool)
    mask[0, 2] = False
    mask[1] = False
    layer = MultiHeadAttention(H, K, dtype=dtype)
    layer(x, value)
    randomize(layer)
    with tf.GradientTape() as tape:
        out, scores = layer(x, value, attention_mask=mask, return_attention_scores=True)
        total = tf.reduce_sum(tf.cast(out, "float32"))
    bias = np.asarray(layer.output_dense.bias)
    for row in (np.asarray(out)[0, 2], *np.asarray(out)[1]):
        np.testing.assert_allclose(row.astype("float32"), bias, rtol=1e-2)
    assert not np.asarray(scores)[0, :, 2].any()
    assert not np.asarray(scores)[1].any()
    np.testing.assert_allclose(np.sum(scores, -1)[0, :, :2], 1.0, atol=1e-2)
    gradients = tape.gradient(total, [v.value for v in layer.trainable_variables])
    assert all(np.isfinite(g).all() for g in gradients)


def test_scores_exist_symbolically(x: np.ndarray, value: np.ndarray) -> None:
    query, memory = keras.Input((None, D)), keras.Input((None, E))
    own, own_scores = MultiHeadSelfAttention(H, K)(query, return_attention_scores=True)
    cross, cross_scores = MultiHeadAttention(H, K)(own, memory, return_attention_scores=True)
    assert own.shape == cross.shape == (None, None, D)
    assert own_scores.shape == cross_scores.shape == (None, H, None, None)
    model = keras.Model([query, memory], [cross, own_scores, cross_scores])
    shapes = [tuple(out.shape) for out in model([x, value])]
    assert shapes == [(B, T, D), (B, H, T, T), (B, H, T, S)]


def test_asking_for_scores_changes_nothing(x: np.ndarray) -> None:
    """Causality and values hold on every call path: scores asked for, dropout set, masks given."""
    keys = np.ones((B, T), bool)
    changed = x.copy()
    changed[:, 3:] += 1.0
    layer = MultiHeadSelfAttention(H, K, dropout=0.5)
    for options in ({}, {"return_attention_scores": True}, {"attention_mask": keys}):
        first, second = (
            layer(inputs, use_causal_mask=True, training=False, **options) for inputs in (x, changed)
        )
        if "return_attention_scores" in options:
            first, second = first[0], second[0]
        np.testing.assert_allclose(first[:, :3], second[:, :3], atol=1e-6)
        assert np.abs(np.asarray(first - second)[:, 3:]).max() > 1e-2
        np.testing.assert_allclose(first, layer(x, use_causal_mask=True), atol=1e-6)


def test_dropout_acts_in_training_alone(x: np.ndarray) -> None:
    layer = MultiHeadSelfAttention(H, K, dropout=0.5)
    np.testing.assert_array_equal(layer(x), layer(x, training=False))
    assert np.abs(np.asarray(layer(x, training=True) - layer(x))).max() > 1e-3


def test_a_key_needs_a_layer_built_with_one(x: np.ndarray, value: np.ndarray) -> None:
    layer = MultiHeadAttention(H, K)
    layer(x, value)
    with pytest.raises(ValueError, match="key was given to a layer that was built without one"):
        layer(x, value, value)
    layer = MultiHeadAttention(H, K)
    layer(x, value, value)
    np.testing.assert_array_equal(layer(x, value), layer(x, value, value))


def test_impossible_heads_are_refused() -> None:
    with pytest.raises(ValueError, match=r"num_heads=8.*num_key_value_heads=3"):
        MultiHeadAttention(8, K, num_key_value_heads=3)
    with pytest.raises(ValueError, match=r"num_heads=5.*size 12"):
        MultiHeadSelfAttention(5).build((None, None, 12))


@pytest.mark.parametrize("shape", [(B, D), (B, T, 2, D)])
def test_another_rank_is_refused(shape: tuple) -> None:
    for layer in (MultiHeadAttention(H, K), BahdanauAttention(K), LuongAttention()):
        with pytest.raises(ValueError, match="expected ndim=3"):
            layer(np.ones(shape, "float32"), np.ones(shape, "float32"))
    with pytest.raises(ValueError, match="expected ndim=3"):
        MultiHeadSelfAttention(H)(np.ones(shape, "float32"))


def test_head_size_comes_from_the_model(x: np.ndarray) -> None:
    layer = MultiHeadSelfAttention(4)
    assert layer(x).shape == (B, T, D)
    assert layer.query_key_value_dense.kernel.shape == (D, 3 * D)


def test_permuting_positions_permutes_the_output(x: np.ndarray, rng: np.random.Generator) -> None:
    order = rng.permutation(T)
    layer = MultiHeadSelfAttention(H, K)
    np.testing.assert_allclose(layer(x[:, order]), np.asarray(layer(x))[:, order], atol=1e-6)


def test_fused_projections_start_as_separate_ones_would() -> None:
    layer = MultiHeadSelfAttention(8, num_key_value_heads=2)
    layer.build((None, None, 256))
    kernel = np.asarray(layer.query_key_value_dense.kernel)
    assert kernel[:, :256].std() == pytest.approx((2 / (256 + 256)) ** 0.5, rel=0.05)
