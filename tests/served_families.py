"""Translators and generators of every family with random weights, and what they are asked for."""

import random
from typing import Any

from references import randomize

import keras_seq2seq as ks

__all__ = ["FAMILIES", "SEEDS", "STRATEGIES", "TEXTS", "make"]

TEXTS = [
    "the sea",
    "",
    "他住在",
    "s",
    "the quick brown fox sells 25 shells by the shore",
    "☃<s>\0",
    "lazy dog",
]
SEEDS = [5, 5, -5, 6, 2**50, 0, 1]
STRATEGIES: dict[str, Any] = {
    "greedy": ks.search.Greedy(),
    "beam": ks.search.Beam(3, length_penalty=0.6),
    "covering": ks.search.Beam(3, length_penalty=0.6, coverage_penalty=0.3),
    "sampling": ks.search.Sampling(2, temperature=0.7, top_p=0.9, seed=0),
}
FAMILIES = ("bahdanau", "luong", "no attention", "transformer", "language model")
RULES: dict[str, Any] = {"no_repeat_ngram": 3, "forbidden_tokens": [5]}


def make(family: str, tokenizer: ks.text.Tokenizer, strategy: Any) -> Any:
    """A translator or a generator with random weights that says various things of various length."""
    random.seed(4)
    size = tokenizer.vocabulary_size
    if family == "language model":
        model = ks.models.transformer_lm(size, num_layers=2, model_dim=16, feed_forward_dim=24, num_heads=2)
        randomize(model, 0.8, seed=4)
        return ks.Generator(model, tokenizer, strategy, max_new_tokens=12, min_new_tokens=2, **RULES)
    if family == "transformer":
        model = ks.models.transformer_seq2seq(
            size, num_layers=2, model_dim=16, feed_forward_dim=24, num_heads=2, tie_embeddings=False
        )
    else:
        attention = {"bahdanau": ks.layers.BahdanauAttention(8), "luong": ks.layers.LuongAttention("general")}
        options = {"input_feeding": False} if family == "luong" else {}
        model = ks.models.rnn_seq2seq(size, units=12, attention=attention.get(family), cell="gru", **options)
    randomize(model, 0.8, seed=4)
    return ks.Translator(model, tokenizer, strategy=strategy, max_length=12, min_length=2, **RULES)
