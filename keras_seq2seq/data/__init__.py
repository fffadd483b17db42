"""Text from files to batches for training, and text to ids for serving."""

from keras_seq2seq.data.cleaning import Cleaning
from keras_seq2seq.data.encoding import encode_prefixes, encode_sources
from keras_seq2seq.data.epochs import Batches
from keras_seq2seq.data.lines import read_lines
from keras_seq2seq.data.monolingual import Text
from keras_seq2seq.data.parallel import ParallelText
from keras_seq2seq.data.records import Records, write_records
from keras_seq2seq.data.report import Report

__all__ = [
    "Batches",
    "Cleaning",
    "ParallelText",
    "Records",
    "Report",
    "Text",
    "encode_prefixes",
    "encode_sources",
    "read_lines",
    "write_records",
]
