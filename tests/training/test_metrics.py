"""Metrics and the displayed loss as means over tokens, in fit and evaluate, however batches are cut."""

import math
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from references import log_softmax, randomize

from keras_seq2seq.models import transformer_lm, transformer_seq2seq
from keras_seq2seq.training import Perplexity, SmoothedCrossentropy, TokenAccuracy, WarmupInverseSqrt

V = 9


def echo(strength: float = 5.0) -> keras.Model:
    """Build a model whose logits say: the label is the input."""
    ids = keras.Input((None,), dtype="int32")
    table = keras.layers.Embedding(V, V)
    model = keras.Model(ids, table(ids))
    table.embeddings.assign(strength * np.eye(V))
    return model


# 4 real tokens, 3 of them right, and 6 pads that would all be right.
INPUTS = np.array([[4, 5, 6, 0, 0], [7, 0, 0, 0, 0]], "int32")
LABELS = np.array([[4, 5, 8, 0, 0], [7, 0, 0, 0, 0]], "int32")
WEIGHTS = (LABELS != 0).astype("float32") / 4


def test_accuracy_and_perplexity_leave_pads_out_in_fit_and_evaluate() -> None:
    model = echo()
    model.compile(
        keras.optimizers.SGD(0.0), SmoothedCrossentropy(0.1), weighted_metrics=[TokenAccuracy(), Perplexity()]
    )
    logs = log_softmax(5.0 * np.eye(V))
    entropy = -np.mean([logs[4, 4], logs[5, 5], logs[6, 8], logs[7, 7]])
    history = model.fit(INPUTS, LABELS, sample_weight=WEIGHTS, batch_size=2, verbose=0).history
    results = model.evaluate(INPUTS, LABELS, sample_weight=WEIGHTS, batch_size=2, verbose=0, return_dict=True)
    for values in ({name: value[0] for name, value in history.items()}, results):
        assert values["token_accuracy"] == pytest.approx(0.75)
        assert values["perplexity"] == pytest.approx(math.exp(entropy), rel=1e-5)


def uneven() -> list[tuple]:
    """Cut the four tokens unevenly: three of the first row, then one of the second, padded further."""
    first = (INPUTS[:1], LABELS[:1], (LABELS[:1] != 0).astype("float32") / 3)
    second = (INPUTS[1:], LABELS[1:], (LABELS[1:] != 0).astype("float32"))
    return [first, tuple(np.pad(x, ((0, 3), (0, 7))) for x in second)]


def as_dataset(batches: list[tuple]) -> tf.data.Dataset:
    return tf.data.Dataset.from_generator(
        lambda: iter(batches),
        output_signature=(
            tf.TensorSpec([None, None], tf.int32),
            tf.TensorSpec([None, None], tf.int32),
            tf.TensorSpec([None, None], tf.float32),
        ),
    ).apply(tf.data.experimental.assert_cardinality(len(batches)))


def test_merging_uneven_batches_counts_tokens() -> None:
    model = echo()
    model.compile("sgd", SmoothedCrossentropy(), weighted_metrics=[TokenAccuracy(), Perplexity()])
    whole = model.evaluate(INPUTS, LABELS, sample_weight=WEIGHTS, batch_size=2, verbose=0, return_dict=True)
    cut = model.evaluate(as_dataset(uneven()), verbose=0, return_dict=True)
    for name in ("token_accuracy", "perplexity"):
        assert cut[name] == pytest.approx(whole[name], rel=1e-6)


def test_accuracy_compares_with_the_best_logit(rng: np.random.Generator) -> None:
    logits = rng.normal(size=(5, 6, V)).astype("float32")
    labels = rng.integers(0, V, (5, 6))
    metric = TokenAccuracy()
    metric.update_state(labels, logits)
    assert float(metric.result()) == pytest.approx((logits.argmax(-1) == labels).mean())
    metric.reset_state()
    assert float(metric.result()) == 0.0
    assert keras.metrics.get(keras.metrics.serialize(metric)).name == "token_accuracy"


def test_perplexity_of_uniform_logits_is_the_vocabulary() -> None:
    metric = Perplexity()
    metric.update_state(np.ones((2, 3)), np.zeros((2, 3, 50), "float32"), np.eye(2, 3))
    assert float(metric.result()) == pytest.approx(50.0, rel=1e-5)


def small_model() -> keras.Model:
    model = transformer_seq2seq(V, num_layers=1, model_dim=8, feed_forward_dim=9, num_heads=2, dropout=0.0)
    randomize(model)
    return model


@pytest.fixture(scope="module")
def model() -> keras.Model:
    return small_model()


def pairs(scale: float = 1.0) -> list[tuple]:
    """Make batches of 5, 2 and 9 real tokens, of different widths and numbers of rows."""
    generator, batches = np.random.default_rng(0), []
    for rows, lengths in ((2, [4, 1]), (1, [2]), (3, [1, 6, 2])):
        target = np.zeros((rows, max(lengths) + 1), "int32")
        for row, length in zip(target, lengths, strict=True):
            row[:length] = generator.integers(4, V, length)
        source = generator.integers(4, V, (rows, 5)).astype("int32")
        labels, weights = target, (target != 0).astype("float32")
        target = np.pad(target, ((0, 0), (1, 0)), constant_values=2)[:, :-1]
        batches.append(({"source": source, "target": target}, labels, scale * weights / weights.sum()))
    return batches


def pair_dataset(batches: list[tuple]) -> tf.data.Dataset:
    ids = tf.TensorSpec([None, None], tf.int32)
    return tf.data.Dataset.from_generator(
        lambda: iter(batches),
        output_signature=({"source": ids, "target": ids}, ids, tf.TensorSpec([None, None], tf.float32)),
    ).apply(tf.data.experimental.assert_cardinality(len(batches)))


def token_mean(model, batches: list[tuple], e: float) -> float:
    """Compute the mean over all real tokens by hand."""
    total = count = 0.0
    for inputs, labels, weights in batches:
        logs = log_softmax(np.asarray(model(inputs)))
        q = (1 - e) * np.eye(V)[labels] + e / V
        total += (-(q * logs).sum(-1) * (weights > 0)).sum()
        count += (weights > 0).sum()
    return total / count


@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_the_displayed_loss_is_a_mean_over_tokens(model, scale: float) -> None:
    """Not over batches or rows, in fit and evaluate, and whatever the weights of a batch sum to."""
    batches = pairs(scale)
    model.compile(keras.optimizers.SGD(0.0), SmoothedCrossentropy(0.1), weighted_metrics=[TokenAccuracy()])
    expected = token_mean(model, batches, 0.1)
    results = model.evaluate(pair_dataset(batches), verbose=0, return_dict=True)
    assert results["loss"] == pytest.approx(expected, rel=1e-5)
    history = model.fit(pair_dataset(batches), epochs=2, verbose=0).history
    assert history["loss"] == pytest.approx([expected] * 2, rel=1e-5)
    assert model.evaluate(pair_dataset(batches), verbose=0)[0] == pytest.approx(expected, rel=1e-5)


def test_there_is_one_loss_however_often_it_is_compiled() -> None:
    model = small_model()
    for _ in range(2):
        model.compile("sgd", SmoothedCrossentropy())
        assert [metric.name for metric in model.metrics].count("loss") == 1
    # A number, as of any Keras model without metrics; with one, a list of two.
    expected = token_mean(model, pairs(), 0.0)
    assert model.evaluate(pair_dataset(pairs()), verbose=0) == pytest.approx(expected, rel=1e-5)
    model.compile("sgd", SmoothedCrossentropy(), weighted_metrics=[TokenAccuracy()])
    loss, accuracy = model.evaluate(pair_dataset(pairs()), verbose=0)
    assert loss == pytest.approx(expected, rel=1e-5)
    assert 0 < accuracy < 1


def test_fit_shows_every_example_to_the_end_of_each_epoch(model) -> None:
    model.compile(keras.optimizers.SGD(0.0), SmoothedCrossentropy())
    seen: list[int] = []

    class Count(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            seen.append(batch)

    model.fit(pair_dataset(pairs()), epochs=3, verbose=0, callbacks=[Count()])
    assert seen == [0, 1, 2] * 3


def test_an_endless_data_set_needs_steps() -> None:
    model = transformer_seq2seq(V, num_layers=1, model_dim=8, feed_forward_dim=8, num_heads=2)
    model.compile("sgd", loss=SmoothedCrossentropy())
    ids = np.ones((1, 2), "int32")
    endless = tf.data.Dataset.from_tensors(
        ({"source": ids, "target": ids}, ids, ids / np.float32(2))
    ).repeat()
    with pytest.raises(ValueError, match="repeats for ever needs steps_per_epoch"):
        model.fit(endless, verbose=0)
    history = model.fit(endless, steps_per_epoch=2, epochs=1, verbose=0)
    assert np.isfinite(history.history["loss"]).all()


def test_a_step_does_not_depend_on_padding() -> None:
    """One SGD step on a batch padded to 5 and to 50 gives the same loss and the same weights."""

    def step(extra: int) -> tuple[float, list[np.ndarray]]:
        model = small_model()
        model.compile(keras.optimizers.SGD(0.5), SmoothedCrossentropy(0.1))
        inputs, labels, weights = keras.tree.map_structure(
            lambda x: np.pad(x, ((0, 0), (0, extra))), pairs()[2]
        )
        loss = model.train_on_batch(inputs, labels, sample_weight=weights)
        return float(loss), model.get_weights()

    (short, a), (long, b) = step(0), step(45)
    assert short == pytest.approx(long, rel=1e-6)
    for one, other in zip(a, b, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_resumed_training_equals_uninterrupted(tmp_path: Path) -> None:
    """A compiled model comes back compiled, with its optimizer's state and its schedule's step."""

    def compiled() -> keras.Model:
        model = small_model()
        optimizer = keras.optimizers.SGD(WarmupInverseSqrt(0.5, 3), momentum=0.9)
        model.compile(optimizer, SmoothedCrossentropy(0.1), weighted_metrics=[TokenAccuracy()])
        return model

    through, stopped = compiled(), compiled()
    for step, (inputs, labels, weights) in enumerate(pairs() * 2):
        if step == 3:
            stopped.save(tmp_path / "stopped.keras")
            stopped = keras.saving.load_model(tmp_path / "stopped.keras")
        for model in (through, stopped):
            model.train_on_batch(inputs, labels, sample_weight=weights)
    assert int(stopped.optimizer.iterations) == 6
    assert [m.name for m in stopped.metrics] == [m.name for m in through.metrics]
    for a, b in zip(through.get_weights(), stopped.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.usefixtures("restore_dtype_policy")
def test_training_in_float16_stays_finite_and_near_float32() -> None:
    """A vocabulary of 32k and 512 tokens: a float32 loss, near that of float32 weights, falling."""

    def train(policy: str) -> list[float]:
        keras.config.set_dtype_policy(policy)
        model = transformer_lm(
            32768, preset="llama", num_layers=1, model_dim=16, num_heads=2, dropout=0.0, tie_embeddings=True
        )
        randomize(model, scale=0.1)
        ids = np.random.default_rng(0).integers(4, 32768, (4, 129)).astype("int32")
        weights = np.full((4, 128), 1 / 512, "float32")
        model.compile(keras.optimizers.SGD(1.0), SmoothedCrossentropy(0.1))
        losses = []
        for _ in range(4):
            losses.append(model.train_on_batch({"target": ids[:, :-1]}, ids[:, 1:], sample_weight=weights))
        return losses

    half, single = train("mixed_float16"), train("float32")
    assert np.isfinite(half).all()
    np.testing.assert_allclose(half, single, rtol=0.01)
    assert single[-1] < single[0]


def test_warmup_inverse_sqrt_has_the_published_values() -> None:
    """Vaswani et al. 2017, equation 3: D^-0.5 min(n^-0.5, n w^-1.5), for update n = step + 1."""
    dim, warmup = 512, 4000
    schedule = WarmupInverseSqrt((dim * warmup) ** -0.5, warmup)
    for update in (1, 100, 3999, 4000, 4001, 16000, 100000):
        expected = dim**-0.5 * min(update**-0.5, update * warmup**-1.5)
        assert float(schedule(update - 1)) == pytest.approx(expected, rel=1e-5)
    assert float(WarmupInverseSqrt(0.1, 1)(0)) == pytest.approx(0.1)
    assert float(WarmupInverseSqrt(0.1, 10)(0)) == pytest.approx(0.01)
    with pytest.raises(ValueError, match=r"warmup_steps.*received 0"):
        WarmupInverseSqrt(0.1, 0)


def test_the_schedule_counts_updates_and_is_saved() -> None:
    optimizer = keras.optimizers.SGD(WarmupInverseSqrt(1.0, 4))
    variable = keras.Variable(np.zeros(1))
    rates = []
    for _ in range(6):
        rates.append(float(optimizer.learning_rate))
        optimizer.apply([tf.ones(1)], [variable])
    np.testing.assert_allclose(rates, [0.25, 0.5, 0.75, 1.0, (4 / 5) ** 0.5, (4 / 6) ** 0.5], rtol=1e-6)
    assert float(variable[0]) == pytest.approx(-sum(rates), rel=1e-5)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert float(again.learning_rate) == pytest.approx(0.25)
