"""Recurrent cells, cut where training is fast: products with inputs, products with states, and the rest.

Only the product with the states has to be taken step by step. The rest of a step works on single numbers,
and each cell knows its derivative, so that a loop over time need not be differentiated (`recurrence.py`).

Legend: B batch, T length, D input size, U units, G = gates * U.
"""

import keras
from keras import layers, ops

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RecurrentCell", "make_cell"]

_register = keras.saving.register_keras_serializable(package="keras_seq2seq")


class RecurrentCell(layers.Layer):
    """The contract of all cells.

    Args:
        units: U.

    Attributes:
        gates: how many vectors of size U the cell computes in a step.
        states: how many vectors of size U it keeps; the first is its output.
        kept: how many vectors of size U its derivative needs of a step.
        recurrent_bias: whether the product with the states has a bias of its own.
    """

    gates = 1
    states = 1
    kept = 1
    recurrent_bias = False

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        if units < 1:
            raise ValueError(f"units must be at least 1, received {units}.")
        self.units = units
        size = self.gates * units
        self.input_dense = layers.Dense(
            size, bias_initializer=self._bias_initializer(), dtype=self.dtype_policy, name="input"
        )
        self.recurrent_dense = layers.Dense(
            size,
            use_bias=self.recurrent_bias,
            kernel_initializer="orthogonal",
            dtype=self.dtype_policy,
            name="recurrent",
        )

    def _bias_initializer(self):
        return "zeros"

    def build(self, input_shape):
        """Build for inputs `[..., D]`."""
        self.input_dense.build((None, input_shape[-1]))
        self.recurrent_dense.build((None, self.units))

    def project(self, x):
        """Do for inputs `[..., D]` what needs no state: `[..., G]`."""
        return self.input_dense(x)

    def advance(self, projected, states, keep=None):
        """Take one step from projected inputs `[B, G]` and a tuple of states `[B, U]` to such a tuple.

        `keep` `[B, U]` multiplies the first state in the product, and only there (recurrent dropout).
        """
        first = states[0] if keep is None else states[0] * keep
        return self.combine(projected, self.recurrent_dense(first), states)[0]

    def combine(self, projected, recurrent, states):
        """Do what is left of a step when both products are there.

        Args:
            projected: `[B, G]`, of the input.
            recurrent: `[B, G]`, of the first state.
            states: tuple of `[B, U]`.

        Returns:
            The new states, and what `combine_gradient` needs, `[B, kept*U]`.
        """
        raise NotImplementedError

    def combine_gradient(self, gradients, kept, states, new):
        """Return the derivative of `combine`.

        Args:
            gradients: tuple of `[B, U]`, by the new states.
            kept: what `combine` returned beside them.
            states: the states before.
            new: the new states.

        Returns:
            The gradient by `projected`, `[B, G]`, and a tuple by the states, `recurrent` left out.
        """
        raise NotImplementedError

    def recurrent_gradient(self, by_projected, kept):
        """Return the gradient by `recurrent`, `[..., G]`, from the one by `projected`."""
        return by_projected

    def call(self, x, states):
        """Take one step from inputs `[B, D]`."""
        return self.advance(self.project(x), tuple(states))

    def get_config(self):
        """Return every constructor argument."""
        return {**super().get_config(), "units": self.units}


@_register
class RNNCell(RecurrentCell):
    """h' = tanh(W x + U h + b) (Elman 1990)."""

    def combine(self, projected, recurrent, states):
        """Take one step."""
        new = ops.tanh(projected + recurrent)
        return (new,), new

    def combine_gradient(self, gradients, kept, states, new):
        """Go back through one step."""
        before = gradients[0] * (1.0 - ops.square(kept))
        return before, (ops.zeros_like(before),)


@_register
class GRUCell(RecurrentCell):
    """Gated recurrent unit (Cho et al. 2014), with the reset gate after the product, as cuDNN has it.

    z = s(W_z x + U_z h), r = s(W_r x + U_r h), n = tanh(W_n x + r * (U_n h + b)), h' = z * h + (1 - z) * n.
    """

    gates = 3
    kept = 4
    recurrent_bias = True

    def combine(self, projected, recurrent, states):
        """Take one step."""
        cut = 2 * self.units
        both = ops.sigmoid(projected[..., :cut] + recurrent[..., :cut])
        update, reset = both[..., : self.units], both[..., self.units :]
        inner = recurrent[..., cut:]
        new = ops.tanh(projected[..., cut:] + reset * inner)
        kept = ops.concatenate([both, new, inner], axis=-1)
        return (update * states[0] + (1.0 - update) * new,), kept

    def combine_gradient(self, gradients, kept, states, new):
        """Go back through one step."""
        (gradient,) = gradients
        update, reset, candidate, inner = ops.split(kept, 4, axis=-1)
        by_update = gradient * (states[0] - candidate) * update * (1.0 - update)
        by_candidate = gradient * (1.0 - update) * (1.0 - ops.square(candidate))
        by_reset = by_candidate * inner * reset * (1.0 - reset)
        return ops.concatenate([by_update, by_reset, by_candidate], axis=-1), (gradient * update,)

    def recurrent_gradient(self, by_projected, kept):
        """Weigh the candidate's part by the reset gate."""
        cut = 2 * self.units
        reset = kept[..., self.units : cut]
        return ops.concatenate([by_projected[..., :cut], by_projected[..., cut:] * reset], axis=-1)


@_register
class LSTMCell(RecurrentCell):
    """Long short-term memory with a forget gate (Hochreiter and Schmidhuber 1997; Gers et al. 2000).

    i, f, o = s(W x + U h + b), g = tanh(W_g x + U_g h + b_g), c' = f * c + i * g, h' = o * tanh(c'). The
    forget gate's bias starts at 1 (Jozefowicz et al. 2015).
    """

    gates = 4
    states = 2
    kept = 4

    def _bias_initializer(self):
        return _ForgetBias(self.units)

    def combine(self, projected, recurrent, states):
        """Take one step."""
        gates = projected + recurrent
        both = ops.sigmoid(gates[..., : 3 * self.units])
        new = ops.tanh(gates[..., 3 * self.units :])
        enter, keep, leave = ops.split(both, 3, axis=-1)
        c = keep * states[1] + enter * new
        return (leave * ops.tanh(c), c), ops.concatenate([both, new], axis=-1)

    def combine_gradient(self, gradients, kept, states, new):
        """Go back through one step."""
        enter, keep, leave, candidate = ops.split(kept, 4, axis=-1)
        out = ops.tanh(new[1])
        by_c = gradients[1] + gradients[0] * leave * (1.0 - ops.square(out))
        by_gates = ops.concatenate(
            [
                by_c * candidate * enter * (1.0 - enter),
                by_c * states[1] * keep * (1.0 - keep),
                gradients[0] * out * leave * (1.0 - leave),
                by_c * enter * (1.0 - ops.square(candidate)),
            ],
            axis=-1,
        )
        return by_gates, (ops.zeros_like(by_c), by_c * keep)


@_register
class _ForgetBias(keras.initializers.Initializer):
    """Zeros, and ones for the forget gate."""

    def __init__(self, units):
        self.units = units

    def __call__(self, shape, dtype=None):
        gate = ops.arange(shape[0]) // self.units
        return ops.cast(gate == 1, dtype or "float32")

    def get_config(self):
        return {"units": self.units}


CELLS = {"lstm": LSTMCell, "gru": GRUCell, "rnn": RNNCell}


def make_cell(cell, units, **kwargs):
    """Return the cell of a name, "lstm", "gru" or "rnn"."""
    if cell not in CELLS:
        raise ValueError(f"cell must be one of {', '.join(map(repr, CELLS))}, received {cell!r}.")
    return CELLS[cell](units, **kwargs)
