"""Scaled dot-product attention over keys and values that the caller holds.

Legend: B batch, H query heads, G key/value heads, T query length, S key length, K head size.
"""

import math
from typing import Any, NamedTuple

from keras import ops

__all__ = ["Segment", "attend", "masked_softmax"]


class Segment(NamedTuple):
    """A stretch of keys and values that queries may attend to.

    Attributes:
        key: `[B, G, S, K]`.
        value: `[B, G, S, K]`.
        mask: bool, broadcastable to `[B, 1, T, S]`, True = may attend; None allows all.
        bias: float, broadcastable to `[B, H, T, S]`, added to the scaled scores; None adds nothing.
    """

    key: Any
    value: Any
    mask: Any = None
    bias: Any = None


def masked_softmax(scores, mask):
    """Softmax over the last axis, in float32 for every input dtype.

    Args:
        scores: float `[..., S]`.
        mask: bool, broadcastable to `scores`, or None.

    Returns:
        float32 `[..., S]`, and `alive`, a float32 `[..., 1]` that is 0 where a row is fully masked and
        1 elsewhere (None without a mask). Multiply by it, or what is computed from the weights: only the
        caller knows which of the two is smaller.
    """
    scores = ops.cast(scores, "float32")
    if mask is None:
        return _softmax(scores), None
    # Finite, so that a fully masked row is uniform instead of NaN until `alive` clears it.
    weights = _softmax(ops.where(mask, scores, -1e9))
    return weights, ops.cast(ops.any(mask, axis=-1, keepdims=True), "float32")


def _softmax(scores):
    if scores.shape[-1] == 1:  # the one token of an empty sentence, of which Keras' softmax warns
        return ops.exp(scores - scores)
    return ops.softmax(scores, axis=-1)


def attend(query, segments, dropout=None, return_weights=False):
    """softmax(q k^T / sqrt(K) + bias) v, with one softmax over all segments (Vaswani et al. 2017, eq. 1).

    Query heads that share a key/value head (grouped-query attention, Ainslie et al. 2023) are folded into
    the query axis, so keys and values are never repeated.

    Args:
        query: `[B, H, T, K]`, H a multiple of the keys' G.
        segments: list of `Segment`.
        dropout: a callable applied to the weights, or None.
        return_weights: also return the weights (before dropout).

    Returns:
        context `[B, H, T, K]`, and the weights float32 `[B, H, T, sum of S]` or None. A query that may
        attend to nothing gets zero weights and zero context.
    """
    _, heads, length, size = query.shape
    length = ops.shape(query)[2] if length is None else length
    groups = segments[0].key.shape[1]
    share = heads // groups
    folded = query * ops.cast(1.0 / math.sqrt(size), query.dtype)
    if share > 1:
        folded = ops.reshape(folded, (-1, groups, share * length, size))  # [B, G, H/G*T, K]
    scores, masks = [], []
    for key, _, mask, bias in segments:
        score = ops.einsum("bgtk,bgsk->bgts", folded, key)
        if share > 1:
            score = ops.reshape(score, (-1, heads, length, ops.shape(key)[2]))
        scores.append(score if bias is None else score + ops.cast(bias, score.dtype))
        masks.append(mask)
    weights, alive = masked_softmax(_join(scores), _join_masks(masks, scores))
    dropped = weights if dropout is None else dropout(weights)
    dropped = ops.cast(dropped, query.dtype)
    context: Any = None
    start = 0
    for (_, value, _, _), score in zip(segments, scores, strict=True):
        part = dropped
        if len(segments) > 1:
            stop = start + ops.shape(score)[-1]
            part, start = dropped[..., start:stop], stop
        if share > 1:
            part = ops.reshape(part, (-1, groups, share * length, ops.shape(value)[2]))
        mixed = ops.einsum("bgts,bgsk->bgtk", part, value)
        context = mixed if context is None else context + mixed
    context = ops.reshape(context, (-1, heads, length, size)) if share > 1 else context
    if alive is not None:
        context = context * ops.cast(alive, context.dtype)
        weights = weights * alive if return_weights else weights
    return context, weights if return_weights else None


def _join(scores):
    return scores[0] if len(scores) == 1 else ops.concatenate(scores, axis=-1)


def _join_masks(masks, scores):
    """Concatenate the segments' masks, giving those without one an all-True mask of the right length."""
    if len(masks) == 1 or all(mask is None for mask in masks):
        return masks[0]
    full = [
        ops.ones((1, 1, 1, ops.shape(score)[-1]), dtype="bool") if mask is None else mask
        for mask, score in zip(masks, scores, strict=True)
    ]
    rows = [ops.shape(score)[0] for score in scores]
    times = [ops.shape(score)[2] for score in scores]
    return ops.concatenate(
        [
            ops.broadcast_to(mask, (rows[i], 1, times[i], ops.shape(scores[i])[-1]))
            for i, mask in enumerate(full)
        ],
        axis=-1,
    )
