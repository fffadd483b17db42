"""Bytes: the UTF-8 bytes of text are its tokens; nothing to learn."""

from typing import Any, Self

import tensorflow as tf

from keras_seq2seq.text.tokenizer import Tokenizer
from keras_seq2seq.text.vocabulary import FIRST_ID, UNKNOWN

_TABLE = [UNKNOWN.encode(), *(bytes([byte]) for byte in range(256))]


class Bytes(Tokenizer):
    """The bytes of UTF-8 as tokens: byte b has the id b + 4, and there are 260 ids.

    `detokenize(tokenize(text))` is `text` itself, whatever it is; only invalid UTF-8 becomes U+FFFD, on
    the way in as well as on the way out, so that a model can write half a character and the text
    stays valid.

    Source: Xue et al. 2022 (ByT5), https://aclanthology.org/2022.tacl-1.17.
    """

    @classmethod
    def build(cls) -> Self:
        """Give the tokenizer; there is nothing to choose."""
        return cls()

    @property
    def vocabulary_size(self) -> int:
        """Number of ids, the control ids among them: 260."""
        return FIRST_ID + 256

    def __repr__(self) -> str:
        return "Bytes()"

    def _encode(self, strings: Any) -> Any:
        valid = tf.strings.unicode_transcode(strings, "UTF-8", "UTF-8")
        content = tf.io.decode_raw(tf.strings.reduce_join(valid), tf.uint8)  # all rows, one after the other
        lengths = tf.cast(tf.strings.length(valid, unit="BYTE"), tf.int64)
        return tf.RaggedTensor.from_row_lengths(
            tf.cast(content, tf.int32) + FIRST_ID, lengths, validate=False
        )

    def _decode(self, ids: Any) -> Any:
        pieces = tf.gather(_TABLE, tf.maximum(ids.flat_values - FIRST_ID + 1, 0))  # [N]
        text = tf.strings.reduce_join(ids.with_flat_values(pieces), axis=1)  # [B]
        return tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")

    def _files(self) -> dict[str, bytes]:
        return {}

    @classmethod
    def _from_files(cls, directory: str) -> Self:
        return cls()
