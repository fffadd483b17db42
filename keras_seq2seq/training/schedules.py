"""Learning-rate schedules that count optimizer updates."""

import math

import keras
from keras import ops

__all__ = ["WarmupCosine", "WarmupInverseSqrt", "WarmupLinear"]


@keras.saving.register_keras_serializable(package="keras_seq2seq")
class WarmupInverseSqrt(keras.optimizers.schedules.LearningRateSchedule):
    """Rise linearly to `peak`, then fall with the inverse square root (Vaswani et al. 2017, equation 3).

    lr(n) = peak * min(n / w, sqrt(w / n)) for update n = 1, 2, ... and w warm-up updates. The published
    schedule for model dimension D is `peak = (D * w) ** -0.5`.

    Args:
        peak: the highest learning rate.
        warmup_steps: w.

    Example:
        >>> rate = ks.training.WarmupInverseSqrt(2e-3, warmup_steps=100)
        >>> [round(float(rate(step)), 6) for step in (0, 99, 399)]
        [2e-05, 0.002, 0.001]
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


class _WarmupThenFall(keras.optimizers.schedules.LearningRateSchedule):
    """Rise linearly to `peak` at update w, then fall to `final` at update N, and stay there."""

    def __init__(self, peak, warmup_steps, total_steps, final=0.0):
        super().__init__()
        if warmup_steps < 0:
            raise ValueError(f"warmup_steps must be at least 0, received {warmup_steps}.")
        if total_steps <= warmup_steps:
            raise ValueError(
                f"total_steps must be more than warmup_steps={warmup_steps}, received {total_steps}."
            )
        if not 0.0 <= final <= peak:
            raise ValueError(f"final must be between 0 and peak={peak}, received {final}.")
        self.peak = peak
        self.warmup_steps = warmup_steps
        self.total_steps = total_steps
        self.final = final

    def __call__(self, step):
        """Return the learning rate of the update after `step` updates."""
        update = ops.cast(step, "float32") + 1.0
        passed = (update - self.warmup_steps) / float(self.total_steps - self.warmup_steps)
        height = self.remaining(ops.clip(passed, 0.0, 1.0))
        rise = ops.minimum(update / float(max(self.warmup_steps, 1)), 1.0)
        return rise * (self.final + (self.peak - self.final) * height)

    def remaining(self, passed):
        """Return how much of the fall is still to come, from 1 to 0, when `passed` of it, 0 to 1, is over."""
        raise NotImplementedError

    def get_config(self):
        """Return every constructor argument."""
        names = ("peak", "warmup_steps", "total_steps", "final")
        return {name: getattr(self, name) for name in names}


@keras.saving.register_keras_serializable(package="keras_seq2seq")
class WarmupCosine(_WarmupThenFall):
    """Rise linearly to `peak`, then fall along half a cosine (Loshchilov & Hutter 2017, equation 5).

    lr(n) = peak * n / w up to update w, then final + (peak - final) * (1 + cos(pi * (n - w) / (N - w))) / 2.
    It is Keras' `CosineDecay` with warm-up, but for its first update, whose rate there is 0.

    Args:
        peak: the highest learning rate, at update w.
        warmup_steps: w; 0 starts at the peak.
        total_steps: N, the warm-up among them.
        final: the rate from update N on.
    """

    def remaining(self, passed):
        """Return half a cosine."""
        return 0.5 * (1.0 + ops.cos(math.pi * passed))


@keras.saving.register_keras_serializable(package="keras_seq2seq")
class WarmupLinear(_WarmupThenFall):
    """Rise linearly to `peak`, then fall linearly (Devlin et al. 2019, appendix A.2).

    lr(n) = peak * n / w up to update w, then final + (peak - final) * (N - n) / (N - w).

    Args:
        peak: the highest learning rate, at update w.
        warmup_steps: w; 0 starts at the peak.
        total_steps: N, the warm-up among them.
        final: the rate from update N on.
    """

    def remaining(self, passed):
        """Return a straight line."""
        return 1.0 - passed
