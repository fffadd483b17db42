"""Integers among arguments: the one check of the rooms text and data."""

import operator
from typing import Any


def integer(name: str, value: Any, least: int = 1) -> int:
    """Give an argument, of Python or NumPy, as an `int`.

    Raises:
        ValueError: if it is no integer, a truth value, or less than `least`.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}.")
    return number
