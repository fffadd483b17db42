"""Blocks of pairs in TFRecord files: how one is written, and read by operations of the graph alone."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_seq2seq.data.chunks import encode_block

# A record holds a block of pairs. Ids are bytes of int32, which are read many times faster than
# numbers in protocol buffers.


def written(block: Sequence[Any], pairs: int, blank: int) -> bytes:
    """Give the record of a block.

    Args:
        block: sources and targets as two arrays of bytes objects, or sources, their lengths, targets
            and their lengths as four arrays of ids.
        pairs: how many pairs there were, blank ones among them.
        blank: how many were blank, which the block leaves out.
    """
    if len(block) == 2:
        parts = {"source": list(block[0]), "target": list(block[1])}
    else:
        names = ("source", "sources", "target", "targets")
        parts = {name: [_raw(part)] for name, part in zip(names, block, strict=True)}
    features = {
        name: tf.train.Feature(bytes_list=tf.train.BytesList(value=value)) for name, value in parts.items()
    }
    for name, count in (("pairs", pairs), ("blank", blank)):
        features[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=[count]))
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def _raw(part: Any) -> bytes:
    return np.asarray(part).astype("<i4").tobytes()


def blocks_in(files: Any, tokenizers: Sequence[Any] | None) -> tf.data.Dataset:
    """Read the blocks of a dataset of file names, as `blocks_of` gives them.

    Args:
        files: dataset of scalar strings.
        tokenizers: to turn text into ids; None if the files hold ids.
    """
    text, number = tf.io.RaggedFeature(tf.string), tf.io.FixedLenFeature([], tf.int64)
    raw = tf.io.FixedLenFeature([], tf.string)
    sides = {"source": text, "target": text}
    if tokenizers is None:
        sides = dict.fromkeys(("source", "sources", "target", "targets"), raw)
    counts = {"pairs": number, "blank": number}

    @tf.autograph.experimental.do_not_convert
    def read(record: Any) -> tuple[Any, ...]:
        fields = tf.io.parse_single_example(record, sides | counts)
        block = [fields[name] for name in sides]
        if tokenizers is None:
            block = [tf.io.decode_raw(part, tf.int32) for part in block]
            block[1::2] = [tf.cast(lengths, tf.int64) for lengths in block[1::2]]
            return *block, fields["pairs"], fields["blank"]
        return *encode_block(tokenizers, block), fields["pairs"], fields["blank"]

    return files.flat_map(tf.data.TFRecordDataset).map(read, num_parallel_calls=2, deterministic=True)
