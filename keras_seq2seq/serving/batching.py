"""Rows of ids to padded batches: sorted by length, few shapes where every shape is compiled anew."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_seq2seq.text import PAD_ID

__all__ = ["batches_by_length", "in_batches", "pad_for", "pad_rows", "round_up"]

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


def in_batches(
    lengths: Sequence[int],
    batch_size: int,
    tokens_per_batch: int,
    run: Callable[[list[int]], Sequence[Any]],
) -> list[Any]:
    """Return what `run` gives for each row, in order; it is called with the row numbers of a batch.

    The other arguments are those of `batches_by_length`.
    """
    results: list[Any] = [None] * len(lengths)
    for batch in batches_by_length(lengths, batch_size, tokens_per_batch):
        for row, result in zip(batch, run(batch), strict=True):
            results[row] = result
    return results


def pad_rows(rows: Rows, count: int | None = None, width: int | None = None) -> np.ndarray:
    """Return int32 `[count, width]`: the rows, pads behind them, rows of pads below; default just enough."""
    width = max((len(row) for row in rows), default=0) if width is None else width
    padded = np.full((len(rows) if count is None else count, width), PAD_ID, np.int32)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return padded


def pad_for(settings: Any, rows: Rows, longest: int | None = None) -> Any:
    """Return the rows as int32 tensor `[B, length]`.

    For XLA both sizes are rounded up to few, `batch_size` and `longest` at most; fillers are rows of pads.
    One row stays alone: who translates a single text waits for it.
    """
    if not settings.jit_compile:
        return tf.constant(pad_rows(rows))
    width = round_up(max(map(len, rows)))
    width = width if longest is None else min(width, longest)
    count = 1 if len(rows) == 1 else min(round_up(len(rows)), settings.batch_size)
    return tf.constant(pad_rows(rows, count, width))


def round_up(size: int, step: int = 8) -> int:
    """Return the next of few sizes: multiples of `step`, and from 8 steps on ever coarser ones.

    Sizes are at most a quarter larger than asked for once they exceed 4 steps.
    """
    while size > 8 * step:
        step *= 2
    return -(-size // step) * step
