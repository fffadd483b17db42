"""Losses, metrics, schedules, checkpoints and what else training needs for sequence models."""

from importlib import import_module

from keras_seq2seq.training.averaging import average_checkpoints
from keras_seq2seq.training.checkpoint_files import best_checkpoints, checkpoints, last_checkpoints
from keras_seq2seq.training.global_batch import GlobalBatch
from keras_seq2seq.training.losses import SmoothedCrossentropy
from keras_seq2seq.training.metrics import Perplexity, TokenAccuracy
from keras_seq2seq.training.resuming import Checkpoints
from keras_seq2seq.training.schedules import WarmupCosine, WarmupInverseSqrt, WarmupLinear
from keras_seq2seq.training.weight_decay import decay_matrices_only

__all__ = [
    "Checkpoints",
    "GlobalBatch",
    "Perplexity",
    "SmoothedCrossentropy",
    "TokenAccuracy",
    "TranslationQuality",
    "WarmupCosine",
    "WarmupInverseSqrt",
    "WarmupLinear",
    "average_checkpoints",
    "best_checkpoints",
    "checkpoints",
    "decay_matrices_only",
    "last_checkpoints",
]


def __getattr__(name):
    """Load on first use what needs more than Keras."""
    if name == "TranslationQuality":
        return import_module("keras_seq2seq.training.callbacks").TranslationQuality
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
