"""The loss that `fit` shows: a mean over tokens, however batches are cut."""

import keras
from keras import ops

__all__ = ["TokenMeanLoss"]


class TokenMeanLoss:
    """A mixin for `keras.Model`: the displayed loss counts every real position once.

    Weights that sum to 1 over a batch make the batch's loss a mean over its tokens, but Keras then averages
    batches by their rows. Here each batch (or a replica's share of one) counts by its number of positions
    with weight above 0.
    """

    def compile(self, *args, **kwargs):
        """Compile as `keras.Model.compile` does."""
        super().compile(*args, **kwargs)
        with self.distribute_scope():
            self.token_loss = keras.metrics.Mean(name="loss")

    def distribute_scope(self):
        """Return the scope in which metrics must be made."""
        strategy = getattr(self, "distribute_strategy", None)
        return strategy.scope() if strategy is not None else keras.name_scope("token_loss")

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Compute the loss as Keras does, and note its mean over tokens."""
        loss = super().compute_loss(x, y, y_pred, sample_weight, training)
        if sample_weight is None:
            count = ops.cast(ops.size(y), "float32")
            share = count
        else:
            weights = ops.cast(sample_weight, "float32")
            count = ops.sum(ops.cast(weights > 0, "float32"))
            share = ops.sum(weights)
        # loss / share is the mean over this share's tokens, whatever the weights sum to.
        mean = ops.where(share > 0, ops.cast(loss, "float32") / ops.maximum(share, 1e-20), 0.0)
        self.token_loss.update_state(mean, sample_weight=count)
        return loss

    def get_metrics_result(self):
        """Report the mean over tokens under the name "loss"."""
        return {**super().get_metrics_result(), "loss": self.token_loss.result()}
