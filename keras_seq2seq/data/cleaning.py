"""Which pairs to train on: those of a fair length and ratio, not identical, not there twice."""

import dataclasses
import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from keras_seq2seq.text.integers import integer

_LOGGER = logging.getLogger(__name__)

Keep = Callable[[str, str], bool]


@dataclasses.dataclass(frozen=True)
class Cleaning:
    """Counts of `ParallelText.clean`; a pair that is dropped counts once, for the first reason that holds.

    `str(cleaning)` is a line such as "37 of 200 pairs dropped: 30 longer than 50 characters, 7 blank".
    """

    pairs: int
    blank: int
    too_short: int
    too_long: int
    ratio: int  # one side more than `max_ratio` times as long as the other
    identical: int  # source and target the same
    rejected: int  # by the predicate
    duplicates: int  # those that came earlier are kept
    min_length: int
    max_length: int | None
    max_ratio: float | None

    @property
    def dropped(self) -> int:
        """Pairs that were taken out."""
        reasons = self.blank + self.too_short + self.too_long + self.ratio
        return reasons + self.identical + self.rejected + self.duplicates

    @property
    def kept(self) -> int:
        """Pairs that are left."""
        return self.pairs - self.dropped

    def __str__(self) -> str:
        counts = (
            (self.too_long, f"longer than {self.max_length} characters"),
            (self.too_short, f"shorter than {self.min_length} characters"),
            (self.ratio, f"of a ratio above {self.max_ratio}"),
            (self.identical, "with identical sides"),
            (self.rejected, "rejected by the predicate"),
            (self.duplicates, "duplicates"),
            (self.blank, "blank"),
        )
        reasons = ", ".join(f"{count} {reason}" for count, reason in counts if count)
        return f"{self.dropped} of {self.pairs} pairs dropped" + (f": {reasons}" if reasons else "")


@dataclasses.dataclass(frozen=True)
class Rule:
    """What a pair must be like; `ParallelText.clean` explains the fields."""

    min_length: int
    max_length: int | None
    max_ratio: float | None
    identical: bool
    duplicates: bool
    keep: Keep | None

    def __post_init__(self) -> None:
        for name, value, least in (("min_length", self.min_length, 1), ("max_length", self.max_length, 1)):
            if value is not None:
                integer(name, value, least)
        if self.max_length is not None and self.max_length < self.min_length:
            raise ValueError(
                f"max_length must be at least min_length={self.min_length}, got {self.max_length}."
            )
        ratio = self.max_ratio
        if ratio is not None and not (isinstance(ratio, (int, float, np.number)) and ratio >= 1):
            raise ValueError(f"max_ratio must be at least 1, got {ratio!r}.")
        if self.keep is not None and not callable(self.keep):
            raise ValueError(f"keep must be a function of two strings, got {self.keep!r}.")

    def reason(self, source: str, target: str) -> str | None:
        """Name the first reason to drop a pair, duplicates apart; None keeps it."""
        if not source.strip() or not target.strip():
            return "blank"
        shorter, longer = sorted((len(source), len(target)))
        if shorter < self.min_length:
            return "too_short"
        if self.max_length is not None and longer > self.max_length:
            return "too_long"
        if self.max_ratio is not None and longer > self.max_ratio * shorter:
            return "ratio"
        if not self.identical and source == target:
            return "identical"
        if self.keep is not None and not self.keep(source, target):
            return "rejected"
        return None


def select(pairs: Iterable[tuple[str, str]], count: int, rule: Rule) -> tuple[NDArray[np.bool_], Cleaning]:
    """Say which of `count` pairs are kept, bool `[count]`, and why the others are not.

    Duplicates are found by 64-bit hashes, so that memory is 9 bytes a pair.
    """
    kept = np.zeros([count], bool)
    hashes = np.zeros([count if not rule.duplicates else 0], np.uint64)
    counts = dict.fromkeys(("blank", "too_short", "too_long", "ratio", "identical", "rejected"), 0)
    read = 0
    for number, (source, target) in enumerate(pairs):
        read += 1
        if read > count:
            continue
        reason = rule.reason(source, target)
        if reason:
            counts[reason] += 1
            continue
        kept[number] = True
        if len(hashes):
            hashes[number] = _hash(source, target)
    if read != count:
        raise ValueError(f"The corpus had {count} pairs and now has {read}.")
    before = int(kept.sum())
    if len(hashes):
        places = np.flatnonzero(kept)
        first = np.unique(hashes[places], return_index=True)[1]  # the first of each value
        kept[:] = False
        kept[places[first]] = True
    cleaning = Cleaning(
        pairs=count,
        **counts,
        duplicates=before - int(kept.sum()),
        min_length=rule.min_length,
        max_length=rule.max_length,
        max_ratio=rule.max_ratio,
    )
    if not cleaning.kept:
        raise ValueError(f"No pair is left: {cleaning}.")
    _LOGGER.log(logging.WARNING if cleaning.dropped else logging.INFO, "%s", cleaning)
    return kept, cleaning


def _hash(source: str, target: str) -> int:
    content = f"{len(source)} {source}{target}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def masked(pairs: Iterable[tuple[str, str]], kept: NDArray[np.bool_]) -> Iterator[tuple[str, str]]:
    """Give the pairs that are kept."""
    return (pair for pair, keep in zip(pairs, kept, strict=True) if keep)
