"""Losses, metrics, schedules and what else training needs for sequence models."""

from keras_seq2seq.training.averaging import average_checkpoints
from keras_seq2seq.training.losses import SmoothedCrossentropy
from keras_seq2seq.training.metrics import Perplexity, TokenAccuracy
from keras_seq2seq.training.schedules import WarmupCosine, WarmupInverseSqrt, WarmupLinear
from keras_seq2seq.training.weight_decay import decay_matrices_only

__all__ = [
    "Perplexity",
    "SmoothedCrossentropy",
    "TokenAccuracy",
    "WarmupCosine",
    "WarmupInverseSqrt",
    "WarmupLinear",
    "average_checkpoints",
    "decay_matrices_only",
]
