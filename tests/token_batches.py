"""Small models and uneven batches to train them with."""

from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf
from references import randomize

from keras_seq2seq.models import transformer_seq2seq

V = 14
Batch = tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]


def small_model(layers: int = 1, width: int = 8, dropout: float = 0.0, seed: int = 0) -> keras.Model:
    model = transformer_seq2seq(
        V, num_layers=layers, model_dim=width, feed_forward_dim=9, num_heads=2, dropout=dropout
    )
    randomize(model, seed=seed)
    return model


def make_batch(lengths: Sequence[int], seed: int = 0, width: int | None = None) -> Batch:
    """Make a batch of targets of these lengths, padded; its weights sum to 1."""
    generator = np.random.default_rng(seed)
    source = generator.integers(4, V, (len(lengths), 5)).astype("int32")
    labels = np.zeros((len(lengths), width or max(lengths)), "int32")
    for row, length in zip(labels, lengths, strict=True):
        row[:length] = generator.integers(4, V, length)
    target = np.pad(labels, ((0, 0), (1, 0)), constant_values=2)[:, :-1]
    weights = (labels != 0).astype("float32")
    return {"source": source, "target": target}, labels, weights / weights.sum()


def as_dataset(batches: Sequence[Batch]) -> tf.data.Dataset:
    """Give the batches, which may differ in shape, in this order at every iteration."""
    ids = tf.TensorSpec([None, None], tf.int32)
    signature = ({"source": ids, "target": ids}, ids, tf.TensorSpec([None, None], tf.float32))
    dataset = tf.data.Dataset.from_generator(lambda: iter(batches), output_signature=signature)
    return dataset.apply(tf.data.experimental.assert_cardinality(len(batches)))
