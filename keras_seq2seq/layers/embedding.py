"""Token embeddings with positions, tied to the output projection where that is wanted."""

import math

import keras
from keras import layers, ops

from keras_seq2seq.layers.positions import LearnedPositions, Positions, SinusoidalPositions

__all__ = ["PositionalEmbedding"]


@keras.saving.register_keras_serializable(package="keras_seq2seq")
class PositionalEmbedding(layers.Layer):
    """Embed ids, scale, and add positions: sqrt(D) E[id] + PE(position) (Vaswani et al. 2017, section 3.4).

    Args:
        vocabulary_size: V.
        model_dim: D.
        positions: a position encoding, "sinusoidal" (default), "learned" (needs `max_length`) or None.
        max_length: number of positions of "learned".
        scale: multiply the embeddings by sqrt(D).

    Call arguments:
        ids: int32 `[B, T]`; 0 is padding, and a Keras mask says where.

    Returns:
        `[B, T, D]`.

    Raises:
        ValueError: a sequence longer than `max_length`; "learned" without `max_length`.

    Example:
        >>> embedding, ids = ks.layers.PositionalEmbedding(100, 16), np.array([[7, 8, 3, 0]])
        >>> tuple(embedding(ids).shape), np.asarray(embedding.compute_mask(ids)).tolist()
        ((1, 4, 16), [[True, True, True, False]])
    """

    def __init__(
        self, vocabulary_size, model_dim, positions="sinusoidal", max_length=None, scale=True, **kwargs
    ):
        super().__init__(**kwargs)
        for name, value in (("vocabulary_size", vocabulary_size), ("model_dim", model_dim)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be an integer of at least 1, received {value!r}.")
        self.input_spec = layers.InputSpec(ndim=2)
        self.vocabulary_size = vocabulary_size
        self.model_dim = model_dim
        self.max_length = max_length
        self.scale = scale
        self.positions = self._encoding(positions, max_length)
        # Unit variance after scaling, and logits of unit variance where the output shares the matrix.
        self.tokens = layers.ReversibleEmbedding(
            vocabulary_size,
            model_dim,
            embeddings_initializer=keras.initializers.RandomNormal(stddev=model_dim**-0.5 if scale else 0.02),
            reverse_dtype="float32",
            dtype=self.dtype_policy,
            name="tokens",
        )
        self.supports_masking = True

    def _encoding(self, positions, max_length):
        if positions is None:
            return Positions(dtype=self.dtype_policy)
        if isinstance(positions, Positions):
            return positions
        if positions == "sinusoidal":
            return SinusoidalPositions(dtype=self.dtype_policy)
        if positions == "learned" and max_length is not None:
            return LearnedPositions(max_length, dtype=self.dtype_policy)
        raise ValueError(
            'positions must be a position encoding, "sinusoidal", "learned" (with max_length) or None, '
            f"received {positions!r} with max_length={max_length}."
        )

    def build(self, input_shape):
        """Build the matrix and the positions."""
        self.tokens.build(input_shape)
        if not self.positions.built:
            self.positions.build((None, None, self.model_dim))

    def embed(self, ids, positions):
        """Embed ids `[B, T]` at `positions` `[1 or B, T]`."""
        x = self.tokens(ids)
        if self.scale:
            x = x * ops.cast(math.sqrt(self.model_dim), x.dtype)
        return self.positions.embed(x, positions)

    def logits(self, x):
        """Project `[N, D]` to float32 logits `[N, V]` with the same matrix (Press and Wolf 2017)."""
        return self.tokens(x, reverse=True)

    def call(self, ids):
        """Embed ids at positions 0 to T-1."""
        return self.embed(ids, ops.expand_dims(ops.arange(ops.shape(ids)[1]), 0))

    def compute_mask(self, ids, mask=None):
        """Mark the real tokens, for layers that use Keras' masks."""
        return ops.not_equal(ids, 0)

    def compute_output_spec(self, ids):
        """`[B, T]` -> `[B, T, D]`."""
        return keras.KerasTensor((*ids.shape, self.model_dim), self.compute_dtype)

    def get_config(self):
        """Return every constructor argument."""
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "model_dim": self.model_dim,
            "positions": keras.saving.serialize_keras_object(self.positions),
            "max_length": self.max_length,
            "scale": self.scale,
        }

    @classmethod
    def from_config(cls, config):
        """Rebuild the layer, its position encoding included."""
        positions = config["positions"]
        if isinstance(positions, dict):
            positions = keras.saving.deserialize_keras_object(positions)
        return cls(**{**config, "positions": positions})
