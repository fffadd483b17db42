"""Buffers: what belongs to each token of a hypothesis, `[B, W, L]`, one slot a step.

Legend: B sources, W hypotheses, N of them, L maximum length.
"""

from keras import ops

__all__ = ["pick", "write"]


def write(buffer, index, value):
    """Put `value` `[...]` into slot `index` of `buffer` `[..., L]`."""
    slot = ops.arange(ops.shape(buffer)[-1]) == index
    return ops.where(slot, ops.expand_dims(value, -1), buffer)


def pick(values, place):
    """Take the hypotheses `place` `[B, N]` of `values` `[B, W]` or `[B, W, L]`."""
    place = ops.expand_dims(place, -1) if len(values.shape) == 3 else place
    return ops.take_along_axis(values, place, axis=1)
