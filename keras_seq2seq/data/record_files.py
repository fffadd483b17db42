"""Blocks of pairs in TFRecord files: how one is written, and read by operations of the graph alone."""

import os
from collections.abc import Iterator, Sequence
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


def blocks_in(files: Any, tokenizers: Sequence[Any], holds_ids: bool) -> tf.data.Dataset:
    """Read the blocks of a dataset of file names, as `blocks_of` gives them.

    Args:
        files: dataset of scalar strings.
        tokenizers: of the source and the target; they turn text into ids.
        holds_ids: whether the files hold ids instead of text.
    """
    text, number = tf.io.RaggedFeature(tf.string), tf.io.FixedLenFeature([], tf.int64)
    raw = tf.io.FixedLenFeature([], tf.string)
    sides = {"source": text, "target": text}
    if holds_ids:
        sides = dict.fromkeys(("source", "sources", "target", "targets"), raw)
    counts = {"pairs": number, "blank": number}

    @tf.autograph.experimental.do_not_convert
    def read(record: Any) -> tuple[Any, ...]:
        fields = tf.io.parse_single_example(record, sides | counts)
        block = [fields[name] for name in sides]
        if holds_ids:
            block = [tf.io.decode_raw(part, tf.int32) for part in block]
            block[1::2] = [tf.cast(lengths, tf.int64) for lengths in block[1::2]]
        else:
            block = list(encode_block(tokenizers, block))
        block += [fields["pairs"], fields["blank"]]
        # Ids of a forged record would else look up what there is not, or be cut in the wrong places.
        with tf.control_dependencies([tf.debugging.Assert(_is_sound(block, tokenizers), ["unsound"])]):
            return tuple(map(tf.identity, block))

    return files.flat_map(tf.data.TFRecordDataset).map(read, num_parallel_calls=2, deterministic=True)


def _is_sound(block: Sequence[Any], tokenizers: Sequence[Any]) -> Any:
    """Tell whether the parts of a block go together."""
    *sides, pairs, blank = block
    checks = [blank >= 0]
    for ids, lengths, tokenizer in zip(sides[::2], sides[1::2], tokenizers, strict=True):
        checks += [
            tf.size(lengths, tf.int64) == pairs - blank,
            tf.reduce_all(lengths >= 0),
            tf.reduce_sum(lengths) == tf.size(ids, tf.int64),
            tf.reduce_all((ids >= 0) & (ids < tokenizer.vocabulary_size)),
        ]
    return tf.reduce_all(tf.stack(checks))


class NamedDamage:
    """The blocks of files; what TensorFlow cannot read becomes a sentence that names the file.

    Args:
        blocks: those of the files, as a dataset.
        files: their paths.
        tokenizers: as `blocks_in` takes them.
        holds_ids: likewise.
    """

    def __init__(
        self, blocks: tf.data.Dataset, files: Sequence[str], tokenizers: Sequence[Any], holds_ids: bool
    ):
        self._blocks, self._files, self._options = blocks, files, (tokenizers, holds_ids)

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self._blocks
        except (tf.errors.DataLossError, tf.errors.InvalidArgumentError) as error:
            for path in filter(self._is_damaged, self._files):
                directory, name = os.path.split(path)
                raise ValueError(
                    f"{directory!r} is damaged: {name!r} holds a record that cannot be read."
                ) from error
            raise

    def _is_damaged(self, path: str) -> bool:
        try:
            for _ in blocks_in(tf.data.Dataset.from_tensors(path), *self._options):
                pass
        except tf.errors.OpError:
            return True
        return False
