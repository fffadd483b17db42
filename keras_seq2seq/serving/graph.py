"""What graphs from text to text are made of."""

from typing import Any

import tensorflow as tf

from keras_seq2seq.serving.served import Served, tokenizers

__all__ = ["SEED", "filled", "module_of", "require_one_each", "text_function"]

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


def require_one_each(text: Any, **others: Any) -> None:
    """Let the graph fail for another number of anything else than of texts, instead of repeating one."""
    for name, other in others.items():
        message = f"{name} must have one entry for each text."
        tf.debugging.assert_equal(tf.shape(other), tf.shape(text), message=message)


def module_of(served: Served) -> tf.Module:
    """Return the object that holds what the functions use, to be saved with them."""
    module = tf.Module(name=served.KIND.lower())
    # TensorFlow's C++ loader finds only those variables that the saved object itself holds.
    module.variables_ = [variable.value for variable in served.model.variables]
    module.resources_ = [each for one in tokenizers(served).values() for each in one.trackables]
    return module
