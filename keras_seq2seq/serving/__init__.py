"""Strings in, strings out: `Translator`, kept on disk or exported as a SavedModel."""

from keras_seq2seq.serving.translator import Hypothesis, TargetScore, Translator

__all__ = ["Hypothesis", "TargetScore", "Translator"]
