"""Train a small model under a strategy, in a process of its own; no test.

    python distributed_training.py NAME OUTPUT

NAME is that of `ks.distribute.strategy`; for "multi_worker" the environment has `TF_CONFIG`. What each of the
optimizers gives is written to OUTPUT-optimizer.npz.
"""

import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import sys

import keras
import numpy as np
import tensorflow as tf
from token_batches import Batch, as_dataset, make_batch, small_model

import keras_seq2seq as ks


def in_place(batch: Batch) -> Batch:
    """Put the arrays of a batch where TensorFlow takes their memory over, at multiples of 64 bytes."""

    def put(array):
        room = np.empty(array.nbytes + 64, "uint8")
        start = -room.ctypes.data % 64
        placed = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        placed[...] = array
        return placed

    return tf.nest.map_structure(put, batch)


def uneven_batches(overflow: bool = False) -> list[Batch]:
    """Make uneven lengths, pads alone in the second half of a batch, and a last batch of another size.

    With `overflow` the gradients of the first batch's second half are not finite if the loss is scaled.
    """
    batches = [make_batch([9, 1, 2, 1], 0), make_batch([7, 6, 0, 0], 1), make_batch([3, 1, 4], 2)]
    if overflow:
        batches[0][2][3, 0] = 1e38
    return [in_place(batch) for batch in batches]


# Name -> the optimizer. Clipping and momentum would differ if they saw less than the whole batch or group.
OPTIMIZERS = {
    "clipped": lambda: ks.training.GlobalBatch(keras.optimizers.SGD(0.5, global_clipnorm=0.1)),
    "accumulated": lambda: ks.training.GlobalBatch(
        keras.optimizers.SGD(0.5, momentum=0.9, global_clipnorm=0.1), steps=2
    ),
    "scaled": lambda: keras.optimizers.LossScaleOptimizer(
        keras.optimizers.SGD(0.5), initial_scale=16.0, dynamic_growth_steps=2
    ),
}


def train(strategy, name, epochs=2):
    """Return the losses of the epochs, of a validation, and the weights at the end.

    Where the loss is scaled, one batch overflows in one of two replicas; its scale stands in for the losses.
    """
    with strategy.scope():
        model = small_model()
        model.compile(
            OPTIMIZERS[name](),
            ks.training.SmoothedCrossentropy(0.1),
            weighted_metrics=[ks.training.TokenAccuracy()],
        )
    data = as_dataset(uneven_batches(name == "scaled"))
    history = model.fit(data, epochs=epochs, validation_data=data, verbose=0).history
    if name == "scaled":
        state = {"scale": model.optimizer.dynamic_scale, "updates": model.optimizer.iterations}
        history = {key: variable.numpy() for key, variable in state.items()}
    return {key: np.array(values) for key, values in history.items()}, model.get_weights()


if __name__ == "__main__":
    strategy = ks.distribute.strategy(sys.argv[1])
    for name in OPTIMIZERS:
        logs, weights = train(strategy, name)
        np.savez(f"{sys.argv[2]}-{name}.npz", **{f"weight{i}": x for i, x in enumerate(weights)}, **logs)
