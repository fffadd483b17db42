"""Weight decay where it belongs."""

__all__ = ["decay_matrices_only"]

_NEVER = ("bias", "gamma", "beta")


def decay_matrices_only(optimizer, model):
    """Exclude biases, norms and everything else of one axis from an optimizer's weight decay.

    Decay pulls towards 0 what has no reason to be near it there. Keras does not save the exclusion: call this
    again after loading a model that goes on training.

    Args:
        optimizer: a Keras optimizer, or one that wraps another; not built yet.
        model: a built Keras model.

    Returns:
        The optimizer.

    Raises:
        ValueError: an optimizer that is built already, or a model that is not.
    """
    if not model.built:
        raise ValueError("model must be built before its variables can be told apart.")
    inner = optimizer
    while hasattr(inner, "inner_optimizer"):
        inner = inner.inner_optimizer
    if inner.built:
        raise ValueError("optimizer must not be built yet: exclude before compile or the first step.")
    excluded = [v for v in model.trainable_variables if len(v.shape) < 2 or v.name in _NEVER]
    inner.exclude_from_weight_decay(var_list=excluded)
    return optimizer
