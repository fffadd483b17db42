"""Layers of sequence-to-sequence models, pure Keras: they run on every backend."""

from keras_seq2seq.layers.add_norm import AddNorm
from keras_seq2seq.layers.attention import BahdanauAttention, LuongAttention, ScoreAttention
from keras_seq2seq.layers.embedding import PositionalEmbedding
from keras_seq2seq.layers.feed_forward import FeedForward
from keras_seq2seq.layers.multi_head import MultiHeadAttention, MultiHeadSelfAttention
from keras_seq2seq.layers.positions import (
    LearnedPositions,
    LinearBias,
    Positions,
    RelativeBias,
    RotaryPositions,
    SinusoidalPositions,
)

__all__ = [
    "AddNorm",
    "BahdanauAttention",
    "FeedForward",
    "LearnedPositions",
    "LinearBias",
    "LuongAttention",
    "MultiHeadAttention",
    "MultiHeadSelfAttention",
    "PositionalEmbedding",
    "Positions",
    "RelativeBias",
    "RotaryPositions",
    "ScoreAttention",
    "SinusoidalPositions",
]
