"""A small export in a process of its own, which may be killed; no test."""

import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import random
from typing import Any

import tensorflow as tf

import keras_seq2seq as ks

LINES = ["the sea", "the shore of the sea"]


def generator() -> ks.Generator:
    """Return always the same one, which is soon exported."""
    random.seed(0)  # where Keras gets the seeds of layers from
    words = ks.text.Words.train(LINES)
    model = ks.models.transformer_lm(words.vocabulary_size, num_layers=1, model_dim=8, num_heads=1)
    return ks.Generator(model, words, ks.search.Greedy(), max_new_tokens=4)


def export(base: str, started: Any = None) -> None:
    """Export once; or, after setting the event `started`, again and again until killed."""
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})  # sooner exported
    served = generator()
    while started is not None:
        started.set()
        served.export(base, samples=LINES[:1])
    served.export(base, samples=LINES[:1])
