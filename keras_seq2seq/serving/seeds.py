"""Which seed each text samples by, so that batches, neighbours and servers change nothing.

In memory a text's samples depend on the strategy's seed and on its place in the caller's list. A server
joins requests of many callers, where a place means nothing: there they depend on a seed that comes with the
text, or on none at all, and then every text is answered as if it were alone.

Legend: B texts.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf

from keras_seq2seq.search import Sampling
from keras_seq2seq.search.randomness import mix_halves
from keras_seq2seq.serving.rows import listed

__all__ = ["check_seeds", "column", "for_export", "lone_seeds", "mixed", "one_sample", "place_seeds"]


def place_seeds(strategy: Any, count: int, offset: int) -> np.ndarray | None:
    """Return the seed of each of `count` texts, int32, or None for a strategy that draws nothing.

    Args:
        strategy: of `keras_seq2seq.search`.
        count: how many texts.
        offset: the place of the first one.

    Raises:
        ValueError: `offset` is no integer of at least 0.
    """
    if isinstance(offset, bool) or not isinstance(offset, int) or not 0 <= offset < 2**31:
        raise ValueError(f"offset must be an integer of at least 0, received {offset!r}.")
    if not hasattr(strategy, "row_seeds"):
        return None
    return np.asarray(strategy.row_seeds(np.arange(offset, offset + count).astype(np.int32)))


def lone_seeds(strategy: Any, rows: Any) -> Any:
    """Return int32 `[B, 1]`: for each of the `rows` the seed of a text that is translated alone, or None."""
    if not hasattr(strategy, "row_seeds"):
        return None
    return strategy.row_seeds(tf.zeros([tf.shape(rows)[0]], tf.int32))[:, tf.newaxis]


def mixed(seeds: Any) -> Any:
    """Return what `Sampling(seed=s)` gives a text that is alone, for each s of int64 `[B]`: int32 `[B]`."""
    mask = tf.constant(0xFFFFFFFF, tf.int64)
    low, high = (tf.bitwise.bitwise_and(half, mask) for half in (seeds, tf.bitwise.right_shift(seeds, 32)))
    return mix_halves(tf.zeros_like(seeds), low, high)


def check_seeds(seeds: Any, count: int) -> np.ndarray:
    """Return the seeds of `count` texts as int64.

    Raises:
        TypeError: no list of integers.
        ValueError: not one for each text, or one that 64 bits do not hold.
    """
    seeds = listed("seeds", seeds, "a list of integers")
    if len(seeds) != count:
        raise ValueError(f"seeds must have one entry for each of the {count} texts, received {len(seeds)}.")
    for i, seed in enumerate(seeds):
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
            raise TypeError(f"seeds must be integers, received {seed!r} at [{i}].")
        if not -(2**63) <= seed < 2**63:
            raise ValueError(f"seeds must be integers of 64 bits, received {seed} at [{i}].")
    return np.array(seeds, np.int64)


def one_sample(strategy: Any) -> Any:
    """Return the strategy that `sample` draws by: the given one if it samples, else a plain one."""
    return replace(strategy, n=1) if isinstance(strategy, Sampling) else Sampling()


def for_export(strategy: Any) -> Any:
    """Return the strategy with a seed, 0 if it has none: a graph cannot draw a new one for each call."""
    if isinstance(strategy, Sampling) and strategy.seed is None:
        return replace(strategy, seed=0)
    return strategy


def column(seeds: np.ndarray | None, rows: Sequence[int]) -> list[list[int]] | None:
    """Return the seeds of some rows, one below the other."""
    return None if seeds is None else seeds[list(rows)].reshape(-1, 1).tolist()
