"""A dataset whose iterations are epochs, and which can go on in the middle of one."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import tensorflow as tf

from keras_seq2seq.text.integers import integer


class Source(Protocol):
    """Epochs that depend on their number alone."""

    @property
    def count(self) -> int | None:
        """Number of batches of an epoch, if known."""

    @property
    def seed(self) -> int | None:
        """What the order depends on; None if another process gets another order."""

    def epoch(self, number: int, first: int) -> Iterator[Any]:
        """Give epoch `number` (from 0) from batch `first` (from 0) on."""

    def dataset(self, read: Callable[[], Iterator[Any]]) -> tf.data.Dataset:
        """Make a dataset of what `read`, a function that calls `epoch`, gives."""


class Batches(tf.data.Dataset):
    """A `tf.data.Dataset` of batches: one iteration is one epoch, the next one at every iteration.

    An epoch depends on the seed and its number alone, so a position in the stream is two numbers: the
    epoch, and how many of its batches were taken. A run that was killed goes on like this, in a new
    process with the same corpus, arguments and seed:

        >>> text, letters = ks.data.ParallelText("train.en", "train.de"), ks.text.Bytes()
        >>> batches = text.batches(letters, tokens_per_batch=128, seed=1)
        >>> model = ks.models.transformer_seq2seq(letters.vocabulary_size, size="tiny", num_layers=1)
        >>> model.compile("adam", loss=ks.training.SmoothedCrossentropy())
        >>> epoch, taken, epochs = 1, 2, 3  # killed after two batches of the second epoch
        >>> history = model.fit(batches.rest(epoch, taken), initial_epoch=epoch, epochs=epoch + 1, verbose=0)
        >>> batches.seek(epoch + 1)
        >>> history = model.fit(batches, initial_epoch=epoch + 1, epochs=epochs, verbose=0)

    `fit` begins an iteration of its own if it has yet to build a model or its metrics. A callback that
    calls `seek(epoch)` in `on_epoch_begin` makes the number of an epoch that of `fit`, whatever came before.
    """

    def __init__(self, source: Source):
        self._source, self._next = source, 0
        dataset = source.dataset(self._read)
        if source.count is not None:
            dataset = dataset.apply(tf.data.experimental.assert_cardinality(source.count))
        self._dataset = dataset
        super().__init__(dataset._variant_tensor)

    @property
    def element_spec(self) -> Any:
        """Types and shapes of a batch."""
        return self._dataset.element_spec

    def seek(self, epoch: int) -> None:
        """Let the next iteration be this epoch, counted from 0, and those after it follow on.

        Raises:
            ValueError: if `epoch` is no integer of at least 0.
        """
        self._next = integer("epoch", epoch, 0)

    def rest(self, epoch: int, batch: int) -> tf.data.Dataset:
        """Give what is left of an epoch, the same at every iteration.

        The batches that are passed over are not made, but a corpus that does not fit into the shuffle
        buffer is read and tokenized up to there.

        Args:
            epoch: its number, from 0.
            batch: how many of its batches were taken; the first of the rest is number `batch`, from 0.

        Raises:
            ValueError: if a number is negative, the epoch has fewer batches, or these have no seed, so
                that their order is lost with the process that made them. If the number of batches is not
                known, reading the rest says so.
        """
        epoch, batch = integer("epoch", epoch, 0), integer("batch", batch, 0)
        if self._source.seed is None:
            raise ValueError("seed must be given for batches that are to go on later, got None.")
        count = self._source.count
        if count is not None and batch > count:
            raise ValueError(f"batch must be at most the {count} batches of an epoch, got {batch}.")
        rest = self._source.dataset(lambda: self._source.epoch(epoch, batch))
        if count is not None:
            rest = rest.apply(tf.data.experimental.assert_cardinality(count - batch))
        return rest

    def _inputs(self) -> list[Any]:
        return [self._dataset]

    def _read(self) -> Iterator[Any]:
        """Begin an epoch: a function and no generator, so that epochs count from when they begin."""
        number, self._next = self._next, self._next + 1
        return self._source.epoch(number, 0)
