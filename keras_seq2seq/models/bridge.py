"""The bridge from an encoder's final states to a decoder's first ones."""

import keras
from keras import layers

__all__ = ["StateBridge"]


@keras.saving.register_keras_serializable(package="keras_seq2seq")
class StateBridge(layers.Layer):
    """Give every decoder layer its first states, whatever the encoder's sizes, layers and directions.

    Decoder layers take the encoder's top layers in order; those that are too many take the topmost again.
    States of equal size pass unchanged (Sutskever et al. 2014), others go through a projection, outputs with
    a tanh after it (Bahdanau et al. 2015, appendix A.2.2). A state that the encoder's cell does not have
    (an LSTM's memory after a GRU) comes from its output.

    Args:
        units: size of the decoder's states.
        num_layers: the decoder's layers.
        states: how many states a decoder cell has.

    Call arguments:
        states: for each encoder layer, a tuple of `[B, E]`.

    Returns:
        For each decoder layer, a tuple of `[B, units]`.
    """

    def __init__(self, units, num_layers, states, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.num_layers = num_layers
        self.states = states

    def _sources(self, encoder_states):
        """Pick what each decoder state comes from."""
        top = list(encoder_states)[-self.num_layers :]
        top += [top[-1]] * (self.num_layers - len(top))
        return [[layer[i] if i < len(layer) else layer[0] for i in range(self.states)] for layer in top]

    def build(self, states_shape):
        """Build a projection wherever sizes differ."""
        self.projections = []
        for number, layer in enumerate(self._sources(states_shape)):
            row = []
            for i, shape in enumerate(layer):
                if shape[-1] == self.units:
                    row.append(layers.Identity(name=f"pass_{number}_{i}"))
                    continue
                dense = layers.Dense(
                    self.units,
                    activation="tanh" if i == 0 else None,
                    dtype=self.dtype_policy,
                    name=f"project_{number}_{i}",
                )
                dense.build((None, shape[-1]))
                row.append(dense)
            self.projections.append(row)

    def call(self, states):
        """Translate the states."""
        return [
            tuple(project(state) for project, state in zip(row, layer, strict=True))
            for row, layer in zip(self.projections, self._sources(states), strict=True)
        ]

    def get_config(self):
        """Return every constructor argument."""
        return {
            **super().get_config(),
            "units": self.units,
            "num_layers": self.num_layers,
            "states": self.states,
        }
