"""Position encodings as small objects with three hooks; a new one is one class in this file.

Legend: B batch, T query length, S key length, D model, H heads, K head size.
"""

import math

import keras
from keras import layers, ops

__all__ = [
    "LearnedPositions",
    "LinearBias",
    "Positions",
    "RelativeBias",
    "RotaryPositions",
    "SinusoidalPositions",
]

_register = keras.saving.register_keras_serializable(package="keras_seq2seq")


@_register
class Positions(layers.Layer):
    """The contract of all position encodings, and the encoding that encodes nothing.

    An encoding overrides one hook. Positions are int32 counts from 0, `[1 or B, T]`.

    Attributes:
        max_length: the number of positions there are, or None for no limit.
    """

    max_length: int | None = None

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, input_shape=None):
        """Build the variables; an encoding that has some needs the shape `[B, T, D]` or nothing."""
        self.built = True

    def embed(self, x, positions):
        """Add position to embeddings `[B, T, D]`."""
        return x

    def rotate(self, x, positions):
        """Turn queries or keys `[B, H, T, K]` by their position."""
        return x

    def bias(self, query_positions, key_positions, bidirectional):
        """Return what is added to the scores, `[1 or B, H, T, S]`, or None.

        Args:
            query_positions: int32 `[1 or B, T]`.
            key_positions: int32 `[1 or B, S]`.
            bidirectional: whether keys after the query can be attended to.
        """
        return None

    def call(self, x):
        """Encode `[B, T, D]` at positions 0 to T-1."""
        return self.embed(x, ops.expand_dims(ops.arange(ops.shape(x)[1]), 0))

    def compute_output_shape(self, input_shape):
        """Positions change no shape."""
        return input_shape

    def get_config(self):
        """Return every constructor argument; Keras' own default refuses one that is a dtype policy."""
        return super().get_config()


@_register
class SinusoidalPositions(Positions):
    """Sine and cosine of the position at geometric frequencies, added to the embeddings.

    PE(p, 2i) = sin(p / base^(2i/D)), PE(p, 2i+1) = cos(p / base^(2i/D)) (Vaswani et al. 2017, section 3.5),
    with all sines before all cosines, a fixed permutation of the published columns. No length limit.

    Args:
        base: ratio of the longest to the shortest wavelength.
    """

    def __init__(self, base=10000.0, **kwargs):
        super().__init__(**kwargs)
        self.base = base

    def embed(self, x, positions):
        """Add the encoding to `[B, T, D]`."""
        size = x.shape[-1]
        half = (size + 1) // 2
        frequency = ops.exp(ops.arange(half, dtype="float32") * (-2.0 * math.log(self.base) / size))
        angle = ops.expand_dims(ops.cast(positions, "float32"), -1) * frequency  # [1 or B, T, D/2]
        encoding = ops.concatenate([ops.sin(angle), ops.cos(angle)], axis=-1)[..., :size]
        return x + ops.cast(encoding, x.dtype)

    def get_config(self):
        """Return every constructor argument."""
        return {**super().get_config(), "base": self.base}


@_register
class LearnedPositions(Positions):
    """One trained vector for each position, added to the embeddings (Gehring et al. 2017, section 3.1).

    Longer input is refused: where its length is known, and in a graph on a CPU by an error of TensorFlow's
    that names the length and, in the node's name, the limit. XLA and accelerators can raise nothing there.

    Args:
        max_length: number of positions.
        initializer: of the table; default N(0, 0.02).
    """

    def __init__(self, max_length, initializer=None, **kwargs):
        super().__init__(**kwargs)
        if max_length < 1:
            raise ValueError(f"max_length must be at least 1, received {max_length}.")
        self.max_length = max_length
        self.initializer = keras.initializers.get(initializer) or keras.initializers.RandomNormal(stddev=0.02)

    def build(self, input_shape=None):
        """Build the table for `[B, T, D]`."""
        self.table = layers.Embedding(
            self.max_length, input_shape[-1], self.initializer, dtype=self.dtype_policy, name="table"
        )
        self.table.build()
        self.built = True

    def embed(self, x, positions):
        """Add the vectors of `positions` to `[B, T, D]`."""
        length = positions.shape[-1]
        if length is not None and length > self.max_length:
            raise ValueError(
                f"max_length of the learned positions is {self.max_length}, received a sequence of "
                f"length {length}."
            )
        # In a search a row that is done goes on beside the others, and may leave the table.
        x = x + self.table(ops.minimum(positions, self.table.input_dim - 1))
        return x if length is not None else x + ops.cast(self._refuse_beyond(positions), x.dtype)

    def _refuse_beyond(self, positions):
        """Return 0, by looking the length up in a table that ends at the limit."""
        with keras.name_scope(f"max_length_is_{self.max_length}"):
            return ops.take(ops.zeros((self.table.input_dim + 1,), "int32"), ops.shape(positions)[-1], axis=0)

    def get_config(self):
        """Return every constructor argument."""
        initializer = keras.initializers.serialize(self.initializer)
        return {**super().get_config(), "max_length": self.max_length, "initializer": initializer}


@_register
class RotaryPositions(Positions):
    """Queries and keys turned by angles that grow with position (Su et al. 2021, equation 34).

    Component i is paired with component i + K/2, a fixed permutation of the published pairs.

    Args:
        base: ratio of the longest to the shortest wavelength.
    """

    def __init__(self, base=10000.0, **kwargs):
        super().__init__(**kwargs)
        self.base = base

    def rotate(self, x, positions):
        """Turn `[B, H, T, K]`, K even, by `positions`."""
        size = x.shape[-1]
        if size % 2:
            raise ValueError(f"rotary positions need an even head size, received key_dim={size}.")
        frequency = ops.exp(ops.arange(size // 2, dtype="float32") * (-2.0 * math.log(self.base) / size))
        angle = ops.expand_dims(ops.cast(positions, "float32"), -1) * frequency
        angle = ops.expand_dims(angle, 1)  # [1 or B, 1, T, K/2]
        cosine, sine = ops.cast(ops.cos(angle), x.dtype), ops.cast(ops.sin(angle), x.dtype)
        first, second = x[..., : size // 2], x[..., size // 2 :]
        return ops.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)

    def get_config(self):
        """Return every constructor argument."""
        return {**super().get_config(), "base": self.base}


def linear_bias_slopes(num_heads):
    """Return the H slopes of ALiBi; for H no power of two, those of the next one fill up, every second."""
    power = 2 ** math.floor(math.log2(num_heads))
    slopes = [2.0 ** (-8.0 * (i + 1) / power) for i in range(power)]
    extra = [2.0 ** (-4.0 * (i + 1) / power) for i in range(0, 2 * power, 2)]
    return (slopes + extra)[:num_heads]


@_register
class LinearBias(Positions):
    """ALiBi: scores fall linearly with distance, at one slope a head (Press et al. 2022, section 3).

    Args:
        num_heads: H.
    """

    def __init__(self, num_heads, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads

    def bias(self, query_positions, key_positions, bidirectional):
        """Return -slope * |query - key|, float32 `[1 or B, H, T, S]`."""
        distance = ops.abs(ops.expand_dims(query_positions, 2) - ops.expand_dims(key_positions, 1))
        slopes = ops.reshape(ops.convert_to_tensor(linear_bias_slopes(self.num_heads)), (1, -1, 1, 1))
        return -slopes * ops.expand_dims(ops.cast(distance, "float32"), 1)

    def get_config(self):
        """Return every constructor argument."""
        return {**super().get_config(), "num_heads": self.num_heads}


@_register
class RelativeBias(Positions):
    """T5's trained bias for each bucket of distances and each head (Raffel et al. 2020, section 2.1).

    Half of the buckets are exact distances, the rest grow logarithmically up to `max_distance`; with
    `bidirectional` the two directions have buckets of their own.

    Args:
        num_heads: H.
        num_buckets: number of buckets.
        max_distance: all longer distances share the last bucket.
    """

    def __init__(self, num_heads, num_buckets=32, max_distance=128, **kwargs):
        super().__init__(**kwargs)
        if num_buckets < 4:
            raise ValueError(
                f"num_buckets must be at least 4, two for each direction, received {num_buckets}."
            )
        if max_distance <= num_buckets // 2:
            raise ValueError(
                "max_distance must be above half of num_buckets, the distances that have a bucket each, "
                f"received max_distance={max_distance} and num_buckets={num_buckets}."
            )
        self.num_heads = num_heads
        self.num_buckets = num_buckets
        self.max_distance = max_distance

    def build(self, input_shape=None):
        """Build the table `[buckets, H]`."""
        self.table = layers.Embedding(self.num_buckets, self.num_heads, dtype=self.dtype_policy, name="table")
        self.table.build()
        self.built = True

    def bias(self, query_positions, key_positions, bidirectional):
        """Return the trained bias, `[1 or B, H, T, S]`."""
        distance = ops.expand_dims(key_positions, 1) - ops.expand_dims(query_positions, 2)
        return ops.transpose(self.table(self._bucket(distance, bidirectional)), (0, 3, 1, 2))

    def _bucket(self, distance, bidirectional):
        buckets, offset = self.num_buckets, 0
        if bidirectional:
            buckets //= 2
            offset = ops.cast(distance > 0, "int32") * buckets
            distance = ops.abs(distance)
        else:
            distance = ops.maximum(-distance, 0)
        exact = buckets // 2
        ratio = ops.cast(ops.maximum(distance, exact), "float32") / exact
        steps = ops.log(ratio) / math.log(self.max_distance / exact) * (buckets - exact)
        far = ops.minimum(exact + ops.cast(steps, "int32"), buckets - 1)
        return offset + ops.where(distance < exact, distance, far)

    def get_config(self):
        """Return every constructor argument."""
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "num_buckets": self.num_buckets,
            "max_distance": self.max_distance,
        }
