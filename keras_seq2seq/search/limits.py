"""What bounds a search."""

from typing import Any, NamedTuple

import numpy as np
from keras import ops
from keras.backend import standardize_dtype

__all__ = ["Limits", "check_limits", "first_slots"]

_SLOTS = 16  # tokens; room for fewer costs no less


class Limits(NamedTuple):
    """What bounds a search.

    Attributes:
        max_length: L, how many tokens a hypothesis may have, EOS included.
        row_limit: int32 `[B]`, the same for each source, at most L.
        pad_id: fills what follows EOS.
        eos_id: ends a hypothesis.
        seeds: int32 `[B]`, what the random numbers of each source depend on, or None.
    """

    max_length: int
    row_limit: Any
    pad_id: int
    eos_id: int
    seeds: Any = None


def check_limits(max_length, min_length, row_limit, seeds):
    """Raise a ValueError that names the argument; values that only a running graph knows are not checked."""
    _check("max_length", max_length, "an integer", 0)
    _check("min_length", min_length, "an integer or int32 [B]", 0, 1)
    if row_limit is not None:
        _check("row_limit", row_limit, "int32 [B]", 1)
    if seeds is not None:
        _check("seeds", seeds, "int32 [B]", 1)
    least = min_length if isinstance(min_length, (int, np.integer)) else 0
    if least < 0:
        raise ValueError(f"min_length must be at least 0, received {min_length}.")
    if isinstance(max_length, (int, np.integer)) and max(least, 1) > max_length:
        raise ValueError(
            "max_length must be at least 1 and at least min_length, "
            f"received max_length={max_length} and min_length={least}."
        )


def _check(name, value, expected, *ranks):
    """Refuse what is no integer, or no array of integers with one of these numbers of axes."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        shape = ()
    elif hasattr(value, "dtype") and "int" in standardize_dtype(value.dtype):
        shape = value.shape
    else:
        raise ValueError(f"{name} must be {expected}, received {value!r}.")
    if getattr(shape, "rank", 0) is not None and len(shape) not in ranks:
        raise ValueError(f"{name} must be {expected}, received the shape {tuple(shape)}.")


def first_slots(row_limit):
    """Return for how many tokens a model that can grow has room at first, an int32 scalar."""
    return ops.clip(ops.max(row_limit), 1, _SLOTS)
