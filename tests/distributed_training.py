"""Train a small model under a strategy, in a process of its own; no test.

    python distributed_training.py NAME OUTPUT EPOCHS

NAME is that of `ks.distribute.strategy`; for "multi_worker" the environment has `TF_CONFIG`.
"""

import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import sys

import keras
import numpy as np
from token_batches import as_dataset, make_batch, small_model

import keras_seq2seq as ks

# Uneven lengths, pads alone in the second half of a batch, and a last batch of another size.
BATCHES = [make_batch([9, 1, 2, 1], 0), make_batch([7, 6, 0, 0], 1), make_batch([3, 1, 4], 2)]


def train(strategy, epochs=2):
    """Return the losses of the epochs, of a validation, and the weights at the end."""
    with strategy.scope():
        model = small_model()
        optimizer = ks.training.GlobalBatch(keras.optimizers.SGD(0.5, global_clipnorm=0.1))
        model.compile(
            optimizer,
            ks.training.SmoothedCrossentropy(0.1),
            weighted_metrics=[ks.training.TokenAccuracy()],
        )
    data = as_dataset(BATCHES)
    history = model.fit(data, epochs=epochs, validation_data=data, verbose=0).history
    return {name: np.array(values) for name, values in history.items()}, model.get_weights()


if __name__ == "__main__":
    logs, weights = train(ks.distribute.strategy(sys.argv[1]), int(sys.argv[3]))
    np.savez(sys.argv[2], **{f"weight{i}": weight for i, weight in enumerate(weights)}, **logs)
