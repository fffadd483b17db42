"""A SentencePiece model inside a graph, run by TensorFlow Text's op."""

import hashlib
from typing import Any

import tensorflow as tf
import tensorflow_text


class PieceModel:
    """Text to the ids of a SentencePiece model and back, as part of any graph.

    TensorFlow Text's object is made anew in every graph: made eagerly, it holds a resource that
    dies when TensorFlow is seeded, and that an exporter would have to track. Its resource is found
    by the name of its node, which must not be that of another model in the same program.
    """

    def __init__(self, model: bytes):
        self._model = model
        self._scope = f"sentencepiece_{hashlib.sha256(model).hexdigest()[:16]}"

    def tokenize(self, strings: Any) -> Any:
        """Strings `[B]` to ragged int32 `[B, None]`, in a graph."""
        with tf.name_scope(self._scope):
            return tensorflow_text.SentencepieceTokenizer(self._model).tokenize(strings)

    def detokenize(self, ids: Any) -> Any:
        """Ragged int32 `[B, None]` to strings `[B]`, in a graph."""
        with tf.name_scope(self._scope):
            return tensorflow_text.SentencepieceTokenizer(self._model).detokenize(ids)
