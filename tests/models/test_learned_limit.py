"""A sequence beyond the learned positions stops `fit`, with limit and length in the message."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_seq2seq.models import transformer_lm
from keras_seq2seq.training import SmoothedCrossentropy


def batches(length: int) -> tf.data.Dataset:
    """One batch whose length is not known before it comes."""
    ids = np.full((2, length), 5, "int32")
    signature = (
        {"target": tf.TensorSpec((None, None), tf.int32)},
        tf.TensorSpec((None, None), tf.int32),
        tf.TensorSpec((None, None), tf.float32),
    )
    weights = np.full((2, length), 1 / ids.size, "float32")
    return tf.data.Dataset.from_generator(
        lambda: iter([({"target": ids}, ids, weights)]), output_signature=signature
    )


def test_fit_names_limit_and_length() -> None:
    model = transformer_lm(9, num_layers=1, model_dim=8, num_heads=2, max_length=16)
    model.compile(keras.optimizers.SGD(0.1), SmoothedCrossentropy())
    known = tf.data.experimental.assert_cardinality(1)
    model.fit(batches(16).apply(known), verbose=0)
    message = r"(?s)(= 17 .*max_length_is_16|max_length_is_16.*= 17)"
    for call in (model.fit, model.evaluate):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            call(batches(17).apply(known), verbose=0)
