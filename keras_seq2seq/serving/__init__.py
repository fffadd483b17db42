"""Strings in, strings out: `Translator` and `Generator`, kept on disk or exported as a SavedModel."""

from keras_seq2seq.serving.buckets import XLABuckets
from keras_seq2seq.serving.generator import Generator
from keras_seq2seq.serving.results import Hypothesis, TargetScore
from keras_seq2seq.serving.server_files import write_server_files
from keras_seq2seq.serving.translator import Translator
from keras_seq2seq.serving.warmup import Warmup

__all__ = [
    "Generator",
    "Hypothesis",
    "TargetScore",
    "Translator",
    "Warmup",
    "XLABuckets",
    "write_server_files",
]
