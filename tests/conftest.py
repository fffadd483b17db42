"""What every test shares: a quiet TensorFlow, seeds, two replicas, no silent skips."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import gc
import random
from collections.abc import Iterator

import numpy as np
import pytest
import tensorflow as tf
from no_skips import pytest_sessionfinish, pytest_terminal_summary  # noqa: F401

# Two replicas need two devices, and these can be made only before the first operation runs.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)

# To optimise small graphs that run once or twice takes a third of the time of all tests. Exports are run in
# other processes too, where they are optimised.
tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


@pytest.fixture(autouse=True, scope="module")
def _collect() -> Iterator[None]:
    """Free the graphs of a file's models before the next file's are made."""
    yield
    gc.collect()


@pytest.fixture(autouse=True)
def _seed() -> None:
    """Make every test start from the same state, in whatever order they run.

    Keras draws the seeds of initialisers and dropout from Python's generator.
    `tf.random.set_seed` is left alone: it destroys the eager tokenizers of tensorflow-text.
    """
    random.seed(0)
    np.random.seed(0)


@pytest.fixture
def rng() -> np.random.Generator:
    """Give a NumPy generator with a fixed seed."""
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def two_replicas() -> tf.distribute.Strategy:
    """Give a strategy with two replicas on two logical CPU devices.

    One for all tests: TensorFlow numbers the all-reduces of each strategy from the same start, so that those
    of a second one in a process can meet the first one's.
    """
    from keras_seq2seq.distribute import MirroredStrategy

    return MirroredStrategy(["CPU:0", "CPU:1"])


@pytest.fixture
def restore_dtype_policy() -> Iterator[None]:
    """Put the global dtype policy back after a test that changes it."""
    import keras

    policy = keras.config.dtype_policy()
    yield
    keras.config.set_dtype_policy(policy)
