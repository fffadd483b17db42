"""Strings in, strings out: `Translator` and `Generator`, kept on disk or exported as a SavedModel."""

from keras_seq2seq.serving.buckets import XLABuckets
from keras_seq2seq.serving.generator import Generator
from keras_seq2seq.serving.results import Hypothesis, TargetScore
from keras_seq2seq.serving.translator import Translator

__all__ = ["Generator", "Hypothesis", "TargetScore", "Translator", "XLABuckets"]
