"""The loop's own gradient against the one that the backend finds by itself, step by step."""

import numpy as np
import pytest
import tensorflow as tf

from keras_seq2seq.layers.cells import make_cell
from keras_seq2seq.layers.recurrence import run_cell

B, T, D, U = 3, 5, 4, 6
CELLS = ("lstm", "gru", "rnn")


def unrolled(cell, x, states, mask, reverse, keep):
    """Take the steps one by one; the same results as `run_cell`."""
    outputs = [None] * T
    for t in reversed(range(T)) if reverse else range(T):
        new = cell.advance(cell.project(x[:, t]), states, keep)
        real = tf.ones((B, 1), "bool") if mask is None else mask[:, t, None]
        states = tuple(tf.where(real, a, b) for a, b in zip(new, states, strict=True))
        outputs[t] = states[0]
    return states, tf.stack(outputs, axis=1)


def gradients(run, cell, x, states, weighing):
    with tf.GradientTape() as tape:
        tape.watch([x, *states])
        last, outputs = run(x, states)
        loss = sum(tf.reduce_sum(a * w) for a, w in zip((*last, outputs), weighing, strict=True))
    return tape.gradient(loss, [x, *states, *(v.value for v in cell.trainable_variables)])


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize(
    ("options", "training", "jit_compile"),
    [
        ("plain", True, False),
        ("masked", True, False),
        ("reverse", True, False),
        ("all", True, False),
        ("all", True, True),
        ("all", False, False),
    ],
)
def test_the_gradient_is_that_of_the_steps(
    name: str, options: str, training: bool, jit_compile: bool, rng
) -> None:
    cell = make_cell(name, U)
    cell.build((None, None, D))
    for variable in cell.trainable_variables:
        variable.assign(rng.normal(size=variable.shape).astype("float32"))
    mask = tf.constant(rng.random((B, T)) < 0.6) if options in ("masked", "all") else None
    reverse = options in ("reverse", "all")
    keep = tf.constant(rng.integers(0, 2, (B, U)) * 2.0, "float32") if options == "all" else None
    x = tf.constant(rng.normal(size=(B, T, D)), "float32")
    states = tuple(tf.constant(rng.normal(size=(B, U)), "float32") for _ in range(cell.states))
    shapes = [(B, U)] * cell.states + [(B, T, U)]
    weighing = [tf.constant(rng.normal(size=shape), "float32") for shape in shapes]

    def ours(x, states):
        return run_cell(cell, x, states, mask, reverse, keep, training)

    def theirs(x, states):
        return unrolled(cell, x, states, mask, reverse, keep)

    @tf.function(jit_compile=jit_compile, autograph=False)
    def both(x, states):
        return (ours(x, states), theirs(x, states)), [
            gradients(run, cell, x, states, weighing) for run in (ours, theirs)
        ]

    values, found = both(x, states)
    for mine, other in zip(tf.nest.flatten(values[0]), tf.nest.flatten(values[1]), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-5)
    assert len(found[0]) == 1 + cell.states + len(cell.trainable_variables)
    for mine, other in zip(*found, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-4)
    assert all(np.abs(mine).max() > 1e-3 for mine in found[0])
