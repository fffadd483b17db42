"""Boolean attention masks as pure functions: True means "may attend".

Legend: B batch, T query length, S key length.
"""

from keras import ops

__all__ = ["causal_mask", "combine_masks", "padding_mask"]


def padding_mask(ids, pad_id=0):
    """Mark the real tokens of a padded batch.

    Args:
        ids: int `[B, S]`.
        pad_id: the id that fills short rows.

    Returns:
        bool `[B, S]`, True where `ids` is a real token.
    """
    return ops.not_equal(ids, pad_id)


def causal_mask(length):
    """Let every position see itself and what came before it.

    Args:
        length: T, a Python int or a scalar int32 tensor.

    Returns:
        bool `[1, T, T]`, True where key position <= query position.
    """
    position = ops.arange(length)
    return ops.expand_dims(ops.expand_dims(position, 1) >= ops.expand_dims(position, 0), 0)


def combine_masks(*masks):
    """AND masks of different shapes into one.

    Args:
        masks: bool `[B, S]` (one row of keys, the same for all queries), bool `[B or 1, T or 1, S]`,
            or None, which allows everything.

    Returns:
        bool `[B or 1, T or 1, S]`, or None when every mask is None.

    Raises:
        ValueError: a mask that is not boolean or has another rank.
    """
    combined = None
    for mask in masks:
        if mask is None:
            continue
        if "bool" not in str(mask.dtype):
            raise ValueError(
                f"attention_mask must be boolean (True = may attend), received dtype {mask.dtype}."
            )
        if len(mask.shape) == 2:
            mask = ops.expand_dims(mask, 1)  # [B, 1, S]
        elif len(mask.shape) != 3:
            raise ValueError(f"attention_mask must be [B, S] or [B, T, S], received shape {mask.shape}.")
        combined = mask if combined is None else ops.logical_and(combined, mask)
    return combined
