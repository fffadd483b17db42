"""Multi-head attention (Vaswani et al. 2017, section 3.2.2).

Legend: B batch, T query length, S key length, D model, H heads, G key/value heads, K head size.
"""

import keras
from keras import layers, ops

from keras_seq2seq.layers.attend import Segment, attend
from keras_seq2seq.layers.dropout import Dropout
from keras_seq2seq.layers.masks import causal_mask, combine_masks

__all__ = ["MultiHeadAttention", "MultiHeadSelfAttention"]


def projection_initializer(fan_in, fan_out):
    """Glorot-uniform for one projection, also when several are fused into one matrix."""
    return keras.initializers.VarianceScaling(2.0 * fan_in / (fan_in + fan_out), "fan_in", "uniform")


def serialize_initializer(initializer):
    """Return the configuration of an initialiser that may be None."""
    return None if initializer is None else keras.initializers.serialize(initializer)


def fresh_initializer(initializer):
    """Copy an initialiser, which would give every matrix of one shape the same values; None stays None."""
    return None if initializer is None else initializer.clone()


def split_heads(x, length, parts, heads):
    """Turn `[B*T, parts*H*K]` into `parts` tensors `[B, H, T, K]`."""
    size = x.shape[-1] // (parts * heads)
    x = ops.reshape(x, (-1, length, parts * heads, size))
    x = ops.transpose(x, (0, 2, 1, 3))  # [B, parts*H, T, K]
    if parts == 1:
        return x
    return tuple(x[:, i * heads : (i + 1) * heads] for i in range(parts))


class _HeadedAttention(layers.Layer):
    """What the two layers share: the sizes, the mixing of heads and the output projection."""

    def __init__(
        self,
        num_heads,
        key_dim=None,
        num_key_value_heads=None,
        use_bias=True,
        dropout=0.0,
        kernel_initializer=None,
        output_initializer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        groups = num_heads if num_key_value_heads is None else num_key_value_heads
        if num_heads < 1 or groups < 1 or num_heads % groups:
            raise ValueError(
                "num_heads must be a positive multiple of num_key_value_heads, "
                f"received num_heads={num_heads} and num_key_value_heads={num_key_value_heads}."
            )
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.num_key_value_heads = num_key_value_heads
        self.groups = groups
        self.use_bias = use_bias
        self.dropout = dropout
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.output_initializer = keras.initializers.get(output_initializer or kernel_initializer)
        self.dropout_layer = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.input_spec = layers.InputSpec(ndim=3)
        self.supports_masking = True

    def _dense(self, fan_in, sizes, name, initializer=None):
        dense = layers.Dense(
            sum(sizes),
            use_bias=self.use_bias,
            kernel_initializer=fresh_initializer(initializer or self.kernel_initializer)
            or projection_initializer(fan_in, sizes[0]),
            dtype=self.dtype_policy,
            name=name,
        )
        dense.build((None, fan_in))
        return dense

    def mix(self, query, segments, training=None, return_weights=False):
        """Attend and project back to the model.

        Args:
            query: `[B, H, T, K]`.
            segments: list of `Segment`.

        Returns:
            `[B*T, D]`, and the weights float32 `[B, H, T, S]` or None.
        """
        # An inactive dropout is left out, not called: it would cost a pass over the weights.
        dropout = None
        if self.dropout and training is not False:
            dropout = lambda weights: self.dropout_layer(weights, training=training)  # noqa: E731
        context, weights = attend(query, segments, dropout, return_weights)
        context = ops.transpose(context, (0, 2, 1, 3))  # [B, T, H, K]
        context = ops.reshape(context, (-1, self.num_heads * query.shape[-1]))
        return self.output_dense(context), weights

    def get_config(self):
        """Return every constructor argument."""
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "num_key_value_heads": self.num_key_value_heads,
            "use_bias": self.use_bias,
            "dropout": self.dropout,
            "kernel_initializer": serialize_initializer(self.kernel_initializer),
            "output_initializer": serialize_initializer(self.output_initializer),
        }


@keras.saving.register_keras_serializable(package="keras_seq2seq")
class MultiHeadAttention(_HeadedAttention):
    """Attention from one sequence to another: softmax(QW_q (KW_k)^T / sqrt(K)) VW_v W_o.

    Args:
        num_heads: H.
        key_dim: K, the size of one head.
        num_key_value_heads: G, heads of keys and values, each shared by H/G query heads; default H.
        use_bias: whether the projections have biases.
        dropout: rate on the attention weights.
        kernel_initializer: initialiser of the projections; default Glorot-uniform, for each by itself.
        output_initializer: initialiser of the output projection; default `kernel_initializer`.

    Call arguments:
        query: `[B, T, Dq]`.
        value: `[B, S, Dv]`.
        key: `[B, S, Dk]`; default `value`. With a key of its own, key and value are projected apart.
        attention_mask: bool `[B, S]` or `[B, T, S]`, True = may attend.
        return_attention_scores: also return the weights.

    Returns:
        `[B, T, Dq]`; with `return_attention_scores` also the weights, float32 `[B, H, T, S]`. A query that
        may attend to nothing has zero weights and zero context before the output projection.

    Raises:
        ValueError: `num_heads` is no multiple of `num_key_value_heads`; a mask has another rank or dtype; a
            key for a layer that was built without one.
    """

    def __init__(self, num_heads, key_dim, **kwargs):
        super().__init__(num_heads, key_dim, **kwargs)

    def build(self, query_shape, value_shape, key_shape=None):
        """Build the projections; a key of its own gets a matrix of its own."""
        heads, groups = self.num_heads * self.key_dim, self.groups * self.key_dim
        self.query_dense = self._dense(query_shape[-1], [heads], "query")
        self.own_key = key_shape is not None
        if self.own_key:
            self.key_dense = self._dense(key_shape[-1], [groups], "key")
            self.value_dense = self._dense(value_shape[-1], [groups], "value")
        else:
            self.key_value_dense = self._dense(value_shape[-1], [groups, groups], "key_value")
        self.output_dense = self._dense(heads, [query_shape[-1]], "output", self.output_initializer)

    def project_query(self, x, length):
        """Project `[B*T, Dq]` to queries `[B, H, T, K]`."""
        return split_heads(self.query_dense(x), length, 1, self.num_heads)

    def project_memory(self, memory):
        """Project `[B, S, Dv]` once to the keys and values of all later queries, `[B, G, S, K]` each."""
        flat = ops.reshape(memory, (-1, memory.shape[-1]))
        return split_heads(self.key_value_dense(flat), ops.shape(memory)[1], 2, self.groups)

    def call(self, query, value, key=None, attention_mask=None, return_attention_scores=False, training=None):
        """Attend from `query` to `value`."""
        length = ops.shape(query)[1]
        if key is not None and not self.own_key:
            raise ValueError(
                "key was given to a layer that was built without one: its keys come from value. "
                "Give key in the first call too, or leave it out."
            )
        if self.own_key:
            key = value if key is None else key
            size = ops.shape(value)[1]
            keys = self.key_dense(ops.reshape(key, (-1, key.shape[-1])))
            values = self.value_dense(ops.reshape(value, (-1, value.shape[-1])))
            keys, values = split_heads(keys, size, 1, self.groups), split_heads(values, size, 1, self.groups)
        else:
            keys, values = self.project_memory(value)
        mask = combine_masks(attention_mask)
        mask = None if mask is None else ops.expand_dims(mask, 1)
        queries = self.project_query(ops.reshape(query, (-1, query.shape[-1])), length)
        output, weights = self.mix(queries, [Segment(keys, values, mask)], training, return_attention_scores)
        output = ops.reshape(output, ops.shape(query))
        return (output, weights) if return_attention_scores else output

    def compute_output_spec(
        self, query, value, key=None, attention_mask=None, return_attention_scores=False, training=None
    ):
        """Declare both outputs, so that scores can be asked for when a model is built."""
        output = keras.KerasTensor(query.shape, self.compute_dtype)
        if not return_attention_scores:
            return output
        shape = (query.shape[0], self.num_heads, query.shape[1], value.shape[1])
        return output, keras.KerasTensor(shape, "float32")


@keras.saving.register_keras_serializable(package="keras_seq2seq")
class MultiHeadSelfAttention(_HeadedAttention):
    """Attention of a sequence to itself, with queries, keys and values from one matrix product.

    Args:
        num_heads: H.
        key_dim: K, the size of one head; default D/H.
        num_key_value_heads: G, heads of keys and values, each shared by H/G query heads; default H.
        use_bias: whether the projections have biases.
        dropout: rate on the attention weights.
        positions: a position encoding whose `rotate` and `bias` are applied; default none.
        kernel_initializer: initialiser of the projections; default Glorot-uniform, for each by itself.
        output_initializer: initialiser of the output projection; default `kernel_initializer`.

    Call arguments:
        x: `[B, T, D]`.
        attention_mask: bool `[B, T]` (keys) or `[B, T, T]`, True = may attend.
        use_causal_mask: also hide later positions.
        return_attention_scores: also return the weights.

    Returns:
        `[B, T, D]`; with `return_attention_scores` also the weights, float32 `[B, H, T, T]`.

    Raises:
        ValueError: D is no multiple of `num_heads` and `key_dim` is not given; heads that do not divide.

    Example:
        >>> positions = ks.layers.RotaryPositions()
        >>> attention = ks.layers.MultiHeadSelfAttention(4, num_key_value_heads=2, positions=positions)
        >>> tuple(attention(np.ones((2, 5, 16)), use_causal_mask=True).shape)
        (2, 5, 16)
    """

    def __init__(self, num_heads, key_dim=None, positions=None, **kwargs):
        super().__init__(num_heads, key_dim, **kwargs)
        self.positions = positions

    def build(self, input_shape):
        """Build the fused projection and the output projection."""
        model_dim = input_shape[-1]
        if self.key_dim is None and model_dim % self.num_heads:
            raise ValueError(
                f"num_heads must divide the model dimension, received num_heads={self.num_heads} and "
                f"inputs of size {model_dim}; give key_dim to choose the head size."
            )
        size = self.key_dim or model_dim // self.num_heads
        sizes = [self.num_heads * size, self.groups * size, self.groups * size]
        self.query_key_value_dense = self._dense(model_dim, sizes, "query_key_value")
        self.output_dense = self._dense(sizes[0], [model_dim], "output", self.output_initializer)
        if self.positions is not None and not self.positions.built:
            self.positions.build()

    def project(self, x, length):
        """Project `[B*T, D]` to queries `[B, H, T, K]`, keys and values `[B, G, T, K]`."""
        x = self.query_key_value_dense(x)
        if self.groups == self.num_heads:
            return split_heads(x, length, 3, self.num_heads)
        heads, groups = self.num_heads, self.groups
        x = split_heads(x, length, 1, heads + 2 * groups)  # [B, H+2G, T, K]
        return x[:, :heads], x[:, heads : heads + groups], x[:, heads + groups :]

    def call(
        self,
        x,
        attention_mask=None,
        use_causal_mask=False,
        return_attention_scores=False,
        training=None,
    ):
        """Attend from every position to every allowed one."""
        length = ops.shape(x)[1]
        query, key, value = self.project(ops.reshape(x, (-1, x.shape[-1])), length)
        bias = None
        if self.positions is not None:
            at = ops.expand_dims(ops.arange(length), 0)
            query, key = self.positions.rotate(query, at), self.positions.rotate(key, at)
            bias = self.positions.bias(at, at, bidirectional=not use_causal_mask)
        mask = combine_masks(attention_mask, causal_mask(length) if use_causal_mask else None)
        mask = None if mask is None else ops.expand_dims(mask, 1)
        segment = Segment(key, value, mask, bias)
        output, weights = self.mix(query, [segment], training, return_attention_scores)
        output = ops.reshape(output, ops.shape(x))
        return (output, weights) if return_attention_scores else output

    def compute_output_spec(
        self, x, attention_mask=None, use_causal_mask=False, return_attention_scores=False, training=None
    ):
        """Declare both outputs, so that scores can be asked for when a model is built."""
        output = keras.KerasTensor(x.shape, self.compute_dtype)
        if not return_attention_scores:
            return output
        shape = (x.shape[0], self.num_heads, x.shape[1], x.shape[1])
        return output, keras.KerasTensor(shape, "float32")

    def get_config(self):
        """Return every constructor argument."""
        positions = None
        if self.positions is not None:
            positions = keras.saving.serialize_keras_object(self.positions)
        return {**super().get_config(), "positions": positions}

    @classmethod
    def from_config(cls, config):
        """Rebuild the layer, its position encoding included."""
        config = dict(config)
        if config.get("positions") is not None:
            config["positions"] = keras.saving.deserialize_keras_object(config["positions"])
        return cls(**config)
