"""One update of an optimizer for one global batch: over all replicas, and over several batches."""

import keras
from keras import ops

__all__ = ["GlobalBatch"]


@keras.saving.register_keras_serializable(package="keras_seq2seq")
class GlobalBatch(keras.optimizers.Optimizer):
    """Give an optimizer the gradient of the whole global batch, as if one device had seen it at once.

    Under a strategy of `tf.distribute` Keras clips the gradients of each replica before it adds them, and its
    `gradient_accumulation_steps` fails or counts every batch of a group alike. Here gradients are added over
    the replicas first and then over `steps` batches; clipping, weight decay, moving averages and the update
    come after that, once, and schedules count updates. What `optimizer` says of clipping is then global.

    The models of this library weigh the batches of a group by their tokens: the update is that of one big
    batch with the same rows, whether the weights of each batch sum to 1 or those of the group to `steps`.
    With other models the gradients of a group are averaged, so that weights must sum to `steps` over it.

    Under mixed precision in float16 Keras puts a `LossScaleOptimizer` around this one, and a batch whose
    gradients are not finite is left out of its group.

    Args:
        optimizer: a Keras optimizer without `gradient_accumulation_steps`.
        steps: batches to a group.

    Raises:
        ValueError: `steps` below 1, or an optimizer that accumulates by itself.
    """

    def __init__(self, optimizer, steps=1, name="global_batch"):
        super().__init__(learning_rate=0.0, name=name)
        if keras.backend.backend() != "tensorflow":
            raise ValueError(f"GlobalBatch needs TensorFlow, the backend is {keras.backend.backend()!r}.")
        if not isinstance(steps, int) or steps < 1:
            raise ValueError(f"steps must be an integer of at least 1, received {steps!r}.")
        if optimizer.gradient_accumulation_steps:
            raise ValueError(
                "optimizer must not accumulate by itself, received gradient_accumulation_steps="
                f"{optimizer.gradient_accumulation_steps}."
            )
        self.inner_optimizer = optimizer
        self.steps = steps
        # They arrive added up.
        optimizer._all_reduce_sum_gradients = lambda grads_and_vars: list(grads_and_vars)

    def build(self, variables):
        """Make the sums of a group, and the inner optimizer's variables."""
        if self.built:
            return
        self.inner_optimizer.build(variables)
        if self.steps > 1:
            self.batches = self.add_variable((), dtype="int32", name="batches")
            # Tokens of the batch at hand, noted by the loss in each replica; and of the group so far.
            self.batch_tokens = self.add_variable((), dtype="float32", aggregation="sum", name="batch_tokens")
            self.tokens = self.add_variable((), dtype="float32", name="tokens")
            self.sums = [self.add_variable_from_reference(v, name="sum") for v in variables]
        super().build(variables)

    @property
    def variables(self):
        """Return the variables of both."""
        return self._variables + self.inner_optimizer.variables

    @property
    def iterations(self):
        """Return the number of updates."""
        return self.inner_optimizer.iterations

    @property
    def learning_rate(self):
        """Return the inner optimizer's."""
        return self.inner_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate):
        self.inner_optimizer.learning_rate = learning_rate

    def note_tokens(self, count):
        """Take note of how many tokens this replica's share of the batch has; the loss calls it."""
        self.batch_tokens.assign(count)

    def apply(self, grads, trainable_variables=None):
        """Add a batch's gradients up, and update after `steps` of them."""
        import tensorflow as tf

        variables = list(trainable_variables or self._trainable_variables)
        self.build(variables)
        reduced = self._all_reduce_sum_gradients(list(zip(grads, variables, strict=True)))
        grads = [grad if grad is None else ops.convert_to_tensor(grad) for grad, _ in reduced]
        if self.steps == 1:
            self.inner_optimizer.apply(grads, variables)
        elif tf.__internal__.distribute.strategy_supports_no_merge_call():
            self._add(tf.distribute.get_strategy(), grads)
            ops.cond(self._is_full(), lambda: self._update(variables), lambda: None)
        else:  # a condition around an update must stand outside the replicas
            tf.distribute.get_replica_context().merge_call(self._add_and_update, args=(grads, variables))
        self._iterations.assign_add(1)  # counts batches

    def _add_and_update(self, strategy, grads, variables):
        self._add(strategy, grads)
        in_replicas = strategy.extended.call_for_each_replica
        ops.cond(self._is_full(), lambda: in_replicas(self._update, args=(variables,)), lambda: None)

    def _add(self, strategy, grads):
        """Add a batch to the group; the first of a group begins anew."""
        first = ops.equal(ops.mod(self.batches, self.steps), 0)

        def add(variable, value):
            before = ops.where(first, ops.zeros_like(variable), variable)
            variable.assign(before + ops.cast(value, variable.dtype))

        def update(variable, value):
            strategy.extended.update(variable.value, add, args=(value,), group=False)

        for total, grad in zip(self.sums, grads, strict=True):
            if grad is not None:
                update(total, grad)
        update(self.tokens, self.batch_tokens.value)
        update(self.batches, 1)

    def _is_full(self):
        return ops.equal(self.batches, self.steps)

    def _update(self, variables):
        """Update with the mean over the tokens of the group, or over its batches if nobody counted tokens."""
        tokens = ops.convert_to_tensor(self.tokens)
        scale = ops.where(tokens > 0, tokens, float(self.steps))
        self.inner_optimizer.apply([total / ops.cast(scale, total.dtype) for total in self.sums], variables)

    def finalize_variable_values(self, var_list):
        """Let the inner optimizer finish, with its moving average if it has one."""
        self.inner_optimizer.finalize_variable_values(var_list)

    def get_config(self):
        """Return every constructor argument."""
        optimizer = keras.saving.serialize_keras_object(self.inner_optimizer)
        return {"optimizer": optimizer, "steps": self.steps, "name": self.name}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """Rebuild both."""
        load = keras.saving.deserialize_keras_object
        return cls(**{**config, "optimizer": load(config["optimizer"], custom_objects=custom_objects)})
