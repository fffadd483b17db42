"""Dropout: the share that is dropped, independence of places, calls and layers, and what a seed decides."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_seq2seq.layers.dropout import Dropout, random_bits

SHAPE = 512, 256


def mask(layer: Dropout) -> np.ndarray:
    return np.asarray(layer(np.ones(SHAPE, "float32"), training=True)) > 0


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(a.ravel(), b.ravel())[0, 1])


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.5, 0.9])
def test_the_rate_holds_in_all_and_in_every_row_and_column(rate: float) -> None:
    output = np.asarray(Dropout(rate, seed=3)(np.full(SHAPE, 2.0, "float32"), training=True))
    assert set(np.unique(output)) == {0.0, np.float32(2.0) * np.float32(1 / (1 - rate))}
    dropped = output == 0
    spread = (rate * (1 - rate)) ** 0.5
    for mean, size in (
        (dropped.mean(), dropped.size),
        (dropped.mean(0), SHAPE[0]),
        (dropped.mean(1), SHAPE[1]),
    ):
        assert np.abs(mean - rate).max() < 5 * spread / size**0.5


def test_neighbours_steps_and_layers_are_independent() -> None:
    layers = [Dropout(0.5, seed=seed) for seed in (0, 1, 2, 2**31 - 1)]
    masks = [mask(layer) for layer in layers for _ in range(3)]
    limit = 5 / np.prod(SHAPE) ** 0.5
    assert all(abs(correlation(a, b)) < limit for a, b in itertools.combinations(masks, 2))
    for each in masks[:3]:
        for shift in (1, 2, 3, 4, 8, 16, 128, 256, 512, 4096):
            assert abs(correlation(each, np.roll(each, shift))) < limit


def test_every_bit_is_set_half_of_the_time() -> None:
    bits = np.asarray(random_bits((1 << 16,), np.array([7, 1], "uint32")))
    assert len(np.unique(bits)) == len(bits)
    share = (bits[:, None] >> np.arange(32, dtype="uint32") & 1).mean(0)
    assert np.abs(share - 0.5).max() < 5 * 0.5 / (1 << 8)


@pytest.mark.parametrize("compiled", [False, True])
def test_graphs_draw_what_is_drawn_eagerly(compiled: bool) -> None:
    eager, graph = Dropout(0.4, seed=5), Dropout(0.4, seed=5)
    run = tf.function(lambda x: graph(x, training=True), jit_compile=compiled)
    x = tf.random.normal((6, 5, 4))
    for _ in range(3):
        np.testing.assert_array_equal(run(x), eager(x, training=True))


def test_the_state_of_the_seed_decides() -> None:
    layer, other = Dropout(0.5, seed=1), Dropout(0.5, seed=9)
    mask(layer)
    other.seed_generator.state.assign(layer.seed_generator.state)
    np.testing.assert_array_equal(mask(layer), mask(other))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_gradients_are_those_of_the_mask(dtype: str) -> None:
    x = tf.ones((8, 8), dtype)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = Dropout(0.5, dtype=dtype)(x, training=True)
    assert y.dtype == dtype
    np.testing.assert_array_equal(tape.gradient(y, x), y)


def test_edges_are_those_of_keras() -> None:
    x = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(Dropout(0.5)(x), x)
    np.testing.assert_array_equal(Dropout(0.0)(x, training=True), x)
    np.testing.assert_array_equal(Dropout(1.0)(x, training=True), 0 * x)
    rows = np.asarray(Dropout(0.5, noise_shape=(None, 1), seed=2)(np.ones((64, 3), "float32"), training=True))
    assert set(np.unique(rows)) == {0.0, 2.0}
    np.testing.assert_array_equal(rows[:, :1] + 0 * rows, rows)
    with pytest.raises(ValueError, match="rate"):
        Dropout(1.5)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(Dropout(0.3, seed=4)))
    assert (type(again), again.rate, again.seed) == (Dropout, 0.3, 4)
