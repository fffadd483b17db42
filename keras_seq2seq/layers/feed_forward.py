"""The position-wise feed-forward sublayer."""

import keras
from keras import layers

from keras_seq2seq.layers.dropout import Dropout
from keras_seq2seq.layers.multi_head import fresh_initializer, projection_initializer, serialize_initializer

__all__ = ["FeedForward"]

# Gated units: which activation the gate has (Shazeer 2020, "GLU Variants Improve Transformer").
GATES = {"glu": "sigmoid", "reglu": "relu", "geglu": "gelu", "swiglu": "silu"}


@keras.saving.register_keras_serializable(package="keras_seq2seq")
class FeedForward(layers.Layer):
    """Two projections with an activation between them (Vaswani et al. 2017, equation 2).

    Plain: W_2 f(W_1 x). Gated: W_2 (f(W_g x) * W_1 x), with W_g and W_1 in one matrix.

    Args:
        hidden_dim: size between the projections.
        activation: any Keras activation, or "glu", "reglu", "geglu", "swiglu".
        dropout: rate between the projections.
        use_bias: whether the projections have biases.
        kernel_initializer: initialiser of the projections; default Glorot-uniform, for each by itself.
        output_initializer: initialiser of the second projection; default `kernel_initializer`.

    Call arguments:
        x: `[..., D]`.

    Returns:
        `[..., D]`.
    """

    def __init__(
        self,
        hidden_dim,
        activation="relu",
        dropout=0.0,
        use_bias=True,
        kernel_initializer=None,
        output_initializer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if isinstance(activation, dict):  # a function, as a saved file has it
            activation = keras.activations.get(activation)
        self.hidden_dim = hidden_dim
        self.activation = activation
        self.gated = activation in GATES
        self.activate = keras.activations.get(GATES.get(activation, activation))
        self.dropout = dropout
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.output_initializer = keras.initializers.get(output_initializer or kernel_initializer)
        self.dropout_layer = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.supports_masking = True

    def build(self, input_shape):
        """Build the projections."""
        model_dim = input_shape[-1]
        self.hidden_dense = layers.Dense(
            self.hidden_dim * (2 if self.gated else 1),
            use_bias=self.use_bias,
            kernel_initializer=fresh_initializer(self.kernel_initializer)
            or projection_initializer(model_dim, self.hidden_dim),
            dtype=self.dtype_policy,
            name="hidden",
        )
        self.hidden_dense.build((None, model_dim))
        self.output_dense = layers.Dense(
            model_dim,
            use_bias=self.use_bias,
            kernel_initializer=fresh_initializer(self.output_initializer) or "glorot_uniform",
            dtype=self.dtype_policy,
            name="output",
        )
        self.output_dense.build((None, self.hidden_dim))

    def call(self, x, training=None):
        """Transform every position by itself."""
        hidden = self.hidden_dense(x)
        if self.gated:
            hidden = self.activate(hidden[..., : self.hidden_dim]) * hidden[..., self.hidden_dim :]
        else:
            hidden = self.activate(hidden)
        if self.dropout:
            hidden = self.dropout_layer(hidden, training=training)
        return self.output_dense(hidden)

    def compute_output_spec(self, x, training=None):
        """Nothing changes shape."""
        return keras.KerasTensor(x.shape, self.compute_dtype)

    def get_config(self):
        """Return every constructor argument."""
        activation = self.activation
        if not isinstance(activation, str):
            activation = keras.activations.serialize(activation)
        return {
            **super().get_config(),
            "hidden_dim": self.hidden_dim,
            "activation": activation,
            "dropout": self.dropout,
            "use_bias": self.use_bias,
            "kernel_initializer": serialize_initializer(self.kernel_initializer),
            "output_initializer": serialize_initializer(self.output_initializer),
        }
