"""What training a recurrent model costs: `python tests/benchmarks/recurrent.py [--json FILE] [--quick]`.

A two-layer bidirectional LSTM encoder and a two-layer LSTM decoder of 512 units with Luong's attention, once
with attention after the decoder and once with input feeding, each beside the same model built of Keras' own
layers. Sentences have the lengths of captions, and words are drawn at random. All variants alternate; the
median of all rounds is shown. No test runs this.
"""

import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops
from report import arguments, in_turn, matrix_limit, report

import keras_seq2seq as ks

VOCABULARY, EMBEDDING, UNITS, DROPOUT = 8000, 256, 512, 0.2
Batch = tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]


def make_batches(tokens: int, count: int) -> list[Batch]:
    """Draw batches of sentences of similar length, `tokens` with pads on the side of the target."""
    rng, batches = np.random.default_rng(0), []
    for width in np.linspace(8, 24, count).astype(int):
        rows = tokens // (width + 1)
        lengths = rng.integers(max(width - 4, 2), width + 1, (2, rows))
        ids = rng.integers(4, VOCABULARY, (2, rows, width)).astype("int32")
        source, target = np.where(np.arange(width) < lengths[..., None], ids, 0)
        start = np.concatenate([np.full((rows, 1), 2, "int32"), target], axis=1)
        weight = (start != 0).astype("float32")
        labels = np.concatenate([target, np.zeros((rows, 1), "int32")], axis=1)
        labels[np.arange(rows), lengths[1]] = 3
        batches.append(({"source": source, "target": start}, labels, weight / weight.sum()))
    return batches


def ours(feed: bool) -> keras.Model:
    """Build the library's model."""
    return ks.models.rnn_seq2seq(
        VOCABULARY,
        units=UNITS,
        embedding_dim=EMBEDDING,
        encoder_layers=2,
        decoder_layers=2,
        attention=ks.layers.LuongAttention("general"),
        input_feeding=feed,
        dropout=DROPOUT,
        share_embeddings=False,
        tie_embeddings=False,
    )


class FeedingCell(layers.Layer):
    """Two LSTM cells, attention, and the attentional vector that goes into the next step."""

    def __init__(self) -> None:
        super().__init__()
        self.lower, self.upper = layers.LSTMCell(UNITS), layers.LSTMCell(UNITS)
        self.combine, self.drop = layers.Dense(UNITS, activation="tanh"), layers.Dropout(DROPOUT)

    def build(self, *shapes: Any) -> None:
        self.lower.build((None, EMBEDDING + UNITS))
        self.upper.build((None, UNITS))
        self.combine.build((None, 3 * UNITS))

    def call(self, y, first, cell, keys, memory, bias, training=None):
        def step(x, states):
            h1, c1, h2, c2, fed = states
            _, (h1, c1) = self.lower(ops.concatenate([x, fed], -1), [h1, c1], training=training)
            _, (h2, c2) = self.upper(self.drop(h1, training=training), [h2, c2], training=training)
            weights = ops.softmax(ops.squeeze(ops.matmul(keys, h2[:, :, None]), 2) + bias)
            context = ops.squeeze(ops.matmul(weights[:, None], memory), 1)
            fed = self.combine(ops.concatenate([context, h2], -1))
            return fed, [h1, c1, h2, c2, fed]

        states = [first, cell, first, cell, ops.zeros_like(first)]
        return keras.src.backend.rnn(step, y, states)[1]

    def compute_output_spec(self, y, *others, **options):
        return keras.KerasTensor((*y.shape[:2], UNITS), y.dtype)


def plain(feed: bool) -> keras.Model:
    """Build the same model of Keras' layers, as its users do."""
    source, target = (keras.Input((None,), dtype="int32", name=name) for name in ("source", "target"))
    mask = layers.Lambda(lambda x: x != 0, output_shape=lambda shape: shape)(source)
    x = layers.Dropout(DROPOUT)(layers.Embedding(VOCABULARY, EMBEDDING)(source))
    x = layers.Bidirectional(layers.LSTM(UNITS, return_sequences=True))(x, mask=mask)
    encoder = layers.Bidirectional(layers.LSTM(UNITS, return_sequences=True, return_state=True))
    memory, *states = encoder(layers.Dropout(DROPOUT)(x), mask=mask)
    bridge = layers.Dense(UNITS, activation="tanh")
    first, cell = (bridge(layers.Concatenate()([states[i], states[i + 2]])) for i in (0, 1))
    keys = layers.Dense(UNITS, use_bias=False)(memory)
    to_bias = layers.Lambda(lambda m: (1.0 - ops.cast(m, "float32")) * -1e9, output_shape=lambda s: s)
    bias = to_bias(mask)
    y = layers.Dropout(DROPOUT)(layers.Embedding(VOCABULARY, EMBEDDING)(target))
    if feed:
        top = FeedingCell()(y, first, cell, keys, memory, bias)
    else:
        y = layers.LSTM(UNITS, return_sequences=True)(y, initial_state=[first, cell])
        y = layers.LSTM(UNITS, return_sequences=True)(layers.Dropout(DROPOUT)(y), initial_state=[first, cell])
        attend = layers.Lambda(
            lambda z: ops.matmul(
                ops.softmax(ops.matmul(z[0], ops.transpose(z[1], (0, 2, 1))) + z[3][:, None]), z[2]
            ),
            output_shape=lambda shapes: (*shapes[0][:2], 2 * UNITS),
        )
        context = attend([y, keys, memory, bias])
        top = layers.Dense(UNITS, activation="tanh")(layers.Concatenate()([context, y]))
    logits = layers.Dense(VOCABULARY)(layers.Dropout(DROPOUT)(top))
    return keras.Model({"source": source, "target": target}, logits)


def plain_loss(labels, logits):
    """Smooth labels as a user of Keras writes it who wants no one-hot."""
    labels = ops.cast(labels, "int32")
    normalizer = ops.logsumexp(logits, axis=-1)
    right = ops.squeeze(ops.take_along_axis(logits, labels[..., None], axis=-1), -1)
    return normalizer - 0.9 * right - 0.1 * ops.mean(logits, axis=-1)


def trainer(model: keras.Model, loss: Any, batches: list[Batch]) -> Callable[[], Any]:
    """Return a function that trains on all batches once."""
    model.compile(keras.optimizers.Adam(1e-3), loss, jit_compile=False)
    parts = [tf.data.Dataset.from_tensors(batch) for batch in batches]
    shape = {name: tf.TensorSpec([None, None], tf.int32) for name in ("source", "target")}
    spec = shape, tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None, None], tf.float32)
    data = tf.data.Dataset.from_generator(
        lambda: (each for part in parts for each in part), output_signature=spec
    )
    data = data.apply(tf.data.experimental.assert_cardinality(len(batches))).cache().prefetch(2)
    options = tf.data.Options()
    options.autotune.enabled = False  # it can hold up the end of an epoch by ten seconds
    data = data.with_options(options)

    return lambda: model.fit(data, shuffle=False, verbose=0)


def measure(rounds: int, tokens: int) -> list[dict[str, Any]]:
    """Train all four models in turn."""
    batches = make_batches(tokens, 2)
    real = sum(int((weight > 0).sum()) for *_, weight in batches)
    kinds = {"Keras' layers": (plain, plain_loss), "ours": (ours, ks.training.SmoothedCrossentropy(0.1))}
    runs = {
        (name, feed): trainer(build(feed), loss, batches)
        for feed in (False, True)
        for name, (build, loss) in kinds.items()
    }
    speeds = {key: real / seconds for key, seconds in in_turn(runs, rounds).items()}
    return [
        {
            "model": name,
            "input feeding": "yes" if feed else "no",
            "target tokens/s": round(speed),
            "ratio": round(speed / speeds["Keras' layers", feed], 2),
        }
        for (name, feed), speed in speeds.items()
    ]


def main() -> None:
    """Measure, print and write."""
    options = arguments("Measure what training a recurrent model costs.")
    found = measure(3 if options.quick else 5, 1024 if options.quick else 4096)
    machine = {"matrix limit, GFLOP/s": round(matrix_limit())}
    report({"training a recurrent model": found, "machine": [machine]}, options.json)


if __name__ == "__main__":
    main()
