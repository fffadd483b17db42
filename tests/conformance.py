"""Every public layer and model, once: adding one is one line in `ENTRIES`.

`test_conformance.py` runs the same checks on each. Nothing here is a test, so that a fresh process can import
this table without pytest.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras
import numpy as np

from keras_seq2seq import layers, models

__all__ = ["ENTRIES", "INSIDE_OTHERS", "Entry", "functional"]

B, T, S, D, E, V = 2, 5, 6, 8, 6, 11
Inputs = dict[str, np.ndarray]

# What is public but no entry of its own: name -> why.
INSIDE_OTHERS = {
    "FullPass": "is no layer but a model seen as the search needs it, with tests of its own",
    "decodable": "is the function that makes it",
    "ScoreAttention": "is the base class of Bahdanau's and Luong's attention",
    "TransformerBlock": "has `run` instead of `call`, and is part of every Transformer",
}


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape).astype("float32")


def ids(length: int, pads: int = 2) -> np.ndarray:
    rows = np.random.default_rng(length).integers(4, V, (B, length)).astype("int32")
    rows[1, length - pads :] = 0
    return rows


X, VALUE, KEY = normal(B, T, D), normal(B, S, E), normal(B, S, E + 1)
KEYS = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]], bool)
OWN_KEYS = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], bool)
PAIRS = np.random.default_rng(3).random((B, T, S)) < 0.7
SOURCE, TARGET = ids(S), ids(T)
TARGET[:, 0] = 2


def pad_right(x: np.ndarray, axis: int = 1, by: int = 3) -> np.ndarray:
    """Append False to masks, pads to ids, and noise to vectors, which a mask must then hide."""
    tail = [by if i == axis else n for i, n in enumerate(x.shape)]
    filler = normal(*tail) * 5 if x.dtype == "float32" else np.zeros(tail)
    return np.concatenate([x, filler.astype(x.dtype)], axis)


@dataclass(frozen=True)
class Entry:
    """A layer or model and what to give it.

    Attributes:
        name: of the entry.
        make: returns a new layer, or a model.
        inputs: arrays by name, the batch first; the axes after it are lengths, save the last of floats.
        call: how a layer is called with its inputs, in order; default: with all of them.
        pads: the inputs (and axes) that padding lengthens without changing anything real.
        no_gradient: variables that rightly get no gradient, and why.
        xla: whether it compiles with XLA.
    """

    name: str
    make: Callable[[], Any]
    inputs: Inputs
    call: Callable[..., Any] = lambda layer, *inputs: layer(*inputs)
    pads: tuple[tuple[str, int], ...] = ()
    no_gradient: dict[str, str] = field(default_factory=dict)
    xla: bool = True

    def padded(self) -> Inputs:
        """Return the inputs, lengthened by padding."""
        longer = dict(self.inputs)
        for name, axis in self.pads:
            longer[name] = pad_right(longer[name], axis)
        return longer


def functional(entry: Entry) -> keras.Model:
    """Make the entry as a Keras model of its inputs, with axes after the first of unknown length."""
    made = entry.make()
    if isinstance(made, keras.Model):
        return made
    inputs = {}
    for name, value in entry.inputs.items():
        shape = (None,) * (value.ndim - 1) if value.dtype != "float32" else (None, value.shape[-1])
        inputs[name] = keras.Input(shape, dtype=str(value.dtype), name=name)
    return keras.Model(inputs, entry.call(made, *inputs.values()), name=entry.name)


def self_attention(layer, x, mask):
    """Ask for everything that a self-attention layer offers."""
    return layer(x, attention_mask=mask, use_causal_mask=True, return_attention_scores=True)


def attention(layer, query, value, mask):
    """Attend with a mask, and ask for the scores."""
    return layer(query, value, attention_mask=mask, return_attention_scores=True)


def attention_with_key(layer, query, value, key, mask):
    """Attend with a key of its own."""
    return layer(query, value, key, attention_mask=mask, return_attention_scores=True)


def embedding(positions: Any = "sinusoidal", **options) -> layers.PositionalEmbedding:
    return layers.PositionalEmbedding(V, D, positions, **options)


BLOCK = {"num_heads": 4, "feed_forward_dim": 10}
SIZES = {"num_layers": 1, "model_dim": D, "feed_forward_dim": 10, "num_heads": 4, "dropout": 0.1}
RECURRENT = {
    "encoder_layers": 2,
    "decoder_layers": 1,
    "units": D,
    "embedding_dim": E,
    "recurrent_dropout": 0.1,
}


def decoder(cross: bool, **options) -> models.TransformerDecoder:
    return models.TransformerDecoder(embedding(), 1, cross_attention=cross, block=BLOCK, **options)


def language_model() -> models.LanguageModel:
    """Build a small one of Llama's kind."""
    block = {**BLOCK, "normalization": "rms", "activation": "swiglu", "num_key_value_heads": 2}
    return models.LanguageModel(
        models.TransformerDecoder(
            embedding(None), 2, cross_attention=False, positions=layers.RotaryPositions(), block=block
        )
    )


def mixed_seq2seq() -> models.Seq2Seq:
    """Build one of parts that `transformer_seq2seq` would not put together."""
    encoder = models.TransformerEncoder(
        embedding("learned", max_length=30), 2, positions=layers.RelativeBias(4), block=BLOCK
    )
    return models.Seq2Seq(encoder, decoder(cross=True, tie_embeddings=False, dropout=0.2))


x, own = {"x": X}, {"x": X, "mask": OWN_KEYS}
cross, pairs = {"query": X, "value": VALUE, "mask": KEYS}, {"query": X, "value": VALUE, "mask": PAIRS}
alike = {"query": X, "value": normal(B, S, D), "mask": KEYS}
with_key = {"query": X, "value": VALUE, "key": KEY, "mask": KEYS}
tokens, both = {"ids": TARGET}, {"source": SOURCE, "target": TARGET}
own_pads = (("x", 1), ("mask", 1))
keys_pads, pairs_pads = (("value", 1), ("mask", 1)), (("value", 1), ("mask", 2))
both_pads = (("source", 1), ("target", 1))
with_memory = {"target": TARGET, "memory": VALUE, "mask": KEYS}

ENTRIES = [
    Entry("add_norm", lambda: layers.AddNorm("post", "layer", 0.1, 1e-5), {"x": X, "y": normal(B, T, D) + 1}),
    Entry("add_norm_pre", lambda: layers.AddNorm("pre", "rms"), {"x": X, "y": -X}, no_gradient={
        "scale": "only `before` uses it"}),
    Entry("feed_forward", lambda: layers.FeedForward(7, "gelu", 0.1, output_initializer="he_normal"), x),
    Entry("feed_forward_function", lambda: layers.FeedForward(7, keras.activations.silu), x),
    Entry("feed_forward_gated", lambda: layers.FeedForward(7, "swiglu", use_bias=False), x),
    Entry("self_attention", lambda: layers.MultiHeadSelfAttention(4, dropout=0.1), own, self_attention,
          own_pads),
    Entry("self_attention_rotary", lambda: layers.MultiHeadSelfAttention(
        4, 6, layers.RotaryPositions(500.0), num_key_value_heads=2), own, self_attention, own_pads),
    Entry("self_attention_relative", lambda: layers.MultiHeadSelfAttention(
        4, positions=layers.RelativeBias(4, 8, 20), use_bias=False), own, self_attention, own_pads),
    Entry("self_attention_alibi", lambda: layers.MultiHeadSelfAttention(
        4, positions=layers.LinearBias(4), output_initializer="orthogonal"), own, self_attention, own_pads),
    Entry("attention", lambda: layers.MultiHeadAttention(4, 6, dropout=0.1), cross, attention, keys_pads),
    Entry("attention_pairs", lambda: layers.MultiHeadAttention(4, 6, num_key_value_heads=1), pairs,
          attention, pairs_pads),
    Entry("attention_key", lambda: layers.MultiHeadAttention(4, 6, use_bias=False), with_key,
          attention_with_key, (*keys_pads, ("key", 1))),
    Entry("embedding", embedding, tokens, pads=(("ids", 1),)),
    Entry("embedding_learned", lambda: embedding("learned", max_length=9, scale=False), tokens,
          pads=(("ids", 1),)),
    Entry("positions_none", layers.Positions, x),
    Entry("positions_sinusoidal", lambda: layers.SinusoidalPositions(500.0), x, pads=(("x", 1),)),
    Entry("positions_learned", lambda: layers.LearnedPositions(9, "ones"), x, pads=(("x", 1),)),
    Entry("bahdanau", lambda: layers.BahdanauAttention(7, dropout=0.1), cross, attention, keys_pads),
    Entry("bahdanau_key", lambda: layers.BahdanauAttention(7), with_key, attention_with_key,
          (*keys_pads, ("key", 1))),
    Entry("luong_dot", lambda: layers.LuongAttention("dot"), alike, attention, keys_pads),
    Entry("luong_scaled", lambda: layers.LuongAttention("scaled_dot"), alike, attention, keys_pads),
    Entry("luong_general", lambda: layers.LuongAttention("general", dropout=0.1), pairs, attention,
          pairs_pads),
    Entry("luong_rank", lambda: layers.LuongAttention("general", rank=3), cross, attention, keys_pads),
    Entry("luong_concat", lambda: layers.LuongAttention("concat", units=7), cross, attention, keys_pads),
    Entry("encoder", lambda: models.TransformerEncoder(
        embedding(), 2, positions=layers.LinearBias(4), dropout=0.1, block={**BLOCK, "placement": "post"}),
        {"source": SOURCE}, pads=(("source", 1),)),
    Entry("decoder", lambda: decoder(cross=True, dropout=0.1), with_memory,
          pads=(("target", 1), ("memory", 1), ("mask", 1))),
    Entry("decoder_alone", lambda: decoder(cross=False, tie_embeddings=False), tokens,
          pads=(("ids", 1),)),
    Entry("transformer_encoder", lambda: models.transformer_encoder(
        V, positions="rotary", activation="geglu", **SIZES), {"source": SOURCE}, pads=(("source", 1),)),
    Entry("transformer_lm", lambda: models.transformer_lm(V, max_length=20, **SIZES), {"target": TARGET},
          pads=(("target", 1),)),
    Entry("transformer_lm_llama", lambda: models.transformer_lm(V, preset="llama", **SIZES),
          {"target": TARGET}, pads=(("target", 1),)),
    Entry("language_model", language_model, {"target": TARGET}, pads=(("target", 1),)),
    Entry("seq2seq", mixed_seq2seq, both, pads=both_pads),
    Entry("transformer_seq2seq", lambda: models.transformer_seq2seq(V, size="tiny", **SIZES), both,
          pads=both_pads),
    Entry("transformer_seq2seq_other", lambda: models.transformer_seq2seq(
        V, V + 2, size="tiny", decoder_layers=2, positions="relative", placement="post", activation="geglu",
        attention_dropout=0.1, activation_dropout=0.1, **SIZES), both, pads=both_pads),
    Entry("rnn_seq2seq", lambda: models.rnn_seq2seq(V, **RECURRENT), both, pads=both_pads),
    Entry("rnn_seq2seq_bahdanau", lambda: models.rnn_seq2seq(
        V, V + 2, cell="gru", attention=layers.BahdanauAttention(7), **RECURRENT), both, pads=both_pads),
    Entry("rnn_seq2seq_luong", lambda: models.rnn_seq2seq(
        V, attention=layers.LuongAttention("general"), share_embeddings=True, **RECURRENT), both,
        pads=both_pads),
    Entry("rnn_seq2seq_tied", lambda: models.rnn_seq2seq(
        V, cell="rnn", attention=layers.LuongAttention("concat"), input_feeding=False, tie_embeddings=True,
        bidirectional=False, **RECURRENT), both, pads=both_pads),
]  # fmt: skip
