"""Blocks of string pairs, or of single strings: what the pipeline handles at a time, for its speed."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from keras_seq2seq.text.tokenizer import utf8

BLOCK = 1024

Strings = tuple[str, ...]


def in_blocks(pairs: Iterable[Strings], size: int = BLOCK) -> Iterator[list[Strings]]:
    """Group pairs, or single strings in tuples, into lists of `size`, the last of which may be shorter."""
    pairs = iter(pairs)
    while block := list(itertools.islice(pairs, size)):
        yield block


def string_tensors(pairs: Sequence[Strings], sides: int = 2) -> tuple[Any, ...]:
    """Give the sources and the targets of a block as two arrays of bytes objects, which keep NULs.

    With `sides=1` it gives the one array of a block of single strings.
    """
    columns = [np.empty([len(pairs)], object) for _ in range(sides)]
    for side, column in enumerate(columns):
        column[:] = [utf8(pair[side]) for pair in pairs]
    return tuple(columns)
