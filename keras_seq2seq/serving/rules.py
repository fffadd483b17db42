"""What a translator or a generator may not write: from settings to constraints of the search."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from keras_seq2seq.search import ForbiddenTokens, NoRepeatedNgram
from keras_seq2seq.text import EOS_ID, UNK_ID, Tokenizer

__all__ = ["constraints_of", "forbidden_ids"]


def forbidden_ids(values: Any, tokenizer: Tokenizer) -> tuple[int, ...]:
    """Return the ids of tokens that a caller forbids, by id or by text, sorted.

    Args:
        values: integers, and strings that are one token each, as `tokenizer` cuts a string that is alone.
        tokenizer: of what is written.

    Raises:
        TypeError: something that is neither, or no list.
        ValueError: an id that is never written or that ends a text, or text that is not one known token.
    """
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"forbidden_tokens must be a list of ids and strings, received {values!r:.80}.")
    return tuple(sorted({_forbidden_id(value, tokenizer) for value in values}))


def _forbidden_id(value: Any, tokenizer: Tokenizer) -> int:
    if isinstance(value, str):
        found = tokenizer.tokenize(value).numpy().tolist()
        if len(found) != 1 or found[0] == UNK_ID:
            what = "unknown" if found == [UNK_ID] else f"{len(found)} tokens"
            raise ValueError(
                "forbidden_tokens must hold text of one known token each, "
                f"received {value!r}, which is {what}."
            )
        return found[0]
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"forbidden_tokens must hold ids and strings, received {value!r}.")
    size = tokenizer.vocabulary_size
    if value != UNK_ID and not EOS_ID < value < size:
        raise ValueError(
            f"forbidden_tokens must hold ids of {UNK_ID} or {EOS_ID + 1} to {size - 1}, received {value}."
        )
    return int(value)


def constraints_of(settings: Any) -> tuple[Any, ...]:
    """Return the constraints that `settings` ask for, but for lengths."""
    rules: list[Any] = []
    if settings.forbidden_tokens:
        rules.append(ForbiddenTokens(settings.forbidden_tokens))
    if settings.no_repeat_ngram:
        rules.append(NoRepeatedNgram(settings.no_repeat_ngram))
    return tuple(rules)
