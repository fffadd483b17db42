"""Losses, metrics and schedules for sequence models."""

from keras_seq2seq.training.losses import SmoothedCrossentropy
from keras_seq2seq.training.metrics import Perplexity, TokenAccuracy
from keras_seq2seq.training.schedules import WarmupInverseSqrt

__all__ = ["Perplexity", "SmoothedCrossentropy", "TokenAccuracy", "WarmupInverseSqrt"]
