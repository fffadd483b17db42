"""The loss and its gradient against NumPy, whatever the padding, at a bounded cost of memory."""

import os
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from references import log_softmax, softmax

from keras_seq2seq.training import SmoothedCrossentropy
from keras_seq2seq.training.losses import smoothed_crossentropy

B, T, V = 2, 4, 7


def by_hand(labels: np.ndarray, logits: np.ndarray, e: float) -> tuple[np.ndarray, np.ndarray]:
    """Return -sum q log p with q = (1-e) one-hot + e/V, and p - q."""
    q = (1 - e) * np.eye(logits.shape[-1])[labels] + e / logits.shape[-1]
    return -(q * log_softmax(logits)).sum(-1), softmax(logits.astype("float64")) - q


@pytest.fixture
def batch(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    labels = rng.integers(1, V, (B, T))
    labels[1, 2:] = 0
    weights = (labels != 0).astype("float32")
    return labels, rng.normal(0, 3, (B, T, V)).astype("float32"), weights / weights.sum()


@pytest.mark.parametrize("compiled", [None, False, True])
@pytest.mark.parametrize("e", [0.0, 0.1])
def test_value_and_gradient_equal_numpy(batch, e: float, compiled: bool | None) -> None:
    labels, logits, weights = batch
    values, gradients = by_hand(labels, logits, e)
    loss = SmoothedCrossentropy(e)

    def both(labels, logits, weights):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            value = loss(labels, logits, sample_weight=weights)
        return value, tape.gradient(value, logits)

    if compiled is not None:
        both = tf.function(both, jit_compile=compiled)
    value, gradient = both(tf.constant(labels), tf.constant(logits), tf.constant(weights))
    assert float(value) == pytest.approx((values * weights).sum(), rel=1e-5)
    np.testing.assert_allclose(gradient, gradients * weights[..., None], atol=1e-6)
    np.testing.assert_allclose(smoothed_crossentropy(labels, logits, e), values, rtol=1e-5)


@pytest.mark.parametrize("e", [0.0, 0.1])
def test_large_logits_stay_finite(e: float) -> None:
    logits = np.array([[1e4, -1e4, 0.0], [-1e30, 0.0, 0.0]], "float32")
    for label in range(3):
        assert np.isfinite(smoothed_crossentropy(np.array([label, label]), logits, e)).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_logits_give_a_float32_loss(rng: np.random.Generator, dtype: str) -> None:
    logits = tf.cast(rng.normal(size=(B, T, 300)), dtype)
    labels = rng.integers(0, 300, (B, T))
    with tf.GradientTape() as tape:
        tape.watch(logits)
        value = smoothed_crossentropy(labels, logits, 0.1)
    assert value.dtype == tf.float32
    expected, _ = by_hand(labels, np.asarray(tf.cast(logits, "float32")), 0.1)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    assert tape.gradient(value, logits).dtype == dtype


def test_padding_changes_neither_loss_nor_gradient(batch) -> None:
    labels, logits, weights = batch
    loss = SmoothedCrossentropy(0.1)

    def evaluate(extra: int) -> tuple[float, np.ndarray]:
        pad = ((0, 0), (0, extra))
        x = tf.constant(np.pad(logits, (*pad, (0, 0)), constant_values=2.5))
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = loss(np.pad(labels, pad), x, sample_weight=np.pad(weights, pad))
        return float(value), np.asarray(tape.gradient(value, x))

    (short, gradient), (long, padded) = evaluate(0), evaluate(46)
    assert short == pytest.approx(long, rel=1e-6)
    np.testing.assert_allclose(padded[:, :T], gradient, atol=1e-7)
    assert not padded[:, T:].any()
    assert not gradient[1, 2:].any()


def test_ignored_labels_count_nothing(batch) -> None:
    labels, logits, weights = batch
    ignored = np.where(labels == 0, -1, labels)
    loss = SmoothedCrossentropy(0.1)
    assert float(loss(ignored, logits, weights)) == pytest.approx(float(loss(labels, logits, weights)))


@pytest.mark.parametrize("label", [V, -1])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_label_outside_the_vocabulary_that_counts_is_an_error(batch, label: int, compiled: bool) -> None:
    labels, logits, weights = batch
    loss = tf.function(SmoothedCrossentropy(0.1)) if compiled else SmoothedCrossentropy(0.1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
        loss(np.full_like(labels, label), logits, weights)
    xla = tf.function(SmoothedCrossentropy(0.1), jit_compile=True)(
        np.full_like(labels, label), logits, weights
    )
    assert np.isfinite(xla)


@pytest.mark.parametrize("e", [0.0, 0.3])
def test_it_is_what_keras_computes(batch, e: float) -> None:
    labels, logits, weights = batch
    theirs = keras.losses.CategoricalCrossentropy(True, label_smoothing=e, reduction="sum")
    ours = SmoothedCrossentropy(e)(labels, logits, sample_weight=weights)
    assert float(ours) == pytest.approx(float(theirs(np.eye(V)[labels], logits, weights)), rel=1e-5)


def test_bad_smoothing_is_named_and_config_is_whole() -> None:
    for bad in (-0.1, 1.0):
        with pytest.raises(ValueError, match=f"label_smoothing.*{bad}"):
            SmoothedCrossentropy(bad)
    loss = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(SmoothedCrossentropy(0.2, name="other"))
    )
    assert (loss.label_smoothing, loss.name, loss.reduction) == (0.2, "other", "sum")


PEAK = """
import sys
import tensorflow as tf
from keras_seq2seq.training import SmoothedCrossentropy
tf.config.threading.set_inter_op_parallelism_threads(1)  # or the peak depends on what ran side by side
smoothing, vocabulary = float(sys.argv[1]), 32768
loss = SmoothedCrossentropy(smoothing)

@tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None, None, vocabulary])])
def step(labels, logits):
    with tf.GradientTape() as tape:
        tape.watch(logits)
        value = loss(labels, logits)
    return value, tape.gradient(value, logits)

def peak():  # not getrusage's, which a process inherits from the one that started it
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))

step(tf.ones((1, 1), tf.int32), tf.ones((1, 1, vocabulary)))  # what a first run loads
labels, logits = tf.ones((8, 64), tf.int32), tf.ones((8, 64, vocabulary))
before = peak()
step(labels, logits)
print((peak() - before) / (8 * 64 * vocabulary * 4))
"""


def test_memory_is_a_few_copies_of_the_logits() -> None:
    """Loss and gradient of 8 x 64 x 32k logits: at most 4 copies more, and smoothing at most one more."""
    copies = []
    for smoothing in (0.0, 0.1):
        done = subprocess.run(
            [sys.executable, "-c", PEAK, str(smoothing)],
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        copies.append(float(done.stdout))
    assert 0.5 < copies[0] <= 4.0
    assert copies[1] <= copies[0] + 1.0
    assert copies[1] <= 4.0
