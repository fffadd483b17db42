"""Subword sampling in batches: the rows of a batch cut into other pieces that still fit into its shape."""

from collections.abc import Sequence

import numpy as np

from keras_seq2seq.data.buckets import Bucket
from keras_seq2seq.data.rows import Ints, PairRows, Rows, Tally
from keras_seq2seq.text import SentencePiece, SubwordSampling, Tokenizer

_ROOM = 1.3  # buckets are chosen as if rows were so much longer


class Resampler:
    """Draws the pieces of a batch anew.

    Sizes, limits and batches are those of the ids without sampling, so that an epoch always has the
    same number of batches. A row that is drawn too long for its batch keeps these ids.

    Args:
        sampling: how to draw.
        tokenizers: of the two sides, or of the one; those that are no `SentencePiece` are left alone.
        limits: the most ids of a source and a target.

    Raises:
        ValueError: if there is no `SentencePiece` among the tokenizers.
    """

    def __init__(self, sampling: SubwordSampling, tokenizers: Sequence[Tokenizer], limits: tuple[int, int]):
        if not any(isinstance(tokenizer, SentencePiece) for tokenizer in tokenizers):
            raise ValueError(f"sampling needs a SentencePiece tokenizer, got {list(tokenizers)}.")
        self._sampling, self._tokenizers, self._limits = sampling, tokenizers, limits

    def room(self, lengths: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
        """Give the widths to choose buckets by: longer than the rows, but within the limits."""
        source, target = (
            np.maximum(size, np.minimum(np.ceil(size * _ROOM).astype(np.int64), limit))
            for size, limit in zip(lengths, self._limits, strict=True)
        )
        return source, target

    def tally(self, tally: Tally) -> Tally:
        """Count pairs by these widths."""
        sizes = np.stack(self.room((tally.sizes[:, 0], tally.sizes[:, 1])), axis=1)
        return Tally(sizes, tally.counts) + Tally(sizes[:0], tally.counts[:0])

    def draw(self, pairs: PairRows, bucket: Bucket, seed: int) -> PairRows:
        """Draw the pieces of all rows, which fit into the bucket's widths as they are."""
        source, target = pairs.source, pairs.target
        first, last = self._tokenizers[0], self._tokenizers[-1]
        if len(self._tokenizers) == 2 and isinstance(first, SentencePiece):
            source = self._rows(first, source, 0, bucket.source, 2 * seed)
        if isinstance(last, SentencePiece):
            target = self._rows(last, target, 1, bucket.target + 1, 2 * seed + 1)
        return PairRows(source, target)

    def _rows(self, tokenizer: SentencePiece, rows: Rows, before: int, width: int, seed: int) -> Rows:
        """Draw between the `before` ids at the start of a row, BOS, and the one at its end, EOS."""
        old = np.split(rows.values, rows.splits[1:-1])
        drawn = tokenizer.sample([row[before:-1].tolist() for row in old], self._sampling, seed)
        new = [
            np.concatenate([row[:before], ids, row[-1:]]) if before + len(ids) < width else row
            for row, ids in zip(old, drawn, strict=True)
        ]
        return Rows.from_lengths(np.concatenate(new).astype(np.int32), np.array([len(row) for row in new]))
