"""Losses over a large vocabulary."""

import keras
from keras import ops

from keras_seq2seq.training.projected import Outcome, note_outcome, projected_crossentropy

__all__ = ["SmoothedCrossentropy", "smoothed_crossentropy"]


def smoothed_crossentropy(labels, logits, label_smoothing=0.0):
    """Cross-entropy against q = (1-e) one-hot + e/V (Szegedy et al. 2016), without building q.

    Args:
        labels: int `[...]`.
        logits: float `[..., V]`.
        label_smoothing: e.

    Returns:
        float32 `[...]`.
    """
    size = logits.shape[-1]
    labels = ops.expand_dims(ops.cast(labels, "int32"), -1)
    uniform = label_smoothing / size

    def at_label(x):
        # By comparison: the gradient of a gather is a scatter on one core.
        hit = ops.arange(size, dtype="int32") == labels
        return ops.sum(ops.where(hit, x, ops.zeros((), x.dtype)), axis=-1)

    @ops.custom_gradient
    def loss(logits):
        normalizer = ops.logsumexp(logits, axis=-1, keepdims=True)
        value = ops.squeeze(normalizer, -1) - (1.0 - label_smoothing) * at_label(logits)
        if label_smoothing:
            value = value - label_smoothing * ops.mean(logits, axis=-1)

        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            hit = ops.arange(size, dtype="int32") == labels
            # softmax - q, with q one of two numbers
            wanted = ops.where(hit, 1.0 - label_smoothing + uniform, uniform)
            return (ops.exp(logits - normalizer) - wanted) * ops.expand_dims(upstream, -1)

        return value, gradient

    return loss(ops.cast(logits, "float32"))


def _checked(labels, size):
    """Return 0, and have the backend look every label up, which TensorFlow refuses for one out of range."""
    labels = ops.where(labels < 0, size, labels)  # Keras counts these from the end
    return ops.cast(ops.sum(ops.take(ops.zeros((size,), "int32"), labels, axis=0)), "float32")


@keras.saving.register_keras_serializable(package="keras_seq2seq")
class SmoothedCrossentropy(keras.losses.Loss):
    """Label-smoothed cross-entropy, summed with the weights that come with the batch.

    Those weights sum to 1 over the global batch, which makes the sum a mean over tokens that depends neither
    on padding nor on the number of replicas.

    Labels where the weight is 0 are ignored, whatever they are. Another label outside the vocabulary, such as
    from a tokenizer with more ids than the model, is an error of TensorFlow's on a CPU: "indices ... is not
    in [0, V)". Under XLA and on accelerators nothing can be raised in the midst of a step: the loss stays
    finite there, and wrong.

    While a model of `keras_seq2seq.models` is trained, the loss is computed from what its logits are the
    product of, in chunks, and the logits are not computed unless something else needs them. Gradients then
    flow past the logits.

    Args:
        label_smoothing: e in [0, 1), the weight of the uniform distribution.

    Example:
        >>> loss, labels = ks.training.SmoothedCrossentropy(0.1), np.array([[7, 3, 0, 0]])
        >>> value = loss(labels, np.zeros((1, 4, 100)), np.array([[0.5, 0.5, 0.0, 0.0]]))
        >>> round(float(value), 4)  # log 100
        4.6052
    """

    def __init__(self, label_smoothing=0.0, name="smoothed_crossentropy", **kwargs):
        super().__init__(name=name, reduction=kwargs.pop("reduction", "sum"), **kwargs)
        if not 0.0 <= label_smoothing < 1.0:
            raise ValueError(f"label_smoothing must be in [0, 1), received {label_smoothing}.")
        self.label_smoothing = label_smoothing

    def __call__(self, y_true, y_pred, sample_weight=None):
        """Return the weighted sum of the loss; a label that counts must be in the vocabulary."""
        labels = ops.cast(y_true, "int32")
        if sample_weight is not None:
            labels = ops.where(ops.convert_to_tensor(sample_weight) > 0, labels, 0)
        loss = self._projected(y_true, labels, y_pred, sample_weight)
        if loss is None:
            loss = super().__call__(y_true, y_pred, sample_weight)
        return loss + _checked(labels, y_pred.shape[-1])

    def _projected(self, y_true, labels, y_pred, weights):
        """Return the loss from what the logits are the product of, or None where they do not say."""
        parts = getattr(y_pred, "_projection_parts", None)
        if parts is None or weights is None or self.reduction != "sum":
            return None
        weights = ops.cast(ops.convert_to_tensor(weights), "float32")
        if tuple(weights.shape) != tuple(labels.shape):
            return None
        shape = ops.shape(labels)
        x, kernel, bias = parts()
        flat = ops.reshape(labels, (-1,)), ops.reshape(weights, (-1,))
        loss, outcome = projected_crossentropy(*flat, x, kernel, bias, self.label_smoothing)
        note_outcome(y_true, y_pred, Outcome(*(ops.reshape(part, shape) for part in outcome)))
        return ops.cast(loss, self.dtype)

    def call(self, y_true, y_pred):
        """Return the loss of each position, `[B, T]`."""
        return smoothed_crossentropy(y_true, y_pred, self.label_smoothing)

    def get_config(self):
        """Return every constructor argument."""
        return {**super().get_config(), "label_smoothing": self.label_smoothing}
