"""Rows of ids to padded batches: sorted by length, few shapes where every shape is compiled anew."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from keras_seq2seq.text import PAD_ID

__all__ = ["batches_by_length", "pad_rows", "round_up"]

Rows = Sequence[Any]  # of int32 [length]


def batches_by_length(lengths: Sequence[int], batch_size: int, tokens_per_batch: int) -> Iterator[list[int]]:
    """Group rows of similar length.

    Args:
        lengths: of each row.
        batch_size: the most rows in a batch.
        tokens_per_batch: the most rows times the longest of them; a longer row is a batch of its own.

    Yields:
        Row numbers, longest rows first, so that memory is claimed once and at the start.
    """
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        width = lengths[batch[0]] if batch else 0
        if batch and (len(batch) == batch_size or (len(batch) + 1) * width > tokens_per_batch):
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def pad_rows(rows: Rows, count: int | None = None, width: int | None = None) -> np.ndarray:
    """Return int32 `[count, width]`: the rows, pads behind them, rows of pads below; default just enough."""
    width = max((len(row) for row in rows), default=0) if width is None else width
    padded = np.full((len(rows) if count is None else count, width), PAD_ID, np.int32)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return padded


def round_up(size: int, step: int = 8) -> int:
    """Return the next of few sizes: multiples of `step`, and from 8 steps on ever coarser ones.

    Sizes are at most a quarter larger than asked for once they exceed 4 steps.
    """
    while size > 8 * step:
        step *= 2
    return -(-size // step) * step
