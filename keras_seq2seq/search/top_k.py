"""The k largest of many logits, by blocks.

The k largest values lie in the k blocks whose maxima are largest, ties included. So one pass takes the
maxima, and what is sorted is small: faster than `ops.top_k` and `ops.argmax` over a whole vocabulary, in
graphs and under XLA.

Legend: R rows, V vocabulary, n blocks of b logits.
"""

import math

from keras import ops

__all__ = ["top_k"]

_SMALL = 1024  # logits; fewer are not worth it
_SIZES = range(16, 129)  # b


def top_k(logits, k):
    """Return what `ops.top_k(logits, k)` returns: the same values and int32 ids in the same order.

    Args:
        logits: `[..., V]`, V known.
        k: at most V.
    """
    vocabulary = logits.shape[-1]
    size = _block_size(vocabulary, k)
    count = -(-vocabulary // size)
    if vocabulary < _SMALL or count < 4 * k:
        values, ids = ops.top_k(logits, k)
        return values, ops.cast(ids, "int32")
    lead = tuple(ops.shape(logits)[:-1])
    rows = ops.reshape(logits, (-1, vocabulary))
    if count * size != vocabulary:
        rows = ops.pad(rows, ((0, 0), (0, count * size - vocabulary)), constant_values=-math.inf)
    maxima = ops.max(ops.reshape(rows, (-1, count, size)), axis=-1)  # [R, n]
    blocks = ops.cast(ops.top_k(maxima, k)[1], "int32")
    blocks = ops.sort(blocks, axis=-1)  # in order, so that of equal logits the first one wins
    first = ops.expand_dims(ops.arange(ops.shape(rows)[0], dtype="int32") * count, 1)
    inside = ops.take(ops.reshape(rows, (-1, size)), first + blocks, axis=0)  # [R, k, b]
    values, place = ops.top_k(ops.reshape(inside, (-1, k * size)), k)
    place = ops.cast(place, "int32")
    ids = ops.take_along_axis(blocks, place // size, axis=-1) * size + place % size
    return ops.reshape(values, (*lead, k)), ops.reshape(ids, (*lead, k))


def _block_size(vocabulary, k):
    """Return b near the square root of V/k, where both parts of the work are least; one that divides V."""
    best = math.sqrt(vocabulary / k)
    # A vocabulary that none divides is padded, which costs a copy.
    sizes = [size for size in _SIZES if vocabulary % size == 0] or [32]
    return min(sizes, key=lambda size: abs(math.log(size / best)))
