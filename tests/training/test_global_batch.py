"""One update for one global batch: accumulation and clipping equal the big batch, also on two replicas."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from token_batches import as_dataset, make_batch, small_model

from keras_seq2seq.training import GlobalBatch, SmoothedCrossentropy, WarmupInverseSqrt, decay_matrices_only

LENGTHS = [9, 1, 4, 2, 7, 3, 1, 5, 6, 2, 8, 1]
BIG = make_batch(LENGTHS)


def parts(count, total=None):
    """Cut the big batch into parts; each's weights sum to 1, or those of all to `total`."""
    size, found = len(LENGTHS) // count, []
    for rows in (slice(i, i + size) for i in range(0, len(LENGTHS), size)):
        inputs, labels, weights = BIG
        own = weights[rows]
        own = own * total if total else own / own.sum()
        found.append(({name: x[rows] for name, x in inputs.items()}, labels[rows], own))
    return found


OPTIMIZERS = {
    "adamw": lambda: keras.optimizers.AdamW(WarmupInverseSqrt(0.01, 4), weight_decay=0.3, epsilon=1e-4),
    "clipped": lambda: keras.optimizers.SGD(0.5, global_clipnorm=0.05),
    "average": lambda: keras.optimizers.SGD(0.5, momentum=0.9, use_ema=True, ema_momentum=0.5),
}


def train(optimizer, batches, epochs=2, strategy=None, **compiled):
    """Return the weights and the inner optimizer's iterations after training on the batches."""
    with (strategy or tf.distribute.get_strategy()).scope():
        model = small_model()
        decay_matrices_only(optimizer := optimizer(), model)
        model.compile(optimizer, SmoothedCrossentropy(0.1), **compiled)
    history = model.fit(as_dataset(batches), epochs=epochs, verbose=0).history["loss"]
    assert len(np.unique(history)) == epochs
    return model.get_weights(), int(model.optimizer.iterations.numpy()), history


def check_equal(one, other, atol=1e-5):
    assert one[1] == other[1]
    for ours, theirs in zip(one[0], other[0], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=atol)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_three_batches_are_the_big_one(name):
    expected = train(OPTIMIZERS[name], [BIG], run_eagerly=True)
    assert expected[1] == 2
    for total in (None, 3.0):
        found = train(lambda: GlobalBatch(OPTIMIZERS[name](), 3), parts(3, total), run_eagerly=True)
        check_equal(found, expected)


@pytest.mark.parametrize("name", ["adamw", "clipped"])
def test_on_two_replicas(name, two_replicas):
    expected = train(OPTIMIZERS[name], [BIG], run_eagerly=True)
    check_equal(train(lambda: GlobalBatch(OPTIMIZERS[name](), 3), parts(3), strategy=two_replicas), expected)


def test_clipping_alone_is_global_on_two_replicas(two_replicas):
    expected = train(OPTIMIZERS["clipped"], [BIG], run_eagerly=True)
    found = train(lambda: GlobalBatch(OPTIMIZERS["clipped"]()), [BIG], strategy=two_replicas)
    check_equal(found, expected, 1e-6)
    free = train(lambda: keras.optimizers.SGD(0.5), [BIG], run_eagerly=True)
    assert max(np.abs(a - b).max() for a, b in zip(free[0], expected[0], strict=True)) > 1e-3  # it does clip


@pytest.mark.parametrize("how", ["run_eagerly", pytest.param("jit_compile", marks=pytest.mark.slow)])
def test_with_a_loss_scale_and_under_xla(how):
    expected = train(OPTIMIZERS["adamw"], [BIG], run_eagerly=True)

    def scaled():
        return keras.optimizers.LossScaleOptimizer(GlobalBatch(OPTIMIZERS["adamw"](), 3), 8.0)

    check_equal(train(scaled, parts(3), **{how: True}), expected)


def test_an_unfinished_group_is_kept_in_a_file(tmp_path):
    """Two batches, a file, and the third in a new model."""
    batches, expected = parts(3), train(OPTIMIZERS["clipped"], [BIG], epochs=1, run_eagerly=True)
    model = small_model()
    model.compile(GlobalBatch(OPTIMIZERS["clipped"](), 3), SmoothedCrossentropy(0.1), run_eagerly=True)
    model.fit(as_dataset(batches[:2]), verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert isinstance(again.optimizer, GlobalBatch)
    assert again.optimizer.steps == 3
    again.fit(as_dataset(batches[2:]), verbose=0)
    check_equal((again.get_weights(), int(again.optimizer.iterations.numpy())), expected)


def test_other_models_average_batches():
    x, y = np.eye(4, 3, dtype="float32"), np.ones((4, 1), "float32")
    found = []
    for optimizer, size in ((keras.optimizers.SGD(0.5), 4), (GlobalBatch(keras.optimizers.SGD(0.5), 2), 2)):
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, kernel_initializer="ones")])
        model.compile(optimizer, "mse", run_eagerly=True)
        model.fit(x, y, batch_size=size, shuffle=False, verbose=0)
        found.append(model.get_weights())
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("steps", [0, 1.5, "2"])
def test_impossible_arguments_are_named(steps):
    with pytest.raises(ValueError, match="steps must be an integer of at least 1, received"):
        GlobalBatch(keras.optimizers.SGD(), steps)
    with pytest.raises(
        ValueError, match="must not accumulate by itself, received gradient_accumulation_steps=2"
    ):
        GlobalBatch(keras.optimizers.SGD(gradient_accumulation_steps=2), 2)
