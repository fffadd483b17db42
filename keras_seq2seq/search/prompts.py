"""What stands before the generated tokens: each row's prompt.

Legend: B sources, W hypotheses, P prompt length, L maximum length.
"""

from typing import Any, NamedTuple

from keras import ops

__all__ = ["Prompt"]


class Prompt(NamedTuple):
    """The prompts, or forced prefixes, of all rows.

    Attributes:
        ids: int32 `[B, P]`, BOS first, right-padded, of unequal length.
        lengths: int32 `[B]`, how many of them are real, BOS counted.
    """

    ids: Any
    lengths: Any

    @classmethod
    def of(cls, ids, pad_id):
        """Count the real ids; a row has one at least."""
        lengths = ops.sum(ops.cast(ids != pad_id, "int32"), axis=1)
        return cls(ops.cast(ids, "int32"), ops.maximum(lengths, 1))

    def join(self, tokens):
        """Put tokens `[B, W, L]` right behind each row's prompt: `[B, W, P + L]`, which is followed by 0."""
        size = ops.shape(tokens)[2]
        width = ops.shape(self.ids)[1] + size
        place = ops.expand_dims(ops.arange(width), 0) - ops.expand_dims(self.lengths, 1)  # [B, P+L]
        after = ops.take_along_axis(tokens, ops.expand_dims(ops.clip(place, 0, size - 1), 1), axis=2)
        after = ops.where(ops.expand_dims(place < size, 1), after, 0)
        before = ops.pad(self.ids, ((0, 0), (0, size)))
        return ops.where(ops.expand_dims(place < 0, 1), ops.expand_dims(before, 1), after)
