"""The Transformer block: self-attention, cross-attention and feed-forward (Vaswani et al. 2017).

Legend: B batch, T target length, D model, H heads, G key/value heads, K head size.
"""

from typing import Any

import keras
from keras import layers

from keras_seq2seq.layers import AddNorm, FeedForward, MultiHeadAttention, MultiHeadSelfAttention
from keras_seq2seq.layers.multi_head import serialize_initializer

__all__ = ["TransformerBlock"]


@keras.saving.register_keras_serializable(package="keras_seq2seq")
class TransformerBlock(layers.Layer):
    """Self-attention, cross-attention where there is a memory, and feed-forward, each in an `AddNorm`.

    Args:
        num_heads: H.
        feed_forward_dim: size inside the feed-forward sublayer.
        cross_attention: whether the block attends to a memory.
        key_dim: K; default D/H.
        num_key_value_heads: G; default H.
        activation: of the feed-forward sublayer; see `FeedForward`.
        placement: "pre" or "post"; see `AddNorm`.
        normalization: "layer" or "rms".
        dropout: rate on the output of every sublayer.
        attention_dropout: rate on the attention weights.
        activation_dropout: rate inside the feed-forward sublayer.
        use_bias: whether projections have biases.
        kernel_initializer: of all projections; default Glorot-uniform, for each by itself.
        output_initializer: of the projections that end a sublayer; default `kernel_initializer`.
    """

    def __init__(
        self,
        num_heads,
        feed_forward_dim,
        cross_attention=False,
        key_dim=None,
        num_key_value_heads=None,
        activation="relu",
        placement="pre",
        normalization="layer",
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
        use_bias=True,
        kernel_initializer=None,
        output_initializer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        initializers = {
            "kernel_initializer": keras.initializers.get(kernel_initializer),
            "output_initializer": keras.initializers.get(output_initializer),
        }
        self.options = {
            "num_heads": num_heads,
            "feed_forward_dim": feed_forward_dim,
            "cross_attention": cross_attention,
            "key_dim": key_dim,
            "num_key_value_heads": num_key_value_heads,
            "activation": activation,
            "placement": placement,
            "normalization": normalization,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "activation_dropout": activation_dropout,
            "use_bias": use_bias,
            **{name: serialize_initializer(value) for name, value in initializers.items()},
        }
        policy = self.dtype_policy
        shared = {"use_bias": use_bias, "dtype": policy, **initializers}
        heads = {"num_key_value_heads": num_key_value_heads, "dropout": attention_dropout, **shared}
        norms = {"placement": placement, "normalization": normalization, "dropout": dropout, "dtype": policy}
        self.self_attention = MultiHeadSelfAttention(num_heads, key_dim, name="self_attention", **heads)
        self.self_add_norm = AddNorm(name="self_add_norm", **norms)
        self.cross_attention: Any = None
        if cross_attention:
            self.cross_options = heads
            self.cross_add_norm = AddNorm(name="cross_add_norm", **norms)
        self.feed_forward = FeedForward(
            feed_forward_dim, activation, activation_dropout, name="feed_forward", **shared
        )
        self.feed_add_norm = AddNorm(name="feed_add_norm", **norms)

    def build(self, input_shape, memory_shape=None):
        """Build for activations `[N, D]` and a memory `[B, S, Dm]`."""
        model_dim = input_shape[-1]
        flat = (None, model_dim)
        self.self_attention.build((None, None, model_dim))
        self.self_add_norm.build(flat)
        self.key_dim = self.options["key_dim"] or model_dim // self.options["num_heads"]
        if self.options["cross_attention"]:  # made here, as the head size may come from D
            self.cross_attention = MultiHeadAttention(
                self.options["num_heads"], self.key_dim, name="cross_attention", **self.cross_options
            )
            self.cross_attention.build((None, None, model_dim), memory_shape)
            self.cross_add_norm.build(flat)
        self.feed_forward.build(flat)
        self.feed_add_norm.build(flat)

    def run(self, x, length, positions, own, cross=None, training=None, weights=None):
        """Run the block on `[B*T, D]`.

        Args:
            x: activations `[B*T, D]`.
            length: T.
            positions: a function that turns queries or keys `[B, H, T, K]` by their position.
            own: a function from this block's new keys and values to (segments, what to keep of them).
            cross: the memory's `Segment`, or None.
            training: whether dropout is active.
            weights: a list that receives the cross-attention weights `[B, H, T, S]`, or None.

        Returns:
            `[B*T, D]`, and what `own` keeps.
        """
        query, key, value = self.self_attention.project(self.self_add_norm.before(x), length)
        segments, kept = own(positions(key), value)
        mixed, _ = self.self_attention.mix(positions(query), segments, training)
        x = self.self_add_norm.after(x, mixed, training)
        if cross is not None:
            query = self.cross_attention.project_query(self.cross_add_norm.before(x), length)
            mixed, seen = self.cross_attention.mix(query, [cross], training, weights is not None)
            if weights is not None:
                weights.append(seen)
            x = self.cross_add_norm.after(x, mixed, training)
        fed = self.feed_forward(self.feed_add_norm.before(x), training=training)
        return self.feed_add_norm.after(x, fed, training), kept

    def get_config(self):
        """Return every constructor argument."""
        return {**super().get_config(), **dict(self.options)}
