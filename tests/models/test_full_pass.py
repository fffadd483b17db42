"""A model without `step` is searched by whole passes, with the results of one that has it."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_seq2seq.models import FullPass, decodable, rnn_seq2seq, transformer_lm, transformer_seq2seq
from keras_seq2seq.search import Beam, Greedy, search

PROMPTS = np.array([[2, 0, 0, 0], [2, 7, 9, 0], [2, 5, 6, 11]], "int32")


def randomized(model: keras.Model) -> keras.Model:
    rng = np.random.default_rng(3)
    for weight in model.trainable_weights:
        weight.assign(weight + rng.normal(0, 0.3, weight.shape).astype("float32"))
    return model


def models() -> list[keras.Model]:
    small = {"num_layers": 1, "model_dim": 16, "num_heads": 2, "feed_forward_dim": 32, "dropout": 0.0}
    return [
        randomized(transformer_seq2seq(13, **small)),
        randomized(rnn_seq2seq(13, units=8, encoder_layers=1, decoder_layers=1)),
        randomized(transformer_lm(13, preset="llama", **small)),
    ]


@pytest.mark.parametrize("strategy", [Greedy(), Beam(3, n_best=2)], ids=["greedy", "beam"])
@pytest.mark.parametrize("number", range(3), ids=["transformer", "rnn", "lm"])
def test_whole_passes_find_what_steps_find(number: int, strategy: object) -> None:
    model = models()[number]
    inputs = {"source": np.array([[5, 6, 7, 3], [8, 3, 0, 0], [9, 9, 3, 0]], "int32"), "target": PROMPTS}
    if number == 2:
        inputs.pop("source")
    steps = search(model, inputs, strategy, max_length=6)
    # In a graph of unknown batch and length, as a translator runs it.
    signature = {name: tf.TensorSpec([None, None], tf.int32) for name in inputs}
    whole = tf.function(
        lambda given: search(FullPass(model), given, strategy, max_length=6), [signature], autograph=False
    )(inputs)
    np.testing.assert_array_equal(whole.tokens, steps.tokens)
    np.testing.assert_allclose(whole.scores, steps.scores, atol=1e-4)


def test_a_model_that_has_steps_keeps_them() -> None:
    model = models()[2]
    assert decodable(model) is model


def test_a_functional_model_becomes_searchable() -> None:
    target = keras.Input((None,), dtype="int32", name="target")
    logits = keras.layers.Embedding(9, 9)(target)
    model = keras.Model({"target": target}, logits)
    result = search(decodable(model), {"target": np.array([[2], [2]], "int32")}, Greedy(), max_length=4)
    assert result.tokens.shape == (2, 1, 4)


def test_a_model_without_target_is_refused() -> None:
    inputs = keras.Input((3,), name="features")
    with pytest.raises(ValueError, match=r"target.*features"):
        decodable(keras.Model(inputs, inputs))
