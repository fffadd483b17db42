"""FeedForward and AddNorm against their equations."""

import math

import keras
import numpy as np
import pytest
from references import randomize

from keras_seq2seq.layers import AddNorm, FeedForward, MultiHeadSelfAttention, PositionalEmbedding

B, T, D, F = 2, 3, 5, 7

ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "gelu": lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
}
GATES = {"glu": "sigmoid", "reglu": "relu", "geglu": "gelu", "swiglu": "silu"}


@pytest.fixture
def x(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(B, T, D)).astype("float32")


@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", *GATES])
def test_feed_forward_equals_numpy(x: np.ndarray, activation: str, use_bias: bool) -> None:
    layer = FeedForward(F, activation, use_bias=use_bias)
    layer.build(x.shape)
    randomize(layer)
    kernel, output = np.asarray(layer.hidden_dense.kernel), np.asarray(layer.output_dense.kernel)
    hidden = x @ kernel + (np.asarray(layer.hidden_dense.bias) if use_bias else 0.0)
    if activation in GATES:
        assert kernel.shape == (D, 2 * F)
        hidden = ACTIVATIONS[GATES[activation]](hidden[..., :F]) * hidden[..., F:]
    else:
        hidden = ACTIVATIONS[activation](hidden)
    expected = hidden @ output + (np.asarray(layer.output_dense.bias) if use_bias else 0.0)
    np.testing.assert_allclose(layer(x), expected, atol=1e-5)


@keras.saving.register_keras_serializable(package="tests")
def squared_relu(x):
    """So et al. 2021."""
    return keras.ops.square(keras.ops.relu(x))


@pytest.mark.parametrize("activation", [keras.activations.silu, squared_relu])
def test_an_activation_may_be_a_function(x: np.ndarray, activation) -> None:
    layer = FeedForward(F, activation)
    expected = layer(x)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    again.set_weights(layer.get_weights())
    np.testing.assert_array_equal(again(x), expected)


def test_feed_forward_dropout_acts_in_training_alone(x: np.ndarray) -> None:
    layer = FeedForward(F, dropout=0.5)
    np.testing.assert_array_equal(layer(x), layer(x, training=False))
    assert np.abs(np.asarray(layer(x, training=True) - layer(x))).max() > 1e-3


def normalized(x: np.ndarray, kind: str, layer: AddNorm) -> np.ndarray:
    """Ba et al. 2016 or Zhang and Sennrich 2019, with the layer's scale and shift."""
    scale = np.asarray(layer.norm.gamma if kind == "layer" else layer.norm.scale)
    if kind == "rms":
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * scale
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6) * scale + np.asarray(
        layer.norm.beta
    )


@pytest.mark.parametrize("kind", ["layer", "rms"])
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_add_norm_equals_its_equation(x: np.ndarray, kind: str, placement: str) -> None:
    y = np.cos(x)
    layer = AddNorm(placement, kind)
    layer.build(x.shape)
    randomize(layer)
    if placement == "pre":
        before, after = normalized(x, kind, layer), x + y
    else:
        before, after = x, normalized(x + y, kind, layer)
    np.testing.assert_allclose(layer.before(x), before, atol=1e-5)
    np.testing.assert_allclose(layer.after(x, y), after, atol=1e-5)
    np.testing.assert_array_equal(layer(x, y), layer.after(x, y))


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_add_norm_drops_the_sublayer_and_keeps_the_residual(x: np.ndarray, placement: str) -> None:
    layer = AddNorm(placement, dropout=0.5)
    y = np.full_like(x, 100.0)
    np.testing.assert_array_equal(layer(x, y), layer(x, y, training=False))
    if placement == "pre":
        joined = np.asarray(layer(x, y, training=True)) - x
        np.testing.assert_allclose(np.unique(np.round(joined)), [0.0, 200.0])


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_layers_forward_the_mask_that_arrives(placement: str) -> None:
    """With explicit masks, 20 more pads change no real position and no mask is lost on the way."""
    embedding, add_norm = PositionalEmbedding(11, 8), AddNorm(placement)
    attention, feed_forward = MultiHeadSelfAttention(2), FeedForward(9)
    ids = keras.Input((None,), dtype="int32")
    x = embedding(ids)
    x = add_norm(x, attention(x, attention_mask=embedding.compute_mask(ids)))
    x = feed_forward(x)
    pooled = keras.layers.GlobalAveragePooling1D()(x)  # uses the mask that has come through
    model = keras.Model(ids, [x, pooled])
    row = np.array([[4, 7, 2, 9, 3], [5, 3, 0, 0, 0]])
    short, short_pooled = model(row)
    long, long_pooled = model(np.pad(row, ((0, 0), (0, 20))))
    np.testing.assert_allclose(short[0], long[0, :5], atol=1e-5)
    np.testing.assert_allclose(short[1, :2], long[1, :2], atol=1e-5)
    np.testing.assert_allclose(short_pooled, long_pooled, atol=1e-5)


def test_add_norm_refuses_what_it_does_not_know() -> None:
    with pytest.raises(ValueError, match='placement must be "pre" or "post", received \'middle\''):
        AddNorm("middle")
    with pytest.raises(ValueError, match='normalization must be "layer" or "rms", received \'batch\''):
        AddNorm(normalization="batch")
