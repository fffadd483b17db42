"""Residual connection, dropout and normalisation: the one place that knows pre-norm from post-norm."""

import keras
from keras import layers

from keras_seq2seq.layers.dropout import Dropout

__all__ = ["AddNorm"]


@keras.saving.register_keras_serializable(package="keras_seq2seq")
class AddNorm(layers.Layer):
    """Join a sublayer's output with its input.

    Post-norm (Vaswani et al. 2017): norm(x + dropout(f(x))). Pre-norm (Xiong et al. 2020):
    x + dropout(f(norm(x))). Around a sublayer f it is called twice, `before` and `after`.

    Args:
        placement: "pre" or "post".
        normalization: "layer" (Ba et al. 2016) or "rms" (Zhang and Sennrich 2019).
        dropout: rate on the sublayer's output.
        epsilon: added to the variance.

    Call arguments:
        x: the sublayer's input, `[..., D]`.
        y: the sublayer's output, `[..., D]`.

    Returns:
        `[..., D]`.

    Raises:
        ValueError: an unknown `placement` or `normalization`.

    Example:
        >>> add_norm, f = ks.layers.AddNorm("pre", "rms", dropout=0.1), keras.layers.Dense(16)
        >>> x = np.ones((2, 5, 16))
        >>> y = f(add_norm.before(x))
        >>> tuple(add_norm.after(x, y).shape)  # or add_norm(x, y)
        (2, 5, 16)
    """

    def __init__(self, placement="pre", normalization="layer", dropout=0.0, epsilon=1e-6, **kwargs):
        super().__init__(**kwargs)
        if placement not in ("pre", "post"):
            raise ValueError(f'placement must be "pre" or "post", received {placement!r}.')
        self.placement = placement
        self.normalization = normalization
        self.dropout = dropout
        self.epsilon = epsilon
        self.norm = make_norm(normalization, epsilon, dtype=self.dtype_policy, name="norm")
        self.dropout_layer = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.supports_masking = True

    def build(self, x_shape, y_shape=None):
        """Build the norm."""
        self.norm.build(x_shape)

    def before(self, x):
        """Return the sublayer's input."""
        return self.norm(x) if self.placement == "pre" else x

    def after(self, x, y, training=None):
        """Join the sublayer's input and output."""
        if self.dropout:
            y = self.dropout_layer(y, training=training)
        return x + y if self.placement == "pre" else self.norm(x + y)

    def call(self, x, y, training=None):
        """Join the sublayer's input and output."""
        return self.after(x, y, training=training)

    def compute_mask(self, x, mask=None):
        """Forward the mask that arrives with the sublayer's input."""
        return mask

    def compute_output_spec(self, x, y, training=None):
        """Nothing changes shape."""
        return keras.KerasTensor(x.shape, self.compute_dtype)

    def get_config(self):
        """Return every constructor argument."""
        return {
            **super().get_config(),
            "placement": self.placement,
            "normalization": self.normalization,
            "dropout": self.dropout,
            "epsilon": self.epsilon,
        }


def make_norm(normalization, epsilon=1e-6, **kwargs):
    """Return the Keras layer for "layer" or "rms"."""
    if normalization == "layer":
        return layers.LayerNormalization(epsilon=epsilon, **kwargs)
    if normalization == "rms":
        return layers.RMSNormalization(epsilon=epsilon, **kwargs)
    raise ValueError(f'normalization must be "layer" or "rms", received {normalization!r}.')
