"""Constraints: small callables from logits to logits, applied before anything is normalised.

A constraint is called as `constraint(logits, progress)` with logits `[B, W, V]` and a `Progress`, and returns
logits of the same shape. A banned token has the finite value `BANNED`: it never becomes NaN, and no search
takes a token whose logit is below half of that, be it the only one.

Legend: B sources, W hypotheses, L maximum length, V vocabulary.
"""

from typing import Any, NamedTuple

import numpy as np
from keras import ops

from keras_seq2seq.search.prompts import Prompt

__all__ = ["BANNED", "ForbiddenTokens", "MinimumLength", "NoRepeatedNgram", "Progress"]

BANNED = -1e9


class Progress(NamedTuple):
    """How far a search has come.

    Attributes:
        index: int32 scalar, how many tokens each open hypothesis has.
        tokens: int32 `[B, W, L]`, those tokens; what stands at `index` and behind it means nothing.
        prompt: `Prompt`, what stands before them.
    """

    index: Any
    tokens: Any
    prompt: Prompt


def ban(logits, ids, when=True):
    """Ban `ids` where `when` holds, a scalar or bool `[B]`."""
    vocabulary = ops.arange(logits.shape[-1], dtype="int32")
    banned = vocabulary == ids[0]
    for token in ids[1:]:
        banned = ops.logical_or(banned, vocabulary == token)
    if when is not True:
        banned = ops.logical_and(banned, ops.reshape(when, (-1, 1, 1)))
    return ops.where(banned, ops.cast(BANNED, logits.dtype), logits)


class ForbiddenTokens(NamedTuple):
    """Never generate `ids`."""

    ids: tuple[int, ...]

    def __call__(self, logits, progress):
        """Ban the ids in every step."""
        if not isinstance(self.ids, tuple) or not all(
            isinstance(each, (int, np.integer)) for each in self.ids
        ):
            raise TypeError(f"ids must be a tuple of integers, received {self.ids!r:.80}.")
        return ban(logits, self.ids) if self.ids else logits


class MinimumLength(NamedTuple):
    """Do not end before `length` tokens, EOS counted: an integer, or int32 `[B]`. A prompt does not count."""

    length: Any
    eos_id: int

    def __call__(self, logits, progress):
        """Ban EOS in the first `length` - 1 steps."""
        return ban(logits, (self.eos_id,), progress.index + 1 < self.length)


class NoRepeatedNgram(NamedTuple):
    """Never generate the same `size` tokens in a row twice (Paulus et al. 2018, section 2.5).

    A forced prefix and a prompt count, as if they had been generated: what they contain may not come again.
    """

    size: int

    def __call__(self, logits, progress):
        """Ban what followed the last `size` - 1 tokens before."""
        if not isinstance(self.size, (int, np.integer)) or self.size < 1:
            raise ValueError(f"size must be an integer of at least 1, received {self.size!r}.")
        vocabulary, before = logits.shape[-1], self.size - 1
        tokens = progress.prompt.join(progress.tokens)  # [B, W, P+L]
        known = ops.reshape(progress.prompt.lengths + progress.index, (-1, 1, 1))
        length = ops.shape(tokens)[2]
        # Place j holds an n-gram that is complete, and begins with the last n-1 tokens.
        same = ops.logical_and(ops.arange(length) + before < known, ops.zeros_like(tokens) == 0)
        for i in range(before):
            last = ops.take_along_axis(tokens, ops.maximum(known - before + i, 0), axis=2)  # [B, W, 1]
            same = ops.logical_and(same, _shift_left(tokens, i) == last)
        follower = ops.where(same, _shift_left(tokens, before), vocabulary)  # one id too many: bans nothing
        rows = ops.reshape(follower, (-1, length))
        row = ops.expand_dims(ops.arange(ops.shape(rows)[0]) * (vocabulary + 1), 1)
        hits = ops.scatter(
            ops.reshape(row + rows, (-1, 1)),
            ops.reshape(ops.ones_like(rows), (-1,)),
            (ops.shape(rows)[0] * (vocabulary + 1),),
        )
        banned = ops.reshape(hits, (-1, tokens.shape[1], vocabulary + 1))[..., :vocabulary] > 0
        return ops.where(banned, ops.cast(BANNED, logits.dtype), logits)


def _shift_left(tokens, by):
    """Let place j hold what stood at place j + `by`; the end is filled with -1."""
    return ops.pad(tokens, ((0, 0), (0, 0), (0, by)), constant_values=-1)[..., by:] if by else tokens
