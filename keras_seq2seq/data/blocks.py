"""Blocks of string pairs: what the pipeline handles at a time, since single strings would be slow."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

BLOCK = 1024


def in_blocks(pairs: Iterable[tuple[str, str]], size: int = BLOCK) -> Iterator[list[tuple[str, str]]]:
    """Group pairs into lists of `size`, the last of which may be shorter."""
    pairs = iter(pairs)
    while block := list(itertools.islice(pairs, size)):
        yield block


def string_tensors(pairs: Sequence[tuple[str, str]]) -> tuple[Any, Any]:
    """Give the sources and the targets of a block as two arrays of bytes objects, which keep NULs."""
    sources, targets = np.empty([len(pairs)], object), np.empty([len(pairs)], object)
    sources[:] = [source.encode("utf-8", "replace") for source, _ in pairs]
    targets[:] = [target.encode("utf-8", "replace") for _, target in pairs]
    return sources, targets
