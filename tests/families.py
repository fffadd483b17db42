"""Small models of all three kinds with random weights, their inputs, and compiled searches over them."""

from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from references import log_softmax, randomize
from scripted import BOS, EOS, PAD

from keras_seq2seq.layers import BahdanauAttention
from keras_seq2seq.models import rnn_seq2seq, transformer_lm, transformer_seq2seq
from keras_seq2seq.search import Beam, Greedy, Sampling, SearchResult, search

__all__ = ["LIMIT", "NAMES", "ROWS", "STRATEGIES", "VOCABULARY", "Family", "make"]

LIMIT, ROWS, VOCABULARY = 12, 64, 23
NAMES = ("rnn", "encoder_decoder", "language_model")
STRATEGIES: dict[str, Any] = {
    "greedy": Greedy(),
    "beam": Beam(5, n_best=5, length_penalty=0.6),
    "sampling": Sampling(2, top_p=0.9, seed=5),
}
Inputs = dict[str, np.ndarray]


def rnn() -> keras.Model:
    sizes: dict[str, Any] = {"units": 16, "encoder_layers": 1, "decoder_layers": 1}
    model = rnn_seq2seq(VOCABULARY, attention=BahdanauAttention(8), **sizes)
    randomize(model, scale=0.8, seed=3)
    return model


def encoder_decoder() -> keras.Model:
    model = transformer_seq2seq(
        VOCABULARY,
        size="tiny",
        num_layers=2,
        model_dim=16,
        feed_forward_dim=24,
        num_heads=4,
        num_key_value_heads=2,
        positions="rotary",
        tie_embeddings=False,
    )
    randomize(model, scale=0.2, seed=5)  # a draw whose outputs vary and end
    return model


def language_model() -> keras.Model:
    model = transformer_lm(
        VOCABULARY, preset="llama", num_layers=2, model_dim=16, num_heads=4, positions="alibi"
    )
    randomize(model, scale=0.2, seed=0)
    return model


def rows_of(first: int | None, last: int | None) -> np.ndarray:
    """Make 64 rows of 1 to 9 ids, between `first` and `last` where they are given."""
    generator = np.random.default_rng(1)
    rows = np.zeros((ROWS, 9), "int32")
    for row in rows:
        length = generator.integers(0, 9)
        inner = generator.integers(EOS + 1, VOCABULARY, length)
        ids = [*([] if first is None else [first]), *inner, *([] if last is None else [last])]
        row[: len(ids)] = ids
    return rows


@dataclass
class Family:
    """A model with 64 rows for its varying input.

    Attributes:
        name: one of `NAMES`.
        model: with random weights.
        varying: the name of the input that differs from row to row.
        rows: int32 `[64, 9]`, of unequal length: sources, or prompts.
    """

    name: str
    model: Any
    varying: str
    rows: np.ndarray
    compiled: dict[Any, Any] = field(default_factory=dict)

    def decode(self, inputs: Inputs, strategy: Any, seeds: Any = None, least: int = 0) -> SearchResult:
        """Search in one graph for all shapes; sampling gets a seed for each row; `least` tokens and more."""
        key = strategy, tuple(inputs), least
        if key not in self.compiled:

            def run(inputs: dict, seeds: tf.Tensor) -> SearchResult:
                return search(self.model, inputs, strategy, max_length=LIMIT, min_length=least, seeds=seeds)

            signature = [{name: tf.TensorSpec([None, None], tf.int32) for name in inputs}]
            function = tf.function(run, [*signature, tf.TensorSpec([None], tf.int32)], autograph=False)
            self.compiled[key] = function.get_concrete_function()
        seeds = np.arange(len(next(iter(inputs.values())))) if seeds is None else seeds
        result = self.compiled[key](
            {name: tf.constant(value, tf.int32) for name, value in inputs.items()},
            tf.constant(seeds, tf.int32),
        )
        return SearchResult(*(part.numpy() for part in result))

    def whole(self, strategy: Any) -> SearchResult:
        """Search all 64 rows at once."""
        return self.decode({self.varying: self.rows}, strategy)

    def align(self, inputs: Inputs) -> np.ndarray:
        """Return the attention to the sources, `[B, H, T, S]`."""
        if "align" not in self.compiled:
            signature = {name: tf.TensorSpec([None, None], tf.int32) for name in ("source", "target")}
            self.compiled["align"] = tf.function(self.model.align, [signature], autograph=False)
        return self.compiled["align"](inputs).numpy()

    def log_probabilities(self, inputs: Inputs, tokens: np.ndarray) -> np.ndarray:
        """Return log P of tokens `[B, L]` after the prompts by one full pass: PAD and BOS out, pads 0."""
        prompts = inputs.get("target", np.full((len(tokens), 1), BOS))
        lengths = (prompts != PAD).sum(1)
        target = np.zeros((len(tokens), prompts.shape[1] + tokens.shape[1]), "int32")
        for row, prompt, length, after in zip(target, prompts, lengths, tokens, strict=True):
            row[: length + len(after)] = [*prompt[:length], *after]
        logits = np.array(self.model({**inputs, "target": target}, training=False))
        logits[..., [PAD, BOS]] = -np.inf
        place = lengths[:, None] - 1 + np.arange(tokens.shape[1])
        steps = np.take_along_axis(log_softmax(logits), place[..., None], 1)
        chosen = np.take_along_axis(steps, tokens[..., None], -1)[..., 0]
        return np.where(tokens == PAD, 0.0, chosen)


def make(name: str) -> Family:
    """Return one of `NAMES`."""
    if name == "language_model":
        return Family(name, language_model(), "target", rows_of(BOS, None))
    return Family(name, rnn() if name == "rnn" else encoder_decoder(), "source", rows_of(None, EOS))
