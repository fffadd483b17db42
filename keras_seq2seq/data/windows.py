"""A text as one stream of ids, cut into blocks of a fixed length."""

import itertools
import tempfile
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import tensorflow as tf

from keras_seq2seq.data.batching import Batch
from keras_seq2seq.data.blocks import string_tensors
from keras_seq2seq.data.chunks import plain
from keras_seq2seq.data.rows import Ints
from keras_seq2seq.text import BOS_ID, Tokenizer

_PIECES = 16  # strings to tokenize at a time
_IDS = 1 << 16  # ids to hand to tf.data at a time, about
_READY = 4  # batches made in the background


def stream_of(tokenizer: Tokenizer, pieces: Iterable[str]) -> Ints:
    """Tokenize the pieces of a text: BOS and all their ids, uint16 or int32 `[N + 1]`.

    The ids are kept in a file without a name, not in memory; the system drops it with the array.

    Raises:
        ValueError: if the text gives no ids.
    """
    dtype = np.dtype(np.uint16 if tokenizer.vocabulary_size <= 1 << 16 else np.int32)
    pieces = iter(pieces)
    count = 1
    with tempfile.TemporaryFile() as file:
        file.write(np.array([BOS_ID], dtype).tobytes())
        while some := list(itertools.islice(pieces, _PIECES)):
            (strings,) = string_tensors([(piece,) for piece in some], sides=1)
            ids = tokenizer.tokenize(strings).values.numpy()
            file.write(ids.astype(dtype).tobytes())
            count += len(ids)
        if count == 1:
            raise ValueError(f"{tokenizer!r} gives no ids for this text.")
        file.flush()
        return np.memmap(file, dtype, mode="r", shape=(count,))


class RandomBlocks:
    """Blocks that begin anywhere, drawn with replacement; `Text.blocks` says what comes out.

    Args:
        stream: ids `[N + 1]`, BOS first.
        shape: rows and ids of a batch, B and T.
        steps: batches of an epoch.
        seed: of the draws; None differs every time.
        bos_share: share of the blocks whose first id is replaced by BOS.
    """

    def __init__(self, stream: Ints, shape: tuple[int, int], steps: int, seed: int | None, bos_share: float):
        if len(stream) <= shape[1]:
            raise ValueError(f"block_length={shape[1]} is more than the {len(stream) - 1} ids of the text.")
        self._stream, self._shape, self._share = stream, shape, bos_share
        self._entropy = np.random.SeedSequence(seed).entropy
        self.count, self.seed = steps, seed

    def dataset(self, read: Callable[[], Iterator[Batch]]) -> tf.data.Dataset:
        """Make a dataset of the batches of an epoch."""
        return _dataset(read, self._shape)

    def epoch(self, number: int, first: int) -> Iterator[Batch]:
        """Give epoch `number` from batch `first` on, several batches at a time, [K, B, T]."""
        rows, length = self._shape
        rng = np.random.default_rng(np.random.SeedSequence(self._entropy, spawn_key=(number,)))
        for place in range(0, self.count, _at_a_time(self._shape)):
            size = min(_at_a_time(self._shape), self.count - place), rows
            starts = rng.integers(0, len(self._stream) - length, size)  # [K, B]
            begins = rng.random(size) < self._share
            left = slice(min(max(0, first - place), size[0]), None)
            windows = self._stream[starts[left, :, np.newaxis] + np.arange(length + 1)].astype(np.int32)
            windows[..., 0][begins[left]] = BOS_ID
            weights = np.full([len(windows), rows, length], 1 / (rows * length), np.float32)
            yield {"target": windows[..., :-1]}, windows[..., 1:], weights


class ConsecutiveBlocks:
    """Blocks one after the other, which cover the whole text; `Text.blocks` says what comes out.

    Args:
        stream: ids `[N + 1]`, BOS first.
        shape: rows and ids of a batch, B and T.
    """

    def __init__(self, stream: Ints, shape: tuple[int, int]):
        self._stream, self._shape = stream, shape
        self.count = -(-(len(stream) - 1) // (shape[0] * shape[1]))
        self.seed = 0  # the order is that of the text

    def dataset(self, read: Callable[[], Iterator[Batch]]) -> tf.data.Dataset:
        """Make a dataset of the batches of an epoch."""
        return _dataset(read, self._shape)

    def epoch(self, number: int, first: int) -> Iterator[Batch]:
        """Give any epoch from batch `first` on, several batches at a time, [K, B, T].

        What is missing in the last one is pads.
        """
        rows, length = self._shape
        count = len(self._stream) - 1
        step = _at_a_time(self._shape) * rows * length
        for place in range(first * rows * length, count, step):
            real = min(step, count - place)
            shape = -(-real // (rows * length)), rows, length
            ids = np.zeros([2, np.prod(shape)], np.int32)
            ids[:, :real] = self._stream[place : place + real], self._stream[place + 1 : place + 1 + real]
            target, labels = ids.reshape(2, *shape)
            inside = (np.arange(ids.shape[1]) < real).reshape(shape)
            target[..., 0][~inside[..., 0]] = BOS_ID
            yield {"target": target}, labels, inside / inside.sum((1, 2), np.float32, keepdims=True)


def _at_a_time(shape: tuple[int, int]) -> int:
    return max(1, _IDS // (shape[0] * shape[1]))


def _dataset(read: Callable[[], Iterator[Batch]], shape: tuple[int, int]) -> tf.data.Dataset:
    """Take what a generator gives several at a time apart into batches."""
    ids, weights = tf.TensorSpec([None, *shape], tf.int32), tf.TensorSpec([None, *shape], tf.float32)
    dataset = tf.data.Dataset.from_generator(read, output_signature=({"target": ids}, ids, weights))
    return plain(dataset.unbatch().prefetch(_READY))
