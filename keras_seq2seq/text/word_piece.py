"""WordPiece: words cut into the longest known pieces, as BERT's, run by TensorFlow Text's op."""

import os
from collections import Counter
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import tensorflow as tf
import tensorflow_text
from tensorflow_text.tools.wordpiece_vocab import wordpiece_tokenizer_learner_lib as learner

from keras_seq2seq.text.integers import integer
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

_FILE = "word_piece.json"
_INNER = "##"  # begins a piece that does not begin a word
_MAX_BYTES = 100  # a longer word is unknown
_NO_PIECE = " "  # the op wants a piece for unknown words; this one is in no word


class WordPiece(Tokenizer):
    """Pieces of words: each word is cut into the longest known pieces, from left to right.

    Words are runs of letters, digits and combining marks; every other character but white space is a
    word of its own, and so is every Chinese character. A piece that does not begin a word begins with
    "##". A word with an unknown character, or of more than 100 bytes, becomes one unk, shown as
    "\u2047"; its neighbours are left alone, so that "hello😀" keeps the pieces of "hello".

    `detokenize` joins the pieces of a word and puts one space between words, around punctuation too,
    but none between Chinese or Japanese characters where splitting does without. A second pass
    changes nothing.

    The vocabulary is part of every graph that the tokenizer is used in: an export needs no assets,
    and nothing has to be tracked.

    Args:
        pieces: the vocabulary, without control tokens. The first piece has the id 4.
        lowercase: whether to lower the case of all text.

    Raises:
        ValueError: if there are no pieces, or one occurs twice, is empty or holds a NUL.

    Source: Wu et al. 2016, https://arxiv.org/abs/1609.08144; the algorithm is that of Song et al. 2021,
    https://aclanthology.org/2021.emnlp-main.160.
    """

    def __init__(self, pieces: Iterable[str], *, lowercase: bool = False):
        self._pieces = checked("pieces", pieces)
        for place, piece in enumerate(self._pieces):
            if "\0" in piece:
                raise ValueError(f"pieces must not hold a NUL, got {piece!r} at place {place}.")
        self._splitter = Splitter("punctuation", lowercase)
        unknown = _NO_PIECE
        while unknown in self._pieces:
            unknown += _NO_PIECE
        # Some versions of the builder want the unknown piece to be the last.
        self._model = tensorflow_text.build_fast_wordpiece_model(
            [*self._pieces, unknown], _MAX_BYTES, _INNER, unknown, True, False
        )
        inner = [piece.startswith(_INNER) and piece != _INNER for piece in self._pieces]
        shown = [
            piece.removeprefix(_INNER) if rest else piece
            for piece, rest in zip(self._pieces, inner, strict=True)
        ]
        self._join = Joiner([UNKNOWN] * FIRST_ID + shown, [False] * FIRST_ID + inner, close_up=True)

    @classmethod
    def train(
        cls,
        *lines: Iterable[str | bytes],
        vocabulary_size: int,
        min_count: int = 1,
        lowercase: bool = False,
        max_words: int = 50_000,
    ) -> Self:
        """Learn pieces from text, with TensorFlow Text's learner, as BERT's were.

        The lines are streamed. All characters get pieces if there is room, the most frequent first.
        Words of more than 100 bytes are passed over.

        Args:
            *lines: one iterable of strings, or several for a joint vocabulary.
            vocabulary_size: the most ids that there may be; the learner may stop some percent short.
            min_count: how often a word must occur.
            lowercase: whether to lower the case of all text.
            max_words: how many words to learn from, the most frequent ones; time grows with it.

        Raises:
            ValueError: if there is no text, no word is kept, or an argument is out of range.
        """
        check_sizes(vocabulary_size, min_count)
        max_words = integer("max_words", max_words)
        counts = Splitter("punctuation", lowercase).count(text.replace("\0", " ") for text in texts(lines))
        # Longer words are unknown anyway, and the time to learn grows with the square of the length.
        long = [word for word in counts if len(word.encode()) > _MAX_BYTES]
        for word in long:
            del counts[word]
        if long and not counts:
            raise ValueError(f"lines hold no word of at most {_MAX_BYTES} bytes to learn pieces from.")
        words = most_frequent(counts, None, min_count)[:max_words]
        return cls(
            _learn({word: counts[word] for word in words}, vocabulary_size - FIRST_ID), lowercase=lowercase
        )

    @classmethod
    def build(cls, pieces: Iterable[str], *, lowercase: bool = False) -> Self:
        """Take these pieces, in this order; raises what the constructor raises."""
        return cls(pieces, lowercase=lowercase)

    @property
    def vocabulary_size(self) -> int:
        """Number of ids, the control ids among them."""
        return FIRST_ID + len(self._pieces)

    @property
    def pieces(self) -> tuple[str, ...]:
        """The vocabulary; the first piece has the id 4."""
        return self._pieces

    def __repr__(self) -> str:
        return f"WordPiece(vocabulary_size={self.vocabulary_size}, lowercase={self._splitter.lowercase})"

    def _encode(self, strings: Any) -> Any:
        model = tf.constant(np.frombuffer(self._model, np.uint8))
        tokenizer = tensorflow_text.FastWordpieceTokenizer(model_buffer=model, token_out_type=tf.int32)
        rows = tokenizer.tokenize(self._splitter(strings)).merge_dims(1, 2)  # [B, None]
        unknown = rows.flat_values == len(self._pieces)
        return rows.with_flat_values(tf.where(unknown, UNK_ID, rows.flat_values + FIRST_ID))

    def _decode(self, ids: Any) -> Any:
        return self._join(ids)

    def _files(self) -> dict[str, bytes]:
        return {_FILE: to_json({"pieces": list(self._pieces), "lowercase": self._splitter.lowercase})}

    @classmethod
    def _from_files(cls, directory: str) -> Self:
        path = os.path.join(directory, _FILE)
        return from_json(path, lambda file: cls(file["pieces"], lowercase=file["lowercase"]))


def _learn(counts: dict[str, int], room: int) -> list[str]:
    """Give at most `room` pieces: the characters of these words, then what the learner finds."""
    single: Counter[str] = Counter()
    for word, count in counts.items():
        for place, character in enumerate(word):
            single[_INNER + character if place else character] += count
    alphabet = sorted(single, key=lambda piece: (-single[piece], piece))[:room]
    characters = {piece.removeprefix(_INNER) for piece in single}
    # The learner counts each character twice, wherever it stands; we keep what occurs.
    size = room - len(alphabet) + 2 * len(characters)
    pieces = learner.learn(
        counts,
        vocab_size=size,
        reserved_tokens=[],
        lower_thresh=1,
        upper_thresh=_ceiling(counts, room),
        max_unique_chars=len(characters),
    )
    longer = [piece for piece in pieces if piece not in single and len(piece.removeprefix(_INNER)) > 1]
    return [*alphabet, *longer[: room - len(alphabet)]]


def _ceiling(counts: dict[str, int], room: int) -> int:
    """Give a count that fewer than `room` pieces can exceed, so that the learner need not search above."""
    parts: Counter[str] = Counter()
    for word, count in counts.items():
        for start in range(len(word)):
            prefix = _INNER if start else ""
            for end in range(start + 1, len(word) + 1):
                parts[prefix + word[start:end]] += count
    return sorted(parts.values(), reverse=True)[:room][-1]
