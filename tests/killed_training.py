"""A small training run in a process of its own, which may be killed; no test."""

import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import contextlib
import random
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_seq2seq.training import Checkpoints, WarmupInverseSqrt
from keras_seq2seq.training import resuming as module

EPOCH = 25  # batches


class Stop(keras.callbacks.Callback):
    """Ends the training after so many steps in all, as a kill between two steps would."""

    def __init__(self, checkpoints: Checkpoints, steps: int):
        super().__init__()
        self.checkpoints, self.steps = checkpoints, steps

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self.checkpoints.state.step >= self.steps:
            raise StopAsyncIteration


def make_model() -> keras.Model:
    """Two layers with dropout between them; a loss scale that changes."""
    random.seed(0)  # where Keras gets the seeds of layers from
    np.random.seed(0)
    layers = [keras.layers.Dense(64), keras.layers.Dropout(0.5), keras.layers.Dense(3)]
    model = keras.Sequential([keras.Input((40,)), *layers])
    optimizer: Any = keras.optimizers.Adam(WarmupInverseSqrt(0.01, 5), epsilon=1e-4)
    optimizer = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=8.0, dynamic_growth_steps=4)
    model.compile(optimizer, "mse", metrics=["mae"], run_eagerly=True)  # starts sooner
    return model


class Data:
    """Batches whose order depends on the epoch."""

    def __init__(self) -> None:
        self.epoch = 0

    def seek(self, epoch: int) -> None:
        self.epoch = epoch

    def dataset(self) -> tf.data.Dataset:
        def batches() -> Any:
            generator = np.random.default_rng(self.epoch)
            for _ in range(EPOCH):
                x = generator.normal(size=(4, 40)).astype("float32")
                yield x, x[:, :3]

        specs = tf.TensorSpec([4, 40], tf.float32), tf.TensorSpec([4, 3], tf.float32)
        dataset = tf.data.Dataset.from_generator(batches, output_signature=specs)
        return dataset.apply(tf.data.experimental.assert_cardinality(EPOCH))


def train(directory: str, steps: int, every: int = 1, shared: Any = None) -> None:
    """Train up to so many steps in all, and write what there is then to `end.npz`.

    `shared` is an array of two numbers that outlives this process: whether it is in the midst of a save, and
    the step of the last save that was complete.
    """
    tf.config.experimental.enable_op_determinism()
    model, data = make_model(), Data()
    checkpoints = Checkpoints(directory, every, keep=3, batches=data)
    if shared is not None:
        save = module.files.save

        def noted(*arguments: Any) -> Any:
            shared[0] = 1
            path = save(*arguments)
            shared[1], shared[0] = arguments[-1].step, 0
            return path

        module.files.save = noted
    history = None
    with contextlib.suppress(StopAsyncIteration):
        history = model.fit(
            data.dataset(),
            epochs=1000,
            shuffle=False,
            verbose=0,
            callbacks=[checkpoints, Stop(checkpoints, steps)],
        )
    assert history is None
    values = {
        **{f"weight{i}": v.numpy() for i, v in enumerate(model.variables)},
        **{f"optimizer{i}": v.numpy() for i, v in enumerate(model.optimizer.variables)},
        **{f"metric{i}": v.numpy() for i, v in enumerate(model.metrics_variables)},
        "rate": np.asarray(model.optimizer.learning_rate),
        "logs": np.array([sorted(logs.items()) for logs in checkpoints.state.logs]),
    }
    unfinished = Path(directory) / "end.tmp.npz"
    np.savez(unfinished, **values)
    os.replace(unfinished, Path(directory) / "end.npz")
