"""What graphs from text to text are made of."""

from typing import Any

import tensorflow as tf

from keras_seq2seq.serving.served import Served, tokenizers

__all__ = ["SEED", "filled", "module_of", "signature_function", "text_function"]

SEED = 2**40 + 7  # by which exports are compared: larger than 32 bits, as users' seeds may be


def filled(ids: Any, width: int = 1) -> Any:
    """Pad ids `[B, T]` to `width`: a batch of no rows has none, without which no shape can be inferred."""
    return tf.pad(ids, [[0, 0], [0, tf.maximum(width - tf.shape(ids)[1], 0)]])


def text_function(body: Any, *names: str) -> Any:
    """Return a function of vectors with these names: strings, but int64 for a `seed`."""
    signature = [
        tf.TensorSpec([None], tf.int64 if name == "seed" else tf.string, name=name) for name in names
    ]
    return tf.function(body, signature, autograph=False)


def signature_function(body: Any, *names: str) -> Any:
    """Return the function of a signature: as `text_function`, with one answer for equal rows.

    TensorFlow Serving fills a batch up with copies of a row, which thus cost nothing. Another number of
    anything else than of texts is an error of the graph, instead of being repeated.
    """

    def run(text: Any, *others: Any) -> dict[str, Any]:
        checks = [
            tf.debugging.assert_equal(
                tf.shape(other), tf.shape(text), message=f"{name} must have one entry for each text."
            )
            for name, other in zip(names[1:], others, strict=True)
        ]
        with tf.control_dependencies(checks):
            text = tf.identity(text)
        first, place = _different(text, *others)
        found = body(*(tf.gather(column, first) for column in (text, *others)))
        return {name: tf.gather(values, place) for name, values in found.items()}

    return text_function(run, *names)


def _different(text: Any, *others: Any) -> tuple[Any, Any]:
    """Return where each different row stands first, int32 `[U]`, and which of these each row is, `[B]`."""
    key = text
    for other in others:
        # With the length in front, no two pairs of texts look alike.
        column = other if other.dtype == tf.string else tf.strings.as_string(other)
        key = tf.strings.join([tf.strings.as_string(tf.strings.length(key)), ":", key, column])
    keys, place = tf.unique(key)
    rows = tf.range(tf.size(text))
    return tf.math.unsorted_segment_min(rows, place, tf.size(keys)), place


def module_of(served: Served) -> tf.Module:
    """Return the object that holds what the functions use, to be saved with them."""
    module = tf.Module(name=served.KIND.lower())
    # TensorFlow's C++ loader finds only those variables that the saved object itself holds.
    module.variables_ = [variable.value for variable in served.model.variables]
    module.resources_ = [each for one in tokenizers(served).values() for each in one.trackables]
    return module
