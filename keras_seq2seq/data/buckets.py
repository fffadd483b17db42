"""Buckets: the few shapes that batches may have, each one covering the one before.

In such a chain the smallest shape that covers a pair is well defined, and what is left over of one
bucket fits into the next.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from keras_seq2seq.data.rows import Ints

_WORTHWHILE = 0.01  # a further shape must save this share of the positions


class Bucket(NamedTuple):
    """The shape of a full batch: source `[rows, source]`, target `[rows, target]`."""

    source: int
    target: int
    rows: int


@dataclasses.dataclass(frozen=True)
class BucketRule:
    """How to come by buckets.

    Args:
        tokens_per_batch: rows times the wider of S and T is at most this.
        widths: S = T or (S, T) of each bucket; None chooses them.
        most: the most buckets to choose.
        multiple: what chosen widths are multiples of, except at the limits.
    """

    tokens_per_batch: int
    widths: Sequence[int | tuple[int, int]] | None
    most: int
    multiple: int

    def __post_init__(self) -> None:
        names = ("tokens_per_batch", "max_buckets", "width_multiple")
        for name, value in zip(names, (self.tokens_per_batch, self.most, self.multiple), strict=True):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}.")

    def buckets(self, lengths: tuple[Ints, Ints], limits: tuple[int, int], is_whole: bool) -> list[Bucket]:
        """Give the buckets for pairs up to `limits`, judged by the lengths of some or of all (`is_whole`)."""
        if self.widths is not None:
            return chain(self.widths, limits, self.tokens_per_batch)
        if is_whole:
            ends = (-(-int(length.max()) // self.multiple) * self.multiple for length in lengths)
            limits = min(limits[0], next(ends)), min(limits[1], next(ends))
        return chain(choose(lengths, limits, self.most, self.multiple), limits, self.tokens_per_batch)


def chain(widths: Sequence[int | tuple[int, int]], limits: tuple[int, int], tokens: int) -> list[Bucket]:
    """Make buckets of widths S = T or (S, T), and check that they form a chain that reaches the limits.

    A bucket has as many rows as `tokens` allows, in eights if there are eight.

    Raises:
        ValueError: if they do not, or if `tokens` is less than a width.
    """
    shapes = [(width, width) if isinstance(width, int) else tuple(width) for width in widths]
    for one, other in itertools.pairwise(shapes):
        if one == other or one[0] > other[0] or one[1] > other[1]:
            raise ValueError(f"buckets must grow, got {other} after {one}.")
    if not shapes or shapes[-1][0] < limits[0] or shapes[-1][1] < limits[1]:
        raise ValueError(f"buckets must reach the maximum lengths {limits}, got {list(widths)}.")
    if max(shapes[-1]) > tokens:
        raise ValueError(f"tokens_per_batch must be at least the width {max(shapes[-1])}, got {tokens}.")
    counts = [tokens // max(shape) for shape in shapes]
    return [
        Bucket(source, target, count - count % 8 if count > 8 else count)
        for (source, target), count in zip(shapes, counts, strict=True)
    ]


def choose(
    lengths: tuple[Ints, Ints], limits: tuple[int, int], most: int, multiple: int
) -> list[tuple[int, int]]:
    """Choose the widths of at most `most` buckets that waste the fewest positions on these lengths.

    A dynamic programme over all chains of candidate shapes that end at the limits: a pair costs S + T
    of the first shape that covers it. Fewer shapes are taken if more would save less than one percent.
    """
    sides = [_candidates(limit, multiple) for limit in limits]
    covered = _covered(lengths, sides)  # [A]
    shapes = np.array(list(itertools.product(*sides)))  # [A, 2]
    follows = np.all(shapes[:, np.newaxis] <= shapes, axis=2)  # [A, A]: the second covers the first
    np.fill_diagonal(follows, False)
    added = np.where(follows, covered - covered[:, np.newaxis], np.inf) * shapes.sum(axis=1)
    cost = covered * shapes.sum(axis=1, dtype=float)
    costs, before = [cost], []
    for _ in range(1, most):
        totals = cost[:, np.newaxis] + added
        before.append(totals.argmin(axis=0))
        cost = totals.min(axis=0)
        costs.append(cost)
    last = [float(cost[-1]) for cost in costs]
    count = next(k for k, cost in enumerate(last) if cost <= min(last) * (1 + _WORTHWHILE))
    path = [len(shapes) - 1]
    for step in reversed(before[:count]):
        path.append(int(step[path[-1]]))
    return [(int(shapes[shape][0]), int(shapes[shape][1])) for shape in reversed(path)]


def numbers_of(lengths: tuple[Ints, Ints], buckets: Sequence[Bucket]) -> NDArray[np.intp]:
    """Give the number of the first bucket that covers each pair, `[pairs]`."""
    sources = np.searchsorted([bucket.source for bucket in buckets], lengths[0])
    targets = np.searchsorted([bucket.target for bucket in buckets], lengths[1])
    return np.maximum(sources, targets)


def _candidates(limit: int, multiple: int) -> list[int]:
    """Multiples up to the limit, less dense as they grow, and the limit itself."""
    widths, width = [], multiple
    while width < limit:
        widths.append(width)
        width += max(multiple, width // 6 // multiple * multiple)
    return [*widths, limit]


def _covered(lengths: tuple[Ints, Ints], sides: list[list[int]]) -> NDArray[np.int64]:
    """Count the pairs that each shape covers, `[source widths * target widths]`."""
    counts = np.zeros([len(side) for side in sides], np.int64)
    np.add.at(
        counts, tuple(np.searchsorted(side, length) for side, length in zip(sides, lengths, strict=True)), 1
    )
    return counts.cumsum(0).cumsum(1).ravel()
