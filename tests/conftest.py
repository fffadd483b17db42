"""What every test shares: a quiet TensorFlow, seeds, two replicas, no silent skips."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import random
from collections.abc import Iterator

import numpy as np
import pytest
import tensorflow as tf

# Two replicas need two devices, and these can be made only before the first operation runs.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)

# Under CI=true every skip and every expected failure must stand here: test id -> why.
ALLOWED_SKIPS: dict[str, str] = {}


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


@pytest.fixture
def two_replicas() -> tf.distribute.Strategy:
    """Give a strategy with two replicas on two logical CPU devices."""
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


@pytest.fixture
def float32_policy() -> Iterator[None]:
    """Restore the global dtype policy after a test that changes it."""
    import keras

    policy = keras.config.dtype_policy()
    yield
    keras.config.set_dtype_policy(policy)


def unexpected_skips(stats: dict[str, list[pytest.TestReport]]) -> list[str]:
    """List the ids of skipped and expectedly failing tests that are not allowed."""
    reports = [report for kind in ("skipped", "xfailed", "xpassed") for report in stats.get(kind, [])]
    return sorted({report.nodeid for report in reports} - ALLOWED_SKIPS.keys())


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a run under CI=true that passed only because something was skipped."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") == "true" and exitstatus == 0 and reporter and unexpected_skips(reporter.stats):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the skips that fail the run."""
    if os.environ.get("CI") == "true":
        for nodeid in unexpected_skips(terminalreporter.stats):
            terminalreporter.write_line(f"ERROR unexpected skip or xfail: {nodeid}", red=True)
