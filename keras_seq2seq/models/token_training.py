"""What Keras does not know about training models of sequences, and about keeping their weights."""

import keras
import numpy as np
from keras import ops

__all__ = ["TokenTraining"]


class TokenTraining(keras.Model):
    """A Keras model whose displayed loss counts every real position once.

    Weights that sum to 1 over a batch make the batch's loss a mean over its tokens, but Keras then averages
    batches by their rows. Here each batch (or a replica's share of one) counts by its number of positions
    with weight above 0.
    """

    def compile(self, *args, **kwargs):
        """Compile as `keras.Model.compile` does.

        Raises:
            ValueError: under a strategy with several replicas, an optimizer that would clip the gradients
                of each of them by itself.
        """
        super().compile(*args, **kwargs)
        strategy = getattr(self, "distribute_strategy", None)  # TensorFlow's, which owns new variables
        replicas = 1 if strategy is None else strategy.num_replicas_in_sync
        if self.optimizer is not None and replicas > 1:
            _decide_for_all_replicas(self.optimizer, replicas)
        if hasattr(self, "token_loss"):  # compiled before; Keras would keep both
            return
        with strategy.scope() if strategy is not None else keras.name_scope("token_loss"):
            self.token_loss = keras.metrics.Mean(name="loss")

    def compile_from_config(self, config):
        """Compile a loaded model as it was saved, which Keras leaves out where `compile` is not its own."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        if self.optimizer is not None:
            self.optimizer.build(self.trainable_variables)

    @property
    def metrics(self):
        """Return the metrics, the loss first and once: Keras' own mean of it has the same name."""
        metrics = super().metrics
        ours = getattr(self, "token_loss", None)
        if ours is None:
            return metrics
        return [ours, *(metric for metric in metrics if metric.name != ours.name)]

    def fit(self, x=None, y=None, **kwargs):
        """Train as `keras.Model.fit` does; a data set of batches comes shuffled and is taken as it is.

        Raises:
            ValueError: a data set that repeats for ever, without `steps_per_epoch`.
        """
        count = getattr(x, "cardinality", None)
        endless = callable(count) and int(count()) == -1  # tf.data's mark
        if endless and kwargs.get("steps_per_epoch") is None:
            raise ValueError("a data set that repeats for ever needs steps_per_epoch, or no epoch would end.")
        if y is None:
            kwargs.setdefault("shuffle", False)
        return super().fit(x, y, **kwargs)

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
        return self._group_loss(loss, share, count) if training else loss

    def _group_loss(self, loss, share, count):
        """Return the loss of a batch of a group: a sum over its tokens, which the optimizer counts."""
        optimizer = self.optimizer
        while optimizer is not None and not hasattr(optimizer, "note_tokens"):
            optimizer = getattr(optimizer, "inner_optimizer", None)
        if optimizer is None or optimizer.steps == 1:
            return loss
        optimizer.build(self.trainable_variables)
        optimizer.note_tokens(count)
        # Weights of one value each: their number over their sum is what one of them stands for.
        return loss * ops.cast(ops.where(share > 0, count / ops.maximum(share, 1e-20), 0.0), loss.dtype)

    def get_metrics_result(self):
        """Report the mean over tokens under the name "loss"."""
        return {**super().get_metrics_result(), "loss": self.token_loss.result()}

    def save_own_variables(self, store):
        """Note how many weights there are."""
        store["weight_count"] = np.asarray(len(self.weights), "int32")

    def load_own_variables(self, store):
        """Refuse the weights of another architecture: Keras reads those of a deeper one in silence."""
        count = int(np.asarray(store["weight_count"])) if "weight_count" in store else None
        if count != len(self.weights):
            raise ValueError(
                f"the model has {len(self.weights)} weights, the file {count or 'does not say how many'}: "
                "it was written by a model of another architecture."
            )


def _decide_for_all_replicas(optimizer, replicas):
    """Refuse clipping of each replica by itself, and leave a batch out in all replicas or in none."""
    clipping = optimizer
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        _check_all_replicas(optimizer)
        clipping = optimizer.inner_optimizer
    for name in ("clipnorm", "global_clipnorm", "clipvalue"):
        value = getattr(clipping, name, None)
        if value is not None:
            raise ValueError(
                f"{name}={value} must be that of an optimizer in GlobalBatch: without it Keras clips the "
                f"gradients of each of the {replicas} replicas by itself."
            )


def _check_all_replicas(optimizer):
    """Let a loss scale see the gradients of all replicas; Keras decides by those of the first alone."""
    if "check_finite" in vars(optimizer):
        return
    check_own = optimizer.check_finite

    def check_finite(grads):
        overflow = ops.cast(ops.logical_not(check_own(grads)), "float32")
        ((overflows, _),) = optimizer._all_reduce_sum_gradients([(overflow, None)])
        return ops.equal(overflows, 0.0)

    optimizer.check_finite = check_finite
