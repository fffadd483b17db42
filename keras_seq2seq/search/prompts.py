"""What stands before the generated tokens: each row's prompt.

Legend: B sources, W hypotheses, P prompt length, L maximum length.
"""

from keras import ops

__all__ = ["join"]


def join(prompt, tokens, pad_id):
    """Put the tokens of each hypothesis right behind its prompt.

    Args:
        prompt: int32 `[B, P]`, BOS first, right-padded, of unequal length.
        tokens: int32 `[B, W, L]`.
        pad_id: fills the end.

    Returns:
        int32 `[B, W, P + L]`, and how many of them are the prompt's, BOS counted: int32 `[B]`.
    """
    length = ops.maximum(ops.sum(ops.cast(prompt != pad_id, "int32"), axis=1), 1)
    size = ops.shape(tokens)[2]
    width = ops.shape(prompt)[1] + size
    place = ops.expand_dims(ops.arange(width), 0) - ops.expand_dims(
        length, 1
    )  # [B, P+L], from the first token
    inside = ops.clip(place, 0, size - 1)
    after = ops.take_along_axis(tokens, ops.expand_dims(inside, 1), axis=2)
    after = ops.where(ops.expand_dims(place < size, 1), after, pad_id)
    room = ops.full((ops.shape(prompt)[0], size), pad_id, dtype="int32")
    before = ops.concatenate([ops.cast(prompt, "int32"), room], axis=1)
    return ops.where(ops.expand_dims(place < 0, 1), ops.expand_dims(before, 1), after), length
