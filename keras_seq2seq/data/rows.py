"""Many rows of ids in two flat arrays, so that a buffer of pairs costs little more than its ids."""

import dataclasses
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.integer]


@dataclasses.dataclass(frozen=True)
class Rows:
    """Rows of unequal length: row i is `values[splits[i] : splits[i + 1]]`."""

    values: Ints  # int32 [sum of lengths]
    splits: Ints  # int64 [rows + 1]

    @classmethod
    def from_lengths(cls, values: Ints, lengths: Ints) -> Self:
        """Build rows from their ids, one after the other, and their lengths `[rows]`."""
        return cls(values, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))

    @classmethod
    def join(cls, parts: Sequence["Rows"]) -> Self:
        """Put the rows of all parts after each other."""
        lengths = np.concatenate([np.zeros([0], np.int64), *(part.lengths for part in parts)])
        values = np.concatenate([np.zeros([0], np.int32), *(part.values for part in parts)])
        return cls.from_lengths(values, lengths)

    def __len__(self) -> int:
        return len(self.splits) - 1

    @property
    def lengths(self) -> Ints:
        """Lengths of the rows, int64 `[rows]`."""
        return np.diff(self.splits)

    def take(self, index: Ints) -> "Rows":
        """Give the rows with these numbers, in this order."""
        lengths = self.lengths[index]
        ends = np.cumsum(lengths)
        shift = np.repeat(self.splits[index] - (ends - lengths), lengths)
        return Rows.from_lengths(self.values[np.arange(len(shift)) + shift], lengths)

    def padded(self, index: Ints, width: int, *, without_first: int = 0, without_last: int = 0) -> Ints:
        """Give the rows with these numbers, less some ids at the ends, as int32 `[len(index), width]`."""
        starts = self.splits[index] + without_first
        lengths = self.splits[index + 1] - without_last - starts
        columns = np.arange(width)
        inside = columns < lengths[:, np.newaxis]
        places = np.where(inside, starts[:, np.newaxis] + columns, 0)
        return np.where(inside, self.values[places], 0).astype(np.int32)


@dataclasses.dataclass(frozen=True)
class PairRows:
    """Source rows (tokens, EOS) and the target rows (BOS, tokens, EOS) that belong to them."""

    source: Rows
    target: Rows

    @classmethod
    def join(cls, parts: Sequence["PairRows"]) -> Self:
        """Put the pairs of all parts after each other."""
        return cls(Rows.join([part.source for part in parts]), Rows.join([part.target for part in parts]))

    def __len__(self) -> int:
        return len(self.source)

    @property
    def lengths(self) -> tuple[Ints, Ints]:
        """Widths that the sources and the targets need in a batch, both `[pairs]`."""
        return self.source.lengths, self.target.lengths - 1

    def tally(self) -> "Tally":
        """Count the pairs of each size."""
        sizes, counts = np.unique(np.stack(self.lengths, axis=1), axis=0, return_counts=True)
        return Tally(sizes, counts)

    def take(self, index: Ints) -> "PairRows":
        """Give the pairs with these numbers, in this order."""
        return PairRows(self.source.take(index), self.target.take(index))


@dataclasses.dataclass(frozen=True)
class Tally:
    """How many pairs there are of each size: few numbers, however many pairs."""

    sizes: Ints  # [N, 2]: widths of source and target
    counts: Ints  # [N]

    def __add__(self, other: "Tally") -> "Tally":
        sizes, places = np.unique(np.concatenate([self.sizes, other.sizes]), axis=0, return_inverse=True)
        counts = np.zeros(len(sizes), np.int64)
        np.add.at(counts, places.ravel(), np.concatenate([self.counts, other.counts]))
        return Tally(sizes, counts)
