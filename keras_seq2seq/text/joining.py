"""Words to text: where the spaces go."""

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_seq2seq.text.splitting import stand_alone


class Joiner:
    """Puts tokens together, with a space before each but the first.

    There is none before the rest of a word. With `close_up` there is none either between Chinese
    characters, Japanese kana and their punctuation where one of the two is a word wherever it stands.

    Args:
        tokens: the text of each id, `[V]`.
        inner: whether it continues a word, `[V]`.
        close_up: whether the tokens come from splitting at punctuation.
    """

    def __init__(self, tokens: Sequence[str], inner: Sequence[bool], *, close_up: bool):
        self._tokens = np.array([token.encode() for token in tokens], object)
        self._inner = np.array(inner)
        self._wide = np.array([close_up and all(map(_is_wide, token)) for token in tokens])
        with tf.init_scope():
            self._alone = stand_alone(tf.constant(self._tokens, tf.string)).numpy() & self._wide

    def __call__(self, ids: Any) -> Any:
        """Turn ragged ids `[B, None]` into strings `[B]`."""
        flat = ids.flat_values  # [N]
        wide, alone = tf.gather(self._wide, flat), tf.gather(self._alone, flat)
        close = (wide & _before(alone)) | (alone & _before(wide)) | tf.gather(self._inner, flat)
        words = tf.gather(tf.constant(self._tokens, tf.string), flat)
        parts = tf.strings.join([tf.where(close, "", " "), words])
        text = tf.strings.reduce_join(ids.with_flat_values(parts), axis=1)  # [B]
        return tf.strings.regex_replace(text, r"\A ", "")


def _before(flags: Any) -> Any:
    """Give the flag of the token before each, `[N]`."""
    return tf.concat([[False], flags[:-1]], axis=0)


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF" and unicodedata.category(character) != "So"
