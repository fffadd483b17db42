"""Schedules against their formulas, and against Keras' own where it has one."""

import keras
import numpy as np
import pytest

from keras_seq2seq.training import WarmupCosine, WarmupInverseSqrt, WarmupLinear

STEPS = np.arange(0, 40)
ALL = [WarmupInverseSqrt(0.3, 7), WarmupCosine(0.3, 7, 30, 0.01), WarmupLinear(0.3, 7, 30, 0.01)]


def rates(schedule) -> np.ndarray:
    return np.array([float(schedule(step)) for step in STEPS])


def test_inverse_square_root():
    updates = STEPS + 1.0
    expected = [0.3 * n / 7 if n <= 7 else 0.3 * (7 / n) ** 0.5 for n in updates]
    np.testing.assert_allclose(rates(ALL[0]), expected, rtol=1e-6)


@pytest.mark.parametrize("warmup", [0, 1, 7])
def test_linear(warmup):
    expected = []
    for n in STEPS + 1:
        fall = 0.01 + 0.29 * (30 - n) / (30 - warmup)
        expected.append(0.3 * n / warmup if n < warmup else max(fall, 0.01))
    np.testing.assert_allclose(rates(WarmupLinear(0.3, warmup, 30, 0.01)), expected, rtol=1e-5)


@pytest.mark.parametrize("warmup", [1, 7])
def test_cosine_is_that_of_keras_one_update_on(warmup):
    theirs = keras.optimizers.schedules.CosineDecay(
        0.0, 30 - warmup, alpha=0.1, warmup_target=0.3, warmup_steps=warmup
    )
    expected = [float(theirs(step + 1)) for step in STEPS]
    np.testing.assert_allclose(rates(WarmupCosine(0.3, warmup, 30, 0.03)), expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("schedule", ALL, ids=lambda schedule: type(schedule).__name__)
def test_no_update_is_wasted_and_the_peak_is_reached(schedule):
    found = rates(schedule)
    assert found[0] == pytest.approx(0.3 / 7)
    assert found.argmax() == 6
    assert found.max() == pytest.approx(0.3)
    assert (found > 0).all()
    load, save = keras.optimizers.schedules.deserialize, keras.optimizers.schedules.serialize
    np.testing.assert_array_equal(rates(load(save(schedule))), found)


@pytest.mark.parametrize("kind", [WarmupCosine, WarmupLinear])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.1, -1, 5), "warmup_steps must be at least 0, received -1"),
        ((0.1, 5, 5), "total_steps must be more than warmup_steps=5, received 5"),
        ((0.1, 5, 9, 0.2), "final must be between 0 and peak=0.1, received 0.2"),
    ],
)
def test_impossible_arguments_are_named(kind, arguments, message):
    with pytest.raises(ValueError, match=message):
        kind(*arguments)
