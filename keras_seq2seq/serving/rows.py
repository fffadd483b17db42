"""What callers give, text or ids, to rows of ids; a row too long is cut, with a warning."""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from keras_seq2seq.text import EOS_ID, UNK_ID, Tokenizer

__all__ = [
    "cut_rows",
    "ended_rows",
    "is_blank",
    "last_rows",
    "listed",
    "scored_rows",
    "strings",
]


def strings(name: str, texts: str | Iterable[str]) -> list[str]:
    """Return `texts` as a list of strings, one string as a list of one.

    Raises:
        TypeError: something that is no string.
    """
    if isinstance(texts, str):
        return [texts]
    texts = listed(name, texts, "a string or a list of strings")
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{name} must be a string or a list of strings, received {text!r} at [{i}].")
    return texts


def listed(name: str, values: Any, expected: str = "a list") -> list[Any]:
    """Return what was given for several texts as a list.

    Raises:
        TypeError: one string, or something that is no collection.
    """
    try:
        if not isinstance(values, (str, bytes)):
            return list(values)
    except TypeError as error:
        raise TypeError(f"{name} must be {expected}, received {values!r:.80}.") from error
    raise TypeError(f"{name} must be {expected}, received {values!r:.80}.")


def is_blank(text: str) -> bool:
    """Say whether there is nothing but white space."""
    return not text or text.isspace()


def _id_rows(name: str, values: Sequence[Any], tokenizer: Tokenizer) -> list[np.ndarray]:
    """Return the ids of each value, a string or a list of ids, int32 `[length]`, no BOS, no EOS.

    Raises:
        ValueError: ids that text cannot have: pad, BOS, EOS (but for one at the end), or unknown numbers.
    """
    texts = [i for i, value in enumerate(values) if isinstance(value, str)]
    rows: list[Any] = list(values)
    if texts:
        ragged = tokenizer.tokenize([values[i] for i in texts])
        splits, flat = ragged.row_splits.numpy(), ragged.values.numpy()
        for i, start, end in zip(texts, splits[:-1], splits[1:], strict=True):
            rows[i] = flat[start:end]
    given = set(range(len(rows))).difference(texts)
    for i in given:
        rows[i] = _checked(f"{name}[{i}]", rows[i], tokenizer.vocabulary_size)
    return rows


def cut_rows(name: str, values: Sequence[Any], tokenizer: Tokenizer, most: int) -> list[np.ndarray]:
    """Return the first `most` ids of each value; see `_id_rows`."""
    rows = _id_rows(name, values, tokenizer)
    _warn_of_cuts(rows, most, f"{name} had more than {most} tokens")
    return [row[:most] for row in rows]


def ended_rows(name: str, values: Sequence[Any], tokenizer: Tokenizer, max_length: int) -> list[np.ndarray]:
    """Return the ids of each value, at most `max_length` of them, ending in EOS; see `_id_rows`."""
    rows = _id_rows(name, values, tokenizer)
    _warn_of_cuts(rows, max_length - 1, f"{name} had more than {max_length} tokens with EOS")
    return [np.append(row[: max_length - 1], np.int32(EOS_ID)) for row in rows]


def last_rows(name: str, values: Sequence[Any], tokenizer: Tokenizer, most: int) -> list[np.ndarray]:
    """Return the last `most` ids of each value; see `_id_rows`."""
    rows = _id_rows(name, values, tokenizer)
    _warn_of_cuts(rows, most, f"{name} had more than {most} tokens", "keep only the last of them")
    return [row[max(len(row) - most, 0) :] for row in rows]


def scored_rows(
    name: str, values: Sequence[Any], tokenizer: Tokenizer, most: int, eos: bool
) -> list[np.ndarray]:
    """Return the first `most` ids of each value: ids as they are, text with EOS behind it if `eos`."""
    rows = _id_rows(name, values, tokenizer)
    for i, value in enumerate(values):
        if eos if isinstance(value, str) else len(value) and value[-1] == EOS_ID:
            rows[i] = np.append(rows[i], np.int32(EOS_ID))
    _warn_of_cuts(rows, most, f"{name} had more than {most} tokens")
    return [row[:most] for row in rows]


def _warn_of_cuts(rows: list[np.ndarray], most: int, what: str, then: str = "were cut there") -> None:
    cut = sum(len(row) > most for row in rows)
    if cut:
        warnings.warn(f"{cut} of {len(rows)} {what} and {then}.", stacklevel=4)


def _checked(name: str, row: Any, vocabulary_size: int) -> np.ndarray:
    if isinstance(row, bytes) or not isinstance(row, (Sequence, np.ndarray)):
        raise TypeError(f"{name} must be a string or a list of ids, received {row!r:.80}.")
    ids = np.asarray(row) if len(row) else np.zeros(0, np.int32)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise TypeError(f"{name} must be a string or a list of ids, received {row!r:.80}.")
    if len(ids) and ids[-1] == EOS_ID:
        ids = ids[:-1]
    wrong = (ids != UNK_ID) & ((ids <= EOS_ID) | (ids >= vocabulary_size))
    if wrong.any():
        raise ValueError(
            f"{name} holds the id {ids[wrong][0]}, "
            f"expected {UNK_ID} or {EOS_ID + 1} to {vocabulary_size - 1}."
        )
    return ids.astype(np.int32)
