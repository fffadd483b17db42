"""Recurrent cells in two halves: what depends on the input alone, for all steps at once, and the rest.

Legend: B batch, T length, D input size, U units.
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
    """

    gates = 1
    states = 1
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
        """Do for inputs `[..., D]` what needs no state: `[..., gates*U]`."""
        return self.input_dense(x)

    def advance(self, projected, states):
        """Take one step.

        Args:
            projected: `[B, gates*U]`.
            states: tuple of `[B, U]`.

        Returns:
            tuple of `[B, U]`.
        """
        raise NotImplementedError

    def call(self, x, states):
        """Take one step from inputs `[B, D]`."""
        return self.advance(self.project(x), tuple(states))

    def get_config(self):
        """Return every constructor argument."""
        return {**super().get_config(), "units": self.units}


@_register
class RNNCell(RecurrentCell):
    """h' = tanh(W x + U h + b) (Elman 1990)."""

    def advance(self, projected, states):
        """Take one step."""
        return (ops.tanh(projected + self.recurrent_dense(states[0])),)


@_register
class GRUCell(RecurrentCell):
    """Gated recurrent unit (Cho et al. 2014), with the reset gate after the product, as cuDNN has it.

    z = s(W_z x + U_z h), r = s(W_r x + U_r h), n = tanh(W_n x + r * (U_n h + b)), h' = z * h + (1 - z) * n.
    """

    gates = 3
    recurrent_bias = True

    def advance(self, projected, states):
        """Take one step."""
        h = states[0]
        recurrent = self.recurrent_dense(h)
        both = ops.sigmoid(projected[..., : 2 * self.units] + recurrent[..., : 2 * self.units])
        update, reset = both[..., : self.units], both[..., self.units :]
        new = ops.tanh(projected[..., 2 * self.units :] + reset * recurrent[..., 2 * self.units :])
        return (update * h + (1.0 - update) * new,)


@_register
class LSTMCell(RecurrentCell):
    """Long short-term memory with a forget gate (Hochreiter and Schmidhuber 1997; Gers et al. 2000).

    i, f, o = s(W x + U h + b), g = tanh(W_g x + U_g h + b_g), c' = f * c + i * g, h' = o * tanh(c'). The
    forget gate's bias starts at 1 (Jozefowicz et al. 2015).
    """

    gates = 4
    states = 2

    def _bias_initializer(self):
        return _ForgetBias(self.units)

    def advance(self, projected, states):
        """Take one step."""
        h, c = states
        gates = projected + self.recurrent_dense(h)
        both = ops.sigmoid(gates[..., : 3 * self.units])
        enter, keep, leave = ops.split(both, 3, axis=-1)
        c = keep * c + enter * ops.tanh(gates[..., 3 * self.units :])
        return leave * ops.tanh(c), c


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
