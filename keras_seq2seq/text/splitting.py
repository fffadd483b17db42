"""Text to words: the rule that `Words` and `WordPiece` share, in the graph and for counting."""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf

SPLITS = ("whitespace", "punctuation")

_SPACE = r"\pZ\t-\r\x1c-\x1f\x{85}"  # what Python's str.split splits at
_MARK = rf"[^\pL\pM\pN{_SPACE}]|\p{{Han}}"
_LINES = 1024  # lines to split at a time
_MOST_WORDS = 4_000_000  # words to count at a time


@dataclasses.dataclass(frozen=True)
class Splitter:
    """The words of a text.

    Args:
        split: "whitespace" separates words at white space alone, as Python's `str.split` does.
            "punctuation" also makes every character that is no letter, digit or combining mark a
            word of its own, and every Chinese character.
        lowercase: whether to lower the case first.

    Raises:
        ValueError: if `split` is neither.
    """

    split: str
    lowercase: bool

    def __post_init__(self) -> None:
        if self.split not in SPLITS:
            raise ValueError(f"split must be one of {SPLITS}, got {self.split!r}.")

    def __call__(self, strings: Any) -> Any:
        """Turn strings `[B]` into words, ragged strings `[B, None]`, none of them empty."""
        text = tf.strings.unicode_transcode(strings, "UTF-8", "UTF-8")  # invalid bytes replaced
        if self.lowercase:
            text = _lower(text)
        if self.split == "punctuation":
            text = tf.strings.regex_replace(text, _MARK, r" \0 ")
        return tf.strings.split(tf.strings.regex_replace(text, rf"[{_SPACE}]+", " "))

    def count(self, texts: Iterable[str]) -> Counter[str]:
        """Count the words of a text of any length.

        Whenever there are more than four million different words, the rarest are forgotten.
        """
        spec = tf.TensorSpec([None], tf.string)
        split = tf.function(self, [spec], autograph=False).get_concrete_function()
        counts: Counter[bytes] = Counter()
        texts, least = iter(texts), 1
        while lines := list(itertools.islice(texts, _LINES)):
            strings = np.array([line.encode() for line in lines], object)
            counts.update(split(tf.constant(strings, tf.string)).flat_values.numpy().tolist())
            while len(counts) > _MOST_WORDS:
                counts = Counter({word: count for word, count in counts.items() if count > least})
                least += 1
        return Counter({word.decode(): count for word, count in counts.items()})


def stand_alone(words: Any) -> Any:
    """Tell which words `[N]` are characters that punctuation splitting takes out wherever they stand."""
    return tf.strings.regex_full_match(words, _MARK)


def _lower(text: Any) -> Any:
    """Lower the case of strings `[B]`; TensorFlow's own operation drops all that follows a NUL."""
    nul = tf.constant(b"\0")
    parts = tf.strings.split(text, nul)  # [B, None]
    ended = tf.strings.join([tf.strings.lower(parts.flat_values, "utf-8"), nul])
    text = tf.strings.reduce_join(parts.with_flat_values(ended), axis=1)  # [B], with a NUL at the end
    return tf.strings.regex_replace(text, r"\x00\z", "")
