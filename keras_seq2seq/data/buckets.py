"""Buckets: the few shapes that batches may have, each one covering the one before.

In such a chain the smallest shape that covers a pair is well defined, and what is left over of one
bucket fits into the next.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from keras_seq2seq.data.rows import Ints, Tally
from keras_seq2seq.text.integers import integer

_MAX_LENGTH = 128  # unless another limit is given
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
        tokens_per_batch: rows times the wider of S and T is at most this; None for no such limit.
        sentences_per_batch: the rows of a full batch are at most this; None for no such limit.
        limits: the widest source and target.
        widths: S = T or (S, T) of each bucket; None chooses them.
        most: the most buckets to choose.
        multiple: what chosen widths are multiples of, except at the limits.
    """

    tokens_per_batch: int | None
    sentences_per_batch: int | None
    limits: tuple[int, int]
    widths: Sequence[int | tuple[int, int]] | None
    most: int
    multiple: int

    def __post_init__(self) -> None:
        integer("max_buckets", self.most)
        integer("width_multiple", self.multiple)
        if self.widths is not None:
            self._chain(self.widths, self.limits)

    def buckets(self, tally: Tally, is_complete: bool) -> list[Bucket]:
        """Give the buckets, judged by the sizes of some pairs, or of all of them (`is_complete`).

        Where widths are chosen, no bucket has more rows, in eights, than there are pairs.
        """
        limits = self.limits
        if self.widths is not None:
            return self._chain(self.widths, limits)
        if is_complete:
            ends = -(-tally.sizes.max(axis=0) // self.multiple) * self.multiple
            limits = min(limits[0], int(ends[0])), min(limits[1], int(ends[1]))
        buckets = self._chain(choose(tally, limits, self.most, self.multiple), limits)
        if not is_complete:
            return buckets
        most = -(-int(tally.counts.sum()) // 8) * 8
        return [bucket._replace(rows=min(bucket.rows, most)) for bucket in buckets]

    def _chain(self, widths: Sequence[int | tuple[int, int]], limits: tuple[int, int]) -> list[Bucket]:
        return chain(widths, limits, self.tokens_per_batch, self.sentences_per_batch)


def limits_of(
    sides: tuple[int | None, int | None],
    both: int | None,
    buckets: Sequence[int | tuple[int, int]] | None,
    tokens: int | None,
) -> tuple[int, int]:
    """Find the limits of source and target: given for the side, for both, by the last bucket, or usual."""
    if buckets is not None:
        _check_widths(buckets)
    usual = min(_MAX_LENGTH, tokens or _MAX_LENGTH) if both is None else integer("max_length", both)
    defaults = _shape(buckets[-1]) if buckets and both is None else (usual, usual)
    source, target = (
        default if limit is None else integer(f"max_{side}_length", limit)
        for side, limit, default in zip(("source", "target"), sides, defaults, strict=True)
    )
    return source, target


def budget(tokens: int | None, sentences: int | None) -> tuple[int | None, int | None]:
    """Check what limits a batch: a number of tokens, or of sentences, or both."""
    if tokens is None and sentences is None:
        raise ValueError("tokens_per_batch or sentences_per_batch must be given, got None for both.")
    return (
        None if tokens is None else integer("tokens_per_batch", tokens),
        None if sentences is None else integer("sentences_per_batch", sentences),
    )


def chain(
    widths: Sequence[int | tuple[int, int]],
    limits: tuple[int, int],
    tokens: int | None,
    sentences: int | None = None,
) -> list[Bucket]:
    """Make buckets of widths S = T or (S, T), and check that they form a chain that reaches the limits.

    A bucket has `sentences` rows, or as many as `tokens` allows, in eights if there are eight.

    Raises:
        ValueError: if they do not, or if `tokens` is less than a width.
    """
    shapes = [tuple(map(int, _shape(width))) for width in widths]
    for one, other in itertools.pairwise(shapes):
        if one == other or one[0] > other[0] or one[1] > other[1]:
            raise ValueError(f"buckets must grow, got {other} after {one}.")
    if not shapes or shapes[-1][0] < limits[0] or shapes[-1][1] < limits[1]:
        raise ValueError(f"buckets must reach the maximum lengths {limits}, got {list(widths)}.")
    if tokens is not None and max(shapes[-1]) > tokens:
        raise ValueError(f"tokens_per_batch must be at least the width {max(shapes[-1])}, got {tokens}.")
    return [
        Bucket(source, target, _rows(max(source, target), tokens, sentences)) for source, target in shapes
    ]


def _rows(width: int, tokens: int | None, sentences: int | None) -> int:
    """Count the rows of a full batch of this width."""
    if tokens is None:
        assert sentences is not None
        return sentences
    count = tokens // width
    count -= count % 8 if count > 8 else 0
    return count if sentences is None else min(count, sentences)


def choose(tally: Tally, limits: tuple[int, int], most: int, multiple: int) -> list[tuple[int, int]]:
    """Choose the widths of at most `most` buckets that waste the fewest positions on these pairs.

    A dynamic programme over all chains of candidate shapes that end at the limits: a pair costs S + T
    of the first shape that covers it. Fewer shapes are taken if more would save less than one percent.
    """
    sides = [_candidates(limit, multiple) for limit in limits]
    covered = _covered(tally, sides)  # [A]
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


def numbers_of(sources: Ints, targets: Ints, buckets: Sequence[Bucket]) -> NDArray[np.intp]:
    """Give the number of the first bucket that covers each pair with these widths, `[pairs]`."""
    return np.maximum(
        np.searchsorted([bucket.source for bucket in buckets], sources),
        np.searchsorted([bucket.target for bucket in buckets], targets),
    )


def has_room(buckets: Sequence[Bucket], members: Ints, number: int, count: int) -> bool:
    """Tell whether a bucket has a batch to complete, with room for `count` more pairs.

    `members` counts the pairs of each bucket. Past the last bucket there is no room.
    """
    if number == len(buckets):
        return False
    rows = buckets[number].rows
    return 0 < int(members[number]) % rows <= rows - count


def batch_count(tally: Tally, buckets: Sequence[Bucket]) -> int:
    """Count the batches of an epoch: the full ones, and those of what is left over."""
    members = np.zeros(len(buckets), np.int64)
    np.add.at(members, numbers_of(tally.sizes[:, 0], tally.sizes[:, 1], buckets), tally.counts)
    batches = carried = 0
    for number, bucket in enumerate(buckets):
        full, left = divmod(int(members[number]) + carried, bucket.rows)
        carried = left if has_room(buckets, members, number + 1, left) else 0
        batches += full + (left > carried)
    return batches


def _check_widths(buckets: Any) -> None:
    """Refuse what is no list of widths S = T or (S, T)."""
    if not isinstance(buckets, (list, tuple)):
        raise ValueError(f"buckets must be a list of widths, got {buckets!r}.")
    for bucket in buckets:
        if isinstance(bucket, (list, tuple)) and len(bucket) != 2:
            raise ValueError(f"buckets must be widths S = T or pairs (S, T), got {bucket!r}.")
        for width in _shape(bucket):
            integer("every width in buckets", width)


def _shape(bucket: Any) -> tuple[int, int]:
    """Give the width of the source and of the target."""
    source, target = bucket if isinstance(bucket, (list, tuple)) else (bucket, bucket)
    return source, target


def _candidates(limit: int, multiple: int) -> list[int]:
    """Multiples up to the limit, less dense as they grow, and the limit itself."""
    widths, width = [], multiple
    while width < limit:
        widths.append(width)
        width += max(multiple, width // 6 // multiple * multiple)
    return [*widths, limit]


def _covered(tally: Tally, sides: list[list[int]]) -> NDArray[np.int64]:
    """Count the pairs that each shape covers, `[source widths * target widths]`."""
    counts = np.zeros([len(side) for side in sides], np.int64)
    places = tuple(np.searchsorted(side, sizes) for side, sizes in zip(sides, tally.sizes.T, strict=True))
    np.add.at(counts, places, tally.counts)
    return counts.cumsum(0).cumsum(1).ravel()
