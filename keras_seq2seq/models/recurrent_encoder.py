"""Recurrent encoder (Sutskever et al. 2014; Cho et al. 2014; Bahdanau et al. 2015, section 3.2).

Legend: B batch, S source length, U units, E = U times the number of directions.
"""

import keras
from keras import layers, ops

from keras_seq2seq.layers.cells import make_cell
from keras_seq2seq.layers.dropout import Dropout
from keras_seq2seq.layers.masks import padding_mask
from keras_seq2seq.layers.recurrence import run_cell

__all__ = ["RecurrentEncoder"]

# TensorFlow's loops are slower under XLA, and the gradient that it finds for one of unknown length fails.
LOOPS_GAIN_BY_XLA = keras.backend.backend() != "tensorflow"


def recurrent_keep(x, units, rate, seed, training):
    """Return what multiplies recurrent outputs, `[B, U]`, the same in every step, or None (Gal 2016)."""
    if not rate or training is not True:
        return None
    ones = ops.ones((ops.shape(x)[0], units), dtype=x.dtype)
    return keras.random.dropout(ones, rate, seed=seed)


@keras.saving.register_keras_serializable(package="keras_seq2seq")
class RecurrentEncoder(layers.Layer):
    """Encode ids by stacked recurrent layers, in one or both directions.

    Args:
        embedding: a `PositionalEmbedding`.
        cell: "lstm", "gru" or "rnn".
        units: U, of each direction.
        num_layers: how many recurrent layers.
        bidirectional: run every layer in both directions and join the outputs.
        dropout: rate on the embeddings and between layers.
        recurrent_dropout: rate on the outputs that go back into a cell.

    Call arguments:
        source: int32 `[B, S]`, 0 is padding.

    Returns:
        A dict: `outputs` `[B, S, E]`, and `states`, for each layer the tuple of states `[B, E]` at the
        sentence's end (of the backward direction: at its beginning).
    """

    def __init__(
        self,
        embedding,
        cell="lstm",
        units=512,
        num_layers=1,
        bidirectional=True,
        dropout=0.0,
        recurrent_dropout=0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.embedding = embedding
        self.cell = cell
        self.units = units
        self.num_layers = num_layers
        self.bidirectional = bidirectional
        self.dropout = dropout
        self.recurrent_dropout = recurrent_dropout
        directions = ("forward", "backward") if bidirectional else ("forward",)
        self.cells = [
            [make_cell(cell, units, dtype=self.dtype_policy, name=f"{way}_{i}") for way in directions]
            for i in range(num_layers)
        ]
        self.dropout_layer = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.seed_generator = keras.random.SeedGenerator()
        self.supports_jit = LOOPS_GAIN_BY_XLA

    def build(self, source_shape):
        """Build embedding and cells."""
        if not self.embedding.built:
            self.embedding.build((None, None))
        size = self.embedding.model_dim
        for cells in self.cells:
            for cell in cells:
                cell.build((None, size))
            size = self.units * len(cells)

    def call(self, source, training=None):
        """Encode `[B, S]`."""
        mask = padding_mask(source)
        x, states = self.embedding(source), []
        for cells in self.cells:
            if self.dropout:
                x = self.dropout_layer(x, training=training)
            runs = [
                run_cell(
                    cell, x, mask=mask, reverse=way == 1, keep=self._keep(x, training), training=training
                )
                for way, cell in enumerate(cells)
            ]
            x = ops.concatenate([outputs for _, outputs in runs], axis=-1)
            states.append(
                tuple(ops.concatenate(parts, axis=-1) for parts in zip(*(r[0] for r in runs), strict=True))
            )
        return {"outputs": x, "states": states}

    def _keep(self, x, training):
        return recurrent_keep(x, self.units, self.recurrent_dropout, self.seed_generator, training)

    def compute_output_spec(self, source, training=None):
        """Declare outputs and states."""
        size = self.units * (2 if self.bidirectional else 1)

        def tensor(*shape):  # a new one for each output, or a functional graph takes them for one
            return keras.KerasTensor((*shape, size), self.compute_dtype)

        return {
            "outputs": tensor(*source.shape),
            "states": [
                tuple(tensor(source.shape[0]) for _ in range(cells[0].states)) for cells in self.cells
            ],
        }

    def get_config(self):
        """Return every constructor argument."""
        return {
            **super().get_config(),
            "embedding": keras.saving.serialize_keras_object(self.embedding),
            "cell": self.cell,
            "units": self.units,
            "num_layers": self.num_layers,
            "bidirectional": self.bidirectional,
            "dropout": self.dropout,
            "recurrent_dropout": self.recurrent_dropout,
        }

    @classmethod
    def from_config(cls, config):
        """Rebuild the layer and its embedding."""
        return cls(**{**config, "embedding": keras.saving.deserialize_keras_object(config["embedding"])})
