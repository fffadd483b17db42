"""Learning-rate schedules that count optimizer updates."""

import keras
from keras import ops

__all__ = ["WarmupInverseSqrt"]


@keras.saving.register_keras_serializable(package="keras_seq2seq")
class WarmupInverseSqrt(keras.optimizers.schedules.LearningRateSchedule):
    """Rise linearly to `peak`, then fall with the inverse square root (Vaswani et al. 2017, equation 3).

    lr(n) = peak * min(n / w, sqrt(w / n)) for update n = 1, 2, ... and w warm-up updates. The published
    schedule for model dimension D is `peak = (D * w) ** -0.5`.

    Args:
        peak: the highest learning rate.
        warmup_steps: w.
    """

    def __init__(self, peak, warmup_steps):
        super().__init__()
        if warmup_steps < 1:
            raise ValueError(f"warmup_steps must be at least 1, received {warmup_steps}.")
        self.peak = peak
        self.warmup_steps = warmup_steps

    def __call__(self, step):
        """Return the learning rate of the update after `step` updates."""
        update = ops.cast(step, "float32") + 1.0
        warmup = float(self.warmup_steps)
        return self.peak * ops.minimum(update / warmup, ops.sqrt(warmup / update))

    def get_config(self):
        """Return every constructor argument."""
        return {"peak": self.peak, "warmup_steps": self.warmup_steps}
