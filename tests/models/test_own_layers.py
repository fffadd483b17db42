"""Layers of a user's own that follow the contract: trained, searched, saved and exported."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
from c_loader import run_signature
from keras import ops
from references import randomize

import keras_seq2seq as ks
from keras_seq2seq.models.protocol import DecodeState, reorder_rows

V, D = 13, 8


@keras.saving.register_keras_serializable(package="test_own_layers")
class MeanEncoder(keras.layers.Layer):
    """A bag of words: the memory is the mean of the embeddings, in a structure of its own."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.words = keras.layers.Embedding(V, D)

    def build(self, shape):
        self.words.build(shape)

    def call(self, source):
        real = ops.expand_dims(ops.cast(source != 0, "float32"), -1)
        total = ops.sum(self.words(source) * real, axis=1)
        return {"mean": total / ops.maximum(ops.sum(real, axis=1), 1.0)}

    def compute_output_spec(self, source):
        return {"mean": keras.KerasTensor((source.shape[0], D))}


@keras.saving.register_keras_serializable(package="test_own_layers")
class SumDecoder(keras.layers.Layer):
    """The next token depends on the mean of the source and the sum of the tokens so far."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.words = keras.layers.Embedding(V, D)
        self.out = keras.layers.Dense(V)

    def build(self, target_shape, memory_shape=None, memory_mask_shape=None):
        self.words.build(target_shape)
        self.out.build((None, D))

    def call(self, target, memory, memory_mask=None):
        sums = ops.cumsum(self.words(target), axis=1)
        return self.out(ops.tanh(sums + ops.expand_dims(memory["mean"], 1)))

    def compute_output_spec(self, target, memory, memory_mask=None):
        return keras.KerasTensor((*target.shape, V))

    def start(self, target, memory, memory_mask=None, *, max_length, hypotheses=1) -> DecodeState:
        last = ops.sum(ops.cast(target != 0, "int32"), axis=1, keepdims=True) - 1
        token = ops.squeeze(ops.take_along_axis(target, last, axis=1), 1)
        read = ops.expand_dims(ops.arange(ops.shape(target)[1]), 0) < last
        sums = ops.sum(self.words(target) * ops.expand_dims(ops.cast(read, "float32"), -1), axis=1)
        return DecodeState(memory, {"sum": ops.repeat(sums, hypotheses, axis=0)}, token)

    def step(self, token: Any, index: Any, carry: dict, context: dict) -> tuple[Any, dict]:
        sums = carry["sum"] + self.words(token)
        sources = ops.shape(context["mean"])[0]
        rows = ops.reshape(sums, (sources, -1, D)) + ops.expand_dims(context["mean"], 1)
        return ops.reshape(self.out(ops.tanh(rows)), (-1, V)), {"sum": sums}

    def reorder(self, carry: dict, parent: Any) -> dict:
        return reorder_rows(carry, parent)


def test_a_model_of_own_layers(tmp_path: Path) -> None:
    model = ks.models.Seq2Seq(MeanEncoder(), SumDecoder())
    letters = ks.text.Characters.build("abcdefghi")
    texts = ["abc", "hhg", "e", "fed", "ihgfabc"]
    pairs = ks.data.ParallelText.from_pairs([(text, text[::-1]) for text in texts] * 4)
    model.compile("adam", ks.training.SmoothedCrossentropy(), weighted_metrics=[ks.training.TokenAccuracy()])
    losses = model.fit(pairs.batches(letters, tokens_per_batch=64, seed=1), epochs=3, verbose=0).history[
        "loss"
    ]
    assert losses[-1] < losses[0]

    randomize(model, 0.8)
    inputs = {
        "source": np.array([[5, 6, 3], [7, 3, 0]], "int32"),
        "target": np.array([[2, 5], [2, 0]], "int32"),
    }
    for strategy in (ks.search.Greedy(), ks.search.Beam(4, n_best=2), ks.search.Sampling(2, seed=1)):
        steps = ks.search.search(model, inputs, strategy, max_length=5)
        whole = ks.search.search(ks.models.FullPass(model), inputs, strategy, max_length=5)
        np.testing.assert_array_equal(steps.tokens, whole.tokens)

    translator = ks.Translator(model, letters, strategy=ks.search.Beam(3))
    translator.save(tmp_path / "model")
    assert ks.Translator.load(tmp_path / "model")(texts) == translator(texts)
    path = translator.export(tmp_path / "served")
    assert run_signature(path, "serving_default", {"text": texts})["translation"] == translator(texts)
