"""An export compiled by XLA: a few shapes of batches, and a graph for all others.

XLA compiles a search anew for each shape, which takes seconds. So the ids are padded to one of a few shapes,
and a batch that is larger than all of them is searched without XLA.

Legend: B rows, S length.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf

from keras_seq2seq.text import PAD_ID

__all__ = ["XLABuckets", "in_buckets", "rising", "with_xla"]


@dataclass(frozen=True)
class XLABuckets:
    """The shapes that an export compiles, each when the first batch of that shape comes.

    Each search of an export, one for `translate` or `generate` and one for `sample`, is compiled at most
    once for each batch size and length.

    Args:
        batch_sizes: rising; a batch gets rows of pads up to the next of them, which cost little.
        lengths: rising, of sources with EOS or of prompts with BOS; rows get pads up to the next.

    Raises:
        ValueError: sizes that are not rising integers of at least 1.
    """

    batch_sizes: tuple[int, ...] = (1, 8, 32)
    lengths: tuple[int, ...] = (16, 32, 64)

    def __post_init__(self) -> None:
        for name in ("batch_sizes", "lengths"):
            object.__setattr__(self, name, rising(name, getattr(self, name)))


def rising(name: str, sizes: Any) -> tuple[int, ...]:
    """Return sizes as a tuple if they are rising integers of at least 1, or raise a ValueError."""
    message = f"{name} must be rising integers of at least 1, received {sizes!r}."
    try:
        given = tuple(sizes)
    except TypeError:
        raise ValueError(message) from None
    if not given or any(isinstance(size, bool) or not isinstance(size, int) for size in given):
        raise ValueError(message)
    if any(low >= high for low, high in zip((0, *given), given, strict=False)):
        raise ValueError(message)
    return given


def in_buckets(buckets: XLABuckets, compiled: Callable[..., Any], plain: Callable[..., Any]) -> Any:
    """Return a function of ids that calls `compiled` for what fits into the buckets, and `plain` otherwise.

    Args:
        buckets: the shapes.
        compiled: from ids `[B, S]` and others `[B, 1]`, or None, to tensors `[B, ...]`.
        plain: the same without XLA.
    """

    def run(ids: Any, *others: Any) -> Any:
        rows, width = tf.unstack(tf.shape(ids))

        def fitting() -> Any:
            more = _next(buckets.batch_sizes, rows) - rows
            wide = tf.pad(
                ids, [[0, more], [0, _next(buckets.lengths, width) - width]], constant_values=PAD_ID
            )
            long = (None if each is None else tf.pad(each, [[0, more], [0, 0]]) for each in others)
            found = compiled(wide, *long)
            return tf.nest.map_structure(lambda part: part[:rows], found)

        fits = tf.logical_and(rows <= buckets.batch_sizes[-1], width <= buckets.lengths[-1])
        return tf.cond(fits, fitting, lambda: plain(ids, *others))

    return run


def with_xla(served: Any) -> Any:
    """Return the same translator or generator with XLA."""
    return served.with_settings(replace(served.settings, jit_compile=True))


def _next(sizes: tuple[int, ...], size: Any) -> Any:
    """Return the smallest of `sizes` that is at least `size`, int32."""
    return tf.gather(sizes, tf.searchsorted(sizes, size[tf.newaxis])[0])
