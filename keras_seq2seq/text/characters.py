"""Characters: every Unicode code point is a token."""

import os
from collections import Counter
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import tensorflow as tf

from keras_seq2seq.text.tokenizer import UNK_ID, Tokenizer
from keras_seq2seq.text.vocabulary import (
    FIRST_ID,
    UNKNOWN,
    check_sizes,
    checked,
    from_json,
    most_frequent,
    texts,
    to_json,
)

_FILE = "characters.json"


class Characters(Tokenizer):
    """Unicode code points as tokens.

    `detokenize(tokenize(text))` is `text` itself if all its characters are in the vocabulary. Any other
    character becomes unk, shown as "\u2047". Line feeds and spaces are characters like others.

    The vocabulary is a sorted constant of the graph: an export needs no assets and no tables.

    Args:
        characters: the vocabulary, one code point each: a string, or a list of strings. The first one
            has the id 4.

    Raises:
        ValueError: if there are none, one occurs twice, or an entry is not one code point.
    """

    def __init__(self, characters: Iterable[str]):
        self._characters = checked("characters", characters)
        for place, character in enumerate(self._characters):
            if len(character) != 1:
                raise ValueError(
                    f"characters must be single code points, got {character!r} at place {place}."
                )
        codes = np.array([ord(character) for character in self._characters], np.int32)
        order = np.argsort(codes)
        self._sorted, self._ids = codes[order], (order + FIRST_ID).astype(np.int32)  # both [V - 4]
        # The code point of each id; those of the control ids but unk are never asked for.
        self._codes = np.concatenate([np.full([FIRST_ID], ord(UNKNOWN), np.int32), codes])  # [V]

    @classmethod
    def train(
        cls, *lines: Iterable[str | bytes], vocabulary_size: int | None = None, min_count: int = 1
    ) -> Self:
        """Collect the characters of text, the most frequent first, ties by code point.

        Args:
            *lines: one iterable of strings, or several; they are streamed.
            vocabulary_size: the most ids that there may be; None keeps all characters.
            min_count: how often a character must occur.

        Raises:
            ValueError: if there is no text, no character is kept, or an argument is out of range.
        """
        check_sizes(vocabulary_size, min_count)
        counts: Counter[str] = Counter()
        for text in texts(lines):
            counts.update(text)
        return cls(most_frequent(counts, vocabulary_size, min_count))

    @classmethod
    def build(cls, characters: Iterable[str]) -> Self:
        """Take these characters, in this order; raises what the constructor raises."""
        return cls(characters)

    @property
    def vocabulary_size(self) -> int:
        """Number of ids, the control ids among them."""
        return len(self._codes)

    @property
    def characters(self) -> tuple[str, ...]:
        """The vocabulary; the first character has the id 4."""
        return self._characters

    def __repr__(self) -> str:
        return f"Characters(vocabulary_size={self.vocabulary_size})"

    def _encode(self, strings: Any) -> Any:
        rows = tf.strings.unicode_decode(strings, "UTF-8")  # code points, invalid bytes replaced
        codes = rows.flat_values  # [N]
        place = tf.minimum(tf.searchsorted(self._sorted, codes), len(self._sorted) - 1)
        known = tf.gather(self._sorted, place) == codes
        ids = tf.where(known, tf.gather(self._ids, place), UNK_ID)
        return tf.cast(rows.with_flat_values(ids), tf.int32)

    def _decode(self, ids: Any) -> Any:
        return tf.strings.unicode_encode(
            ids.with_flat_values(tf.gather(self._codes, ids.flat_values)), "UTF-8"
        )

    def _files(self) -> dict[str, bytes]:
        return {_FILE: to_json({"characters": list(self._characters)})}

    @classmethod
    def _from_files(cls, directory: str) -> Self:
        path = os.path.join(directory, _FILE)
        return from_json(path, lambda content: cls(content["characters"]))
