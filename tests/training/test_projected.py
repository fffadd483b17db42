"""The loss of what is projected, in chunks, is the loss of the logits: value, gradients and metrics."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from references import log_softmax, randomize, softmax

from keras_seq2seq.layers import LuongAttention
from keras_seq2seq.models import rnn_seq2seq, transformer_lm, transformer_seq2seq
from keras_seq2seq.training import Perplexity, SmoothedCrossentropy, TokenAccuracy, projected

V = 29
RNN: dict[str, Any] = {"units": 8, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
SIZES: dict[str, Any] = {"num_layers": 1, "model_dim": 8, "num_heads": 2, "dropout": 0.0}
MODELS: dict[str, Any] = {
    "tied": lambda: transformer_seq2seq(V, **SIZES),
    "untied": lambda: transformer_seq2seq(V, **SIZES, tie_embeddings=False),
    "language model": lambda: transformer_lm(V, **SIZES),
    "rnn": lambda: rnn_seq2seq(V, **RNN, attention=LuongAttention("general"), tie_embeddings=False),
    "tied rnn": lambda: rnn_seq2seq(V, **RNN, embedding_dim=6, share_embeddings=True, tie_embeddings=True),
}


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make chunks of 5 positions."""
    monkeypatch.setattr(projected, "_CHUNK", 5 * V)
    monkeypatch.setattr(projected, "_FEWEST", 1)


def make_batch(rng: np.random.Generator, rows: int = 4, width: int = 6) -> tuple[Any, np.ndarray, np.ndarray]:
    target = rng.integers(4, V, (rows, width)).astype("int32")
    labels = rng.integers(4, V, (rows, width)).astype("int32")
    weights = (np.arange(width) < rng.integers(1, width + 1, rows)[:, None]) * rng.random((rows, width))
    return {"source": target[:, ::-1], "target": target}, labels, (weights / weights.sum()).astype("float32")


@pytest.mark.parametrize("compiled", [None, False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("count", [1, 5, 13, 15])
def test_value_and_gradients_equal_numpy(
    rng: np.random.Generator, small_chunks: None, count: int, biased: bool, compiled: bool | None
) -> None:
    x, kernel = rng.normal(size=(count, 3)).astype("float32"), rng.normal(size=(V, 3)).astype("float32")
    bias = rng.normal(size=V).astype("float32") if biased else None
    labels = rng.integers(0, V, count).astype("int32")
    weights = np.where(rng.random(count) < 0.3, 0.0, rng.random(count)).astype("float32")
    logits = x @ kernel.T + (0.0 if bias is None else bias)
    q = 0.9 * np.eye(V)[labels] + 0.1 / V
    slope = (softmax(logits.astype("float64")) - q) * weights[:, None]
    expected = [slope @ kernel, slope.T @ x, *([slope.sum(0)] if biased else [])]

    def both(x, labels, weights, *parameters):
        given = x, *parameters
        with tf.GradientTape() as tape:
            tape.watch(given)
            kernel, bias = (*parameters, None)[:2]
            value, outcome = projected.projected_crossentropy(labels, weights, x, kernel, bias, 0.1)
            tripled = 3.0 * value
        return value, outcome, tape.gradient(tripled, given)

    if compiled is not None:
        signature = [tf.TensorSpec([None, 3]), tf.TensorSpec([None], tf.int32), tf.TensorSpec([None])]
        signature += [tf.TensorSpec([V, 3]), *([tf.TensorSpec([V])] if biased else [])]
        both = tf.function(both, signature, jit_compile=compiled)
    parameters = [kernel] if bias is None else [kernel, bias]
    value, outcome, gradients = both(*map(tf.constant, (x, labels, weights, *parameters)))
    log_p = log_softmax(logits)
    assert float(value) == pytest.approx(-(q * log_p * weights[:, None]).sum(), rel=1e-5, abs=1e-6)
    for gradient, wanted in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(gradient, 3.0 * wanted, atol=1e-5)
    real, rows = weights > 0, np.arange(count)
    np.testing.assert_allclose(outcome.cross_entropy, np.where(real, -log_p[rows, labels], 0), atol=1e-5)
    np.testing.assert_array_equal(outcome.correct, real & (logits.argmax(-1) == labels))


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "mixed_float16"])
@pytest.mark.parametrize("name", MODELS)
def test_a_step_of_training_is_that_of_the_logits(
    rng: np.random.Generator, small_chunks: None, restore_dtype_policy: None, name: str, policy: str
) -> None:
    keras.config.set_dtype_policy(policy)
    model = MODELS[name]()
    randomize(model, scale=0.5, seed=1)
    inputs, labels, weights = make_batch(rng)
    if name == "language model":
        del inputs["source"]
    loss, metrics = SmoothedCrossentropy(0.1), (TokenAccuracy(), Perplexity())

    def run(plain: bool) -> tuple[float, list[Any], list[float]]:
        with tf.GradientTape() as tape:
            logits = model(inputs, training=True)
            assert hasattr(logits, "_projection_parts")
            value = loss(labels, tf.identity(logits) if plain else logits, weights)
        for metric in metrics:
            metric.reset_state()
            metric.update_state(labels, logits, weights)
        assert (projected.outcome_of(labels, logits) is None) == plain
        gradients = [tf.convert_to_tensor(each) for each in tape.gradient(value, model.trainable_variables)]
        return float(value), gradients, [float(metric.result()) for metric in metrics]

    value, gradients, results = run(plain=False)
    expected, wanted, known = run(plain=True)
    tolerance = 1e-5 if policy == "float32" else 2e-2
    assert value == pytest.approx(expected, rel=tolerance)
    assert results == pytest.approx(known, rel=tolerance)
    for a, b in zip(gradients, wanted, strict=True):
        scale = max(float(tf.reduce_max(tf.abs(tf.cast(b, tf.float32)))), 1e-3)
        np.testing.assert_allclose(tf.cast(a, tf.float32), tf.cast(b, tf.float32), atol=tolerance * scale)


def test_training_computes_no_logits_of_the_whole_batch(rng: np.random.Generator) -> None:
    model = MODELS["tied"]()
    model.compile("sgd", SmoothedCrossentropy(0.1), weighted_metrics=[TokenAccuracy(), Perplexity()])
    batch = make_batch(rng, 128, 24)
    model.fit(tf.data.Dataset.from_tensors(batch), verbose=0)
    signature = tf.data.Dataset.from_tensors(batch).element_spec

    @tf.function(input_signature=[signature])
    def step(data: Any) -> Any:
        return model.train_step(data)

    concrete = step.get_concrete_function()
    operations = {each.name: each for each in concrete.graph.get_operations()}
    # What is run: the results, the updates of variables, and what these need.
    ends = [each.op.name for each in concrete.outputs]
    ends += [name for name, each in operations.items() if each.type.startswith("Assign")]
    run = tf.compat.v1.graph_util.extract_sub_graph(concrete.graph.as_graph_def(), ends).node
    outputs = [output for node in run for output in operations[node.name].outputs]
    whole = [each for each in outputs if each.shape.rank and each.shape.num_elements() == 128 * 24 * V]
    assert not whole


def test_evaluation_and_other_losses_see_the_logits(rng: np.random.Generator) -> None:
    model = MODELS["tied"]()
    inputs, labels, weights = make_batch(rng)
    logits = model(inputs, training=False)
    assert not hasattr(logits, "_projection_parts")
    logits, loss = model(inputs, training=True), SmoothedCrossentropy(0.0)
    by_row = SmoothedCrossentropy(0.0, reduction="none")(labels, logits, weights)
    assert by_row.shape == labels.shape
    assert float(tf.reduce_sum(by_row)) == pytest.approx(float(loss(labels, logits, weights)), rel=1e-5)
    assert float(loss(labels, logits, weights[:, :1])) == pytest.approx(
        float(loss(labels, tf.identity(logits), weights[:, :1])), rel=1e-5
    )
