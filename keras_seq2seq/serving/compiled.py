"""Functions from ids to ids, compiled and kept; and what they have in common.

Legend: B rows, T length, V vocabulary.
"""

from functools import partial
from typing import Any

import tensorflow as tf

from keras_seq2seq.search import ForbiddenTokens
from keras_seq2seq.text import BOS_ID, PAD_ID

__all__ = ["SCORE_LOGITS", "Compiled", "log_probability", "row_lengths"]

HALVED = 16  # rows from which on two halves are faster than the whole
SCORE_LOGITS = 1 << 25  # float32 values of one batch's logits when texts are scored, 128 MiB


class Compiled:
    """Functions of ids, each compiled on first use and kept; nothing else is.

    One graph serves all shapes. Under XLA, which compiles it anew for each shape, both halves of a batch
    run at a time.
    """

    def __init__(self) -> None:
        self._functions: dict[Any, Any] = {}

    def __call__(self, body: Any, ids: tuple[Any, ...], xla: bool = False, **options: Any) -> Any:
        """Return `body(*ids, **options)`, for ids int32 of two axes; each option has its own function."""
        return self._function(body, len(ids), xla, options)(*map(tf.convert_to_tensor, ids))

    def trace(self, body: Any, count: int, **options: Any) -> None:
        """Compile a function of `count` ids now, so that what is wrong with it shows."""
        self._function(body, count, False, options)

    def _function(self, body: Any, count: int, xla: bool, options: dict[str, Any]) -> Any:
        key = body.__name__, count, xla, tuple(sorted(options.items()))
        if key not in self._functions:
            bound = partial(body, **options) if options else body
            function = _traced(bound, count, xla)
            if xla and not tf.config.list_logical_devices("GPU"):
                function = _traced(partial(_in_halves, function), count)
            self._functions[key] = function
        return self._functions[key]


def _traced(body: Any, count: int, xla: bool = False) -> Any:
    """Return a concrete function: TensorFlow would count the tracings of all objects together and warn."""
    signature = [tf.TensorSpec([None, None], tf.int32)] * count
    return tf.function(body, signature, autograph=False, jit_compile=xla or None).get_concrete_function()


def _in_halves(function: Any, *ids: Any) -> Any:
    """Call a function of XLA, which hardly uses a second core, with both halves of a batch at a time."""
    rows = tf.shape(ids[0])[0]

    def both() -> Any:
        parts = [tf.split(each, [rows - rows // 2, rows // 2]) for each in ids]
        found = [function(*half) for half in zip(*parts, strict=True)]
        return tf.nest.map_structure(lambda *halves: tf.concat(halves, axis=0), *found)

    return tf.cond(rows >= HALVED, both, lambda: function(*ids))


def log_probability(logits: Any, labels: Any) -> tuple[Any, Any]:
    """Sum the log-probabilities of labels under the search's own rules: neither pad nor BOS can follow.

    Args:
        logits: `[B, T, V]`.
        labels: int32 `[B, T]`; pads do not count.

    Returns:
        The sums, float32 `[B]`, and the number of labels, int32 `[B]`.
    """
    logits = ForbiddenTokens((PAD_ID, BOS_ID))(tf.cast(logits, tf.float32), 0)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)  # [B, T]
    return tf.reduce_sum(tf.where(labels != PAD_ID, -loss, 0.0), axis=1), row_lengths(labels)


def row_lengths(ids: Any) -> Any:
    """Return the number of ids that are no pads: int32 `[B]`."""
    return tf.reduce_sum(tf.cast(ids != PAD_ID, tf.int32), axis=1)
