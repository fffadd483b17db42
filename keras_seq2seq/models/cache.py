"""The self-attention cache: slots for generated tokens, and a table that says who wrote them.

Keys and values never move. Lane w of slot l holds what hypothesis w wrote in step l; `ancestors[b, w, l]` is
the lane whose slot l hypothesis w descends from. Reordering hypotheses gathers that small table alone.

Legend: B sources, W hypotheses (lanes), L slots, G key/value heads, K head size.
"""

from keras import ops

from keras_seq2seq.layers.attend import Segment

__all__ = ["cache_segment", "empty_cache", "grow", "reorder_ancestors", "start_ancestors", "write"]


def empty_cache(batch, groups, slots, width, size, dtype):
    """Return keys and values `[B, G, L, W, K]`, all zero."""
    shape = (batch, groups, slots, width, size)
    return ops.zeros(shape, dtype), ops.zeros(shape, dtype)


def write(cache, index, new):
    """Put `new` `[B, G, W, K]` into slot `index` of `cache` `[B, G, L, W, K]`.

    By comparison, not by `slice_update`, which a server that has XLA switched off cannot run.
    """
    slot = ops.reshape(ops.arange(ops.shape(cache)[2]) == index, (1, 1, -1, 1, 1))
    return ops.where(slot, ops.expand_dims(new, 2), cache)


def start_ancestors(batch, width, slots):
    """Return the table of ancestors `[B, W, L]`: every hypothesis descends from its own lane."""
    lane = ops.reshape(ops.arange(width, dtype="int32"), (1, -1, 1))
    return ops.broadcast_to(lane, (batch, width, slots))


def reorder_ancestors(ancestors, parent, index_axis=1):
    """Let hypothesis w inherit the ancestors of hypothesis `parent[b, w]`."""
    return ops.take_along_axis(ancestors, ops.expand_dims(parent, -1), axis=index_axis)


def grow(part, slots, axis=2):
    """Pad a cache `[B, G, L, W, K]` or a table of ancestors `[B, W, L]` to L = `slots`."""
    more = slots - ops.shape(part)[axis]
    return ops.pad(part, [(0, more if i == axis else 0) for i in range(len(part.shape))])


def claim_slot(ancestors, index):
    """Record that in step `index` each hypothesis writes its own lane."""
    width, slots = ancestors.shape[1], ops.shape(ancestors)[2]
    lane = ops.reshape(ops.arange(width, dtype="int32"), (1, -1, 1))
    return ops.where(ops.reshape(ops.arange(slots) == index, (1, 1, -1)), lane, ancestors)


def lane_mask(ancestors, index):
    """Return which slots each hypothesis may read: written, and by its ancestor; bool `[B, 1, W, L*W]`."""
    width, slots = ancestors.shape[1], ops.shape(ancestors)[2]
    lane = ops.reshape(ops.arange(width, dtype="int32"), (1, 1, 1, -1))
    written = ops.reshape(ops.arange(slots) <= index, (1, 1, -1, 1))
    mask = ops.logical_and(ops.expand_dims(ancestors, -1) == lane, written)  # [B, W, L, W]
    return ops.reshape(mask, (-1, 1, width, slots * width))


def lane_bias(bias, width):
    """Give all lanes of a slot the same bias: `[1 or B, H, 1, L]` -> `[1 or B, H, 1, L*W]`."""
    return bias if bias is None or width == 1 else ops.repeat(bias, width, axis=-1)


def cache_segment(key, value, mask, bias):
    """View a cache `[B, G, L, W, K]` as a segment of L*W keys."""
    groups, width, size = key.shape[1], key.shape[3], key.shape[4]
    shape = (-1, groups, ops.shape(key)[2] * width, size)
    return Segment(ops.reshape(key, shape), ops.reshape(value, shape), mask, bias)
