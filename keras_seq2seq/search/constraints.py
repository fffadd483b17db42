"""Constraints: small callables from logits to logits, applied before anything is normalised.

A constraint is called as `constraint(logits [B, W, V], index)` and returns logits of the same shape; a banned
token has the finite value `BANNED`, so that it never wins and never becomes NaN.
"""

from typing import NamedTuple

from keras import ops

__all__ = ["BANNED", "ForbiddenTokens", "MinimumLength"]

BANNED = -1e9


def ban(logits, ids, when=True):
    """Ban `ids` where the scalar `when` holds."""
    vocabulary = ops.arange(logits.shape[-1], dtype="int32")
    banned = vocabulary == ids[0]
    for token in ids[1:]:
        banned = ops.logical_or(banned, vocabulary == token)
    return ops.where(ops.logical_and(banned, when), ops.cast(BANNED, logits.dtype), logits)


class ForbiddenTokens(NamedTuple):
    """Never generate `ids`."""

    ids: tuple

    def __call__(self, logits, index):
        """Ban the ids in every step."""
        return ban(logits, self.ids) if self.ids else logits


class MinimumLength(NamedTuple):
    """Do not end before `length` tokens, EOS counted."""

    length: int
    eos_id: int

    def __call__(self, logits, index):
        """Ban EOS in the first `length` - 1 steps."""
        return ban(logits, (self.eos_id,), index + 1 < self.length)
