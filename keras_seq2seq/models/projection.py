"""Logits that know what they were made of, so that a loss can do without them."""

import contextlib

from keras import layers, ops

__all__ = ["remember_projection"]


def remember_projection(logits, x, layer):
    """Put beside logits a function that returns what they are the product of.

    `training.SmoothedCrossentropy` looks for it, and goes through positions and vocabulary in chunks. Where
    nothing else reads the logits, they are then never computed. Gradients flow to `x` and to the layer's
    weights, past the logits.

    Args:
        logits: `[B, T, V]`.
        x: `[B*T, D]`.
        layer: the `Dense` or, for its matrix transposed, the `ReversibleEmbedding` that projects x.
    """

    def parts():
        """Return x `[B*T, D]`, the kernel `[V, D]` and the bias `[V]` or None, all float32."""
        if isinstance(layer, layers.ReversibleEmbedding):
            kernel, bias = ops.cast(ops.convert_to_tensor(layer.embeddings), layer.compute_dtype), None
        else:
            kernel, bias = ops.transpose(ops.convert_to_tensor(layer.kernel)), layer.bias
        bias = None if bias is None else ops.cast(ops.convert_to_tensor(bias), "float32")
        return ops.cast(x, "float32"), ops.cast(kernel, "float32"), bias

    with contextlib.suppress(AttributeError):  # JAX's arrays take no attributes
        logits._projection_parts = parts
