"""Words: whole words as tokens, all others unknown."""

import itertools
import os
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import tensorflow as tf

from keras_seq2seq.text.joining import Joiner
from keras_seq2seq.text.splitting import Splitter
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

_FILE = "words.json"
_HASHES = (1 << 63) - 1


class Words(Tokenizer):
    """Whole words as tokens; a word that is not in the vocabulary becomes unk, shown as "\u2047".

    `detokenize` puts one space between words, so that `detokenize(tokenize(text))` is `text` with
    unknown words replaced and white space made single spaces. With `split="punctuation"` there are
    spaces around punctuation, too, but none between Chinese or Japanese characters where splitting
    does without. A second pass changes nothing.

    The vocabulary is a sorted constant of the graph, found by hash and then compared: an export needs
    no assets and no tables.

    Args:
        words: the vocabulary. The first word has the id 4.
        split: "whitespace" takes what white space separates, for text that is tokenized already.
            "punctuation" also takes every character that is no letter, digit or combining mark, and
            every Chinese character, as a word of its own.
        lowercase: whether to lower the case of all text.

    Raises:
        ValueError: if there are no words, one occurs twice or is empty, or `split` is unknown.
    """

    def __init__(self, words: Iterable[str], *, split: str = "whitespace", lowercase: bool = False):
        self._words = checked("words", words)
        self._splitter = Splitter(split, lowercase)
        tokens = np.array([word.encode() for word in self._words], object)
        with tf.init_scope():
            for salt in itertools.count():  # until no two words have one hash, which is at once
                hashes = _hashes(tf.constant(tokens, tf.string), salt).numpy()
                if len(np.unique(hashes)) == len(tokens):
                    break
        order = np.argsort(hashes)
        self._salt, self._hashes, self._sorted = salt, hashes[order], tokens[order]  # [V - 4]
        self._ids = (order + FIRST_ID).astype(np.int32)  # [V - 4]
        shown = [UNKNOWN] * FIRST_ID + list(self._words)  # [V]
        self._join = Joiner(shown, [False] * len(shown), close_up=split == "punctuation")

    @classmethod
    def train(
        cls,
        *lines: Iterable[str | bytes],
        vocabulary_size: int | None = None,
        min_count: int = 1,
        split: str = "whitespace",
        lowercase: bool = False,
    ) -> Self:
        """Collect the words of text, the most frequent first, ties by code points.

        The lines are streamed; of very large texts the rarest words are forgotten on the way.

        Args:
            *lines: one iterable of strings, or several for a joint vocabulary.
            vocabulary_size: the most ids that there may be; None keeps all words.
            min_count: how often a word must occur.
            split: as in the constructor.
            lowercase: as in the constructor.

        Raises:
            ValueError: if there is no text, no word is kept, or an argument is out of range.
        """
        check_sizes(vocabulary_size, min_count)
        counts = Splitter(split, lowercase).count(texts(lines))
        return cls(most_frequent(counts, vocabulary_size, min_count), split=split, lowercase=lowercase)

    @classmethod
    def build(cls, words: Iterable[str], *, split: str = "whitespace", lowercase: bool = False) -> Self:
        """Take these words, in this order; raises what the constructor raises."""
        return cls(words, split=split, lowercase=lowercase)

    @property
    def vocabulary_size(self) -> int:
        """Number of ids, the control ids among them."""
        return FIRST_ID + len(self._words)

    @property
    def words(self) -> tuple[str, ...]:
        """The vocabulary; the first word has the id 4."""
        return self._words

    def __repr__(self) -> str:
        options = f"split={self._splitter.split!r}, lowercase={self._splitter.lowercase}"
        return f"Words(vocabulary_size={self.vocabulary_size}, {options})"

    def _encode(self, strings: Any) -> Any:
        words = self._splitter(strings)
        flat = words.flat_values  # [N]
        place = tf.searchsorted(self._hashes, _hashes(flat, self._salt))
        place = tf.minimum(place, len(self._hashes) - 1)
        known = tf.gather(tf.constant(self._sorted, tf.string), place) == flat
        return words.with_flat_values(tf.where(known, tf.gather(self._ids, place), UNK_ID))

    def _decode(self, ids: Any) -> Any:
        return self._join(ids)

    def _files(self) -> dict[str, bytes]:
        return {_FILE: to_json({"words": list(self._words), **vars(self._splitter)})}

    @classmethod
    def _from_files(cls, directory: str) -> Self:
        path = os.path.join(directory, _FILE)
        return from_json(
            path, lambda file: cls(file["words"], split=file["split"], lowercase=file["lowercase"])
        )


def _hashes(words: Any, salt: int) -> Any:
    """Give the hashes of words `[N]`, int64 `[N]`."""
    return tf.strings.to_hash_bucket_strong(words, _HASHES, key=[salt, 0])
