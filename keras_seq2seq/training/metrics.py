"""Metrics as means over tokens: every position with weight above 0 counts once."""

import keras
from keras import ops

from keras_seq2seq.training.losses import smoothed_crossentropy
from keras_seq2seq.training.projected import outcome_of

__all__ = ["Perplexity", "TokenAccuracy"]


class _TokenMean(keras.metrics.Metric):
    """The mean of a value per position, over positions with weight above 0."""

    def __init__(self, name, **kwargs):
        super().__init__(name=name, **kwargs)
        self.total = self.add_variable((), "zeros", name="total", dtype="float32")
        self.count = self.add_variable((), "zeros", name="count", dtype="float32")

    def values(self, labels, logits):
        """Return the value of each position, `[B, T]`."""
        raise NotImplementedError

    def _known(self, outcome):
        """Return the same from an `Outcome` of the loss."""
        raise NotImplementedError

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Add a batch: labels int `[B, T]`, logits `[B, T, V]`, weights `[B, T]` (default: all real)."""
        outcome = None if sample_weight is None else outcome_of(y_true, y_pred)
        if outcome is None:
            values = ops.cast(self.values(ops.cast(y_true, "int32"), y_pred), "float32")
        else:
            values = self._known(outcome)
        real = ops.ones_like(values)
        if sample_weight is not None:
            real = ops.cast(ops.convert_to_tensor(sample_weight) > 0, "float32")
        self.total.assign_add(ops.sum(values * real))
        self.count.assign_add(ops.sum(real))

    def result(self):
        """Return the mean so far, 0 before the first token."""
        return self.total / ops.maximum(self.count, 1.0)


@keras.saving.register_keras_serializable(package="keras_seq2seq")
class TokenAccuracy(_TokenMean):
    """The share of positions whose label has the highest logit. Use it as a `weighted_metrics`."""

    def __init__(self, name="token_accuracy", **kwargs):
        super().__init__(name=name, **kwargs)

    def values(self, labels, logits):
        """Return 1 where the label has the highest logit."""
        # Comparing with the maximum is several times cheaper than argmax.
        hit = ops.arange(logits.shape[-1], dtype="int32") == ops.expand_dims(labels, -1)
        at_label = ops.max(ops.where(hit, logits, ops.cast(-1e30, logits.dtype)), axis=-1)
        return at_label >= ops.max(logits, axis=-1)

    def _known(self, outcome):
        """Return what the loss has found right."""
        return outcome.correct


@keras.saving.register_keras_serializable(package="keras_seq2seq")
class Perplexity(_TokenMean):
    """exp of the mean cross-entropy, without label smoothing. Use it as a `weighted_metrics`."""

    def __init__(self, name="perplexity", **kwargs):
        super().__init__(name=name, **kwargs)

    def values(self, labels, logits):
        """Return the cross-entropy of each position."""
        return smoothed_crossentropy(labels, logits)

    def _known(self, outcome):
        """Return what the loss has computed."""
        return outcome.cross_entropy

    def result(self):
        """Return the perplexity so far."""
        return ops.exp(super().result())
