"""Run a cell over time, as one loop in the graph.

Legend: B batch, T length, D input size, U units, G what a cell projects its input to.
"""

from typing import Any, NamedTuple

import keras
from keras import ops

__all__ = ["run_cell", "scan_rows"]


def scan_rows(advance, states, xs, mask=None):
    """Carry states over the time axis; a masked step leaves them as they are.

    Args:
        advance: a function from (states, x `[B, G]`) to states.
        states: tuple of `[B, ...]`.
        xs: `[B, T, G]`.
        mask: bool `[B, T]`, True for real steps, or None.

    Returns:
        The states after all steps, and the states after each step, `[B, T, ...]`.
    """
    xs = ops.transpose(xs, (1, 0, 2))

    def step(states, x):
        new = tuple(advance(states, x))
        return new, new

    def masked_step(states, index):
        new, _ = step(states, xs[index])
        new = tuple(ops.where(real[index], after, before) for after, before in zip(new, states, strict=True))
        return new, new

    if mask is None:
        last, every = ops.scan(step, tuple(states), xs)
    else:  # by index, as a scan over two inputs of unknown length fails on TensorFlow
        real = _time_major_mask(mask, "bool")
        last, every = ops.scan(masked_step, tuple(states), _steps(xs))
    return tuple(last), tuple(ops.transpose(x, (1, 0, 2)) for x in every)


def run_cell(cell, x, states=None, mask=None, reverse=False, keep=None, training=False):
    """Run a cell over whole sequences; all inputs are projected in one product.

    In training its gradient is a loop of its own: differentiated by the backend, the loop would add up the
    gradient of the recurrent matrix in every step, which is left here to one product over all steps. A graph
    for use stays free of it, as a SavedModel with such a gradient cannot be saved again once it is loaded.

    Args:
        cell: a `RecurrentCell`.
        x: `[B, T, D]`.
        states: tuple of `[B, U]`; default zeros.
        mask: bool `[B, T]`, True for real steps, or None. Padding may stand anywhere.
        reverse: run from the end to the beginning.
        keep: `[B, U]`, multiplies the output in the product that takes it back into the cell (recurrent
            dropout), or None. Nothing is differentiated by it.
        training: whether the fast gradient will be wanted; without it gradients are right, and slow.

    Returns:
        The states at each row's last real step, and the outputs `[B, T, U]`.
    """
    if states is None:
        zero = ops.zeros((ops.shape(x)[0], cell.units), dtype=x.dtype)
        states = (zero,) * cell.states
    projected = cell.project(ops.transpose(x, (1, 0, 2)))
    dense, dtype = cell.recurrent_dense, projected.dtype
    real = None if mask is None else _time_major_mask(mask, dtype)
    weights = [ops.cast(dense.kernel, dtype)] + ([ops.cast(dense.bias, dtype)] if dense.use_bias else [])
    loop = _Loop(cell, real, keep, reverse)
    if not training:
        last, every, _ = loop.forward(projected, weights, states)
        return tuple(last), ops.transpose(every[0], (1, 0, 2))

    @ops.custom_gradient
    def differentiable(projected, *others):
        weights, first = others[: -cell.states], others[-cell.states :]
        last, every, kept = loop.forward(projected, weights, first)

        def gradient(*upstream):
            *by_last, by_outputs = keras.tree.flatten(upstream)
            return loop.backward(weights, first, every, kept, by_last, by_outputs)

        return (*last, every[0]), gradient

    *last, outputs = differentiable(projected, *weights, *states)
    return tuple(last), ops.transpose(outputs, (1, 0, 2))


class _Loop(NamedTuple):
    """The steps of a cell, forward and backward.

    Attributes:
        cell: a `RecurrentCell`.
        real: `[T, B, 1]`, 1 for real steps and 0 for padding, or None.
        keep: `[B, U]` or None, see `run_cell`.
        reverse: run from the end to the beginning.
    """

    cell: Any
    real: Any
    keep: Any
    reverse: bool

    def forward(self, projected, weights, first):
        """Take all steps.

        Args:
            projected: `[T, B, G]`.
            weights: the recurrent matrix `[U, G]`, and the bias `[G]` if there is one.
            first: tuple of states `[B, U]`.

        Returns:
            The last states, the states after each step `[T, B, U]`, and what their derivative needs.
        """

        def step(carry, index):
            states = carry[:-1]
            recurrent = sum(weights[1:], ops.matmul(self._drop(states[0]), weights[0]))
            new, kept = self.cell.combine(projected[index], recurrent, states)
            pairs = zip(new, states, strict=True)
            carry = (*(self._where_real(index, after, before) for after, before in pairs), kept)
            return carry, carry

        kept = ops.zeros((ops.shape(first[0])[0], self.cell.kept * self.cell.units), dtype=projected.dtype)
        last, every = ops.scan(step, (*first, kept), _steps(projected), reverse=self.reverse)
        return last[:-1], every[:-1], every[-1]

    def backward(self, weights, first, every, kept, by_last, by_outputs):
        """Return the gradients by projected inputs, weights and first states.

        Args:
            weights: as in `forward`.
            first: as in `forward`.
            every: from `forward`.
            kept: from `forward`.
            by_last: gradients by the last states.
            by_outputs: gradient by the outputs, `[T, B, U]`.
        """
        before = [self._before(states, start) for states, start in zip(every, first, strict=True)]
        transposed = ops.transpose(weights[0])

        def step(carry, index):
            arriving = (carry[0] + by_outputs[index], *carry[1:-1])
            # Of a step that is padding, everything goes to the step before.
            by_new = [self._where_real(index, each, 0.0) for each in arriving]
            old, new = ([states[index] for states in stack] for stack in (before, every))
            by_projected, by_states = self.cell.combine_gradient(by_new, kept[index], old, new)
            by_recurrent = self.cell.recurrent_gradient(by_projected, kept[index])
            by_first = by_states[0] + self._drop(ops.matmul(by_recurrent, transposed))
            pairs = zip((by_first, *by_states[1:]), arriving, strict=True)
            carry = (*(self._where_real(index, by, passed) for by, passed in pairs), by_projected)
            return carry, carry

        start = (*by_last, ops.zeros_like(kept[0, :, : self.cell.gates * self.cell.units]))
        (*by_first, _), (*_, by_projected) = ops.scan(step, start, _steps(kept), reverse=not self.reverse)
        by_recurrent = _rows(self.cell.recurrent_gradient(by_projected, kept))
        by_weights = [ops.matmul(ops.transpose(_rows(self._drop(before[0]))), by_recurrent)]
        by_weights += [ops.sum(by_recurrent, axis=0) for _ in weights[1:]]
        return (by_projected, *by_weights, *by_first)

    def _drop(self, x):
        return x if self.keep is None else x * self.keep

    def _where_real(self, index, x, other):
        if self.real is None:
            return x
        return self.real[index] * x + (1.0 - self.real[index]) * other

    def _before(self, states, first):
        """Return the states before each step, `[T, B, U]`, from those after it."""
        first = ops.expand_dims(first, 0)
        parts = [states[1:], first] if self.reverse else [first, states[:-1]]
        return ops.concatenate(parts, axis=0)


def _steps(x):
    return ops.arange(ops.shape(x)[0])


def _time_major_mask(mask, dtype):
    """`[B, T]` -> `[T, B, 1]`."""
    return ops.cast(ops.expand_dims(ops.transpose(mask), -1), dtype)


def _rows(x):
    """`[T, B, U]` -> `[T*B, U]`."""
    return ops.reshape(x, (-1, x.shape[-1]))
