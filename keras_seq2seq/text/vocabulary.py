"""Lists of tokens: learnt by frequency, checked, and kept as JSON, which any token survives.

A vocabulary holds no control tokens: entry i has the id i + 4.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from keras_seq2seq.text.integers import integer
from keras_seq2seq.text.tokenizer import EOS_ID, utf8

FIRST_ID = EOS_ID + 1
UNKNOWN = "\u2047"  # what unk looks like in text

Made = TypeVar("Made")


def texts(lines: tuple[Iterable[str | bytes], ...]) -> Iterator[str]:
    """Iterate over all lines as valid Unicode: invalid UTF-8 and lone surrogates become U+FFFD.

    Raises:
        TypeError: if an iterable of strings turns out to be a string, such as a path, or to hold no strings.
    """
    for part in lines:
        if isinstance(part, (str, bytes)) or not isinstance(part, Iterable):
            got = "a single string" if isinstance(part, (str, bytes)) else repr(part)
            raise TypeError(f"lines must be iterables of strings, got {got}.")
    return (_valid(line) for part in lines for line in part)


def _valid(line: Any) -> str:
    if not isinstance(line, (str, bytes)):
        raise TypeError(f"lines must hold strings, got {line!r}.")
    return utf8(line).decode("utf-8", "replace")


def most_frequent(counts: Counter[str], vocabulary_size: int | None, min_count: int) -> list[str]:
    """Give the tokens that occur at least `min_count` times, the most frequent first, ties by code points.

    Raises:
        ValueError: if there are none.
    """
    if not counts:
        raise ValueError("lines hold no text to learn a vocabulary from.")
    tokens = [token for token, count in counts.items() if count >= min_count]
    if not tokens:
        raise ValueError(
            f"min_count={min_count} leaves no token: the most frequent occurs {max(counts.values())} times."
        )
    tokens.sort(key=lambda token: (-counts[token], token))
    return tokens if vocabulary_size is None else tokens[: vocabulary_size - FIRST_ID]


def check_sizes(vocabulary_size: int | None, min_count: int) -> None:
    """Refuse a vocabulary without a place for one token besides the control ids, and a count below 1."""
    if vocabulary_size is not None:
        integer("vocabulary_size", vocabulary_size, FIRST_ID + 1)
    integer("min_count", min_count)


def checked(name: str, tokens: Iterable[str]) -> tuple[str, ...]:
    """Give the tokens of a vocabulary as a tuple.

    Args:
        name: of the argument, for messages.
        tokens: the entries in the order of their ids.

    Raises:
        ValueError: if there are none, or one is not a string, is empty, cannot be written as UTF-8
            or occurs twice.
    """
    entries = tuple(tokens)
    if not entries:
        raise ValueError(f"{name} must hold at least one token, got none.")
    places: dict[str, int] = {}
    for place, token in enumerate(entries):
        if not isinstance(token, str) or not token:
            raise ValueError(f"{name} must hold non-empty strings, got {token!r} at place {place}.")
        if any("\ud800" <= character <= "\udfff" for character in token):
            raise ValueError(f"{name} must hold valid Unicode, got {token!r} at place {place}.")
        if places.setdefault(token, place) != place:
            raise ValueError(f"{name} holds {token!r} twice, at places {places[token]} and {place}.")
    return entries


def to_json(content: dict[str, Any]) -> bytes:
    """Write the content of a vocabulary file: lists of tokens and options."""
    return (json.dumps(content, indent=0) + "\n").encode()


def from_json(path: str, make: Callable[[Any], Made]) -> Made:
    """Make a tokenizer of the content of a vocabulary file.

    Raises:
        ValueError: if the content is damaged, or refused by `make`.
    """
    with open(path, "rb") as file:
        raw = file.read()
    try:
        return make(json.loads(raw))
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path!r} is damaged: it does not describe a vocabulary.") from error
    except ValueError as error:
        raise ValueError(f"{path!r} is damaged: {error}") from error
