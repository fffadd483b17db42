"""A corpus as ids, in chunks that fit into memory: tokenized in the graph, blanks and long pairs dropped."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf

from keras_seq2seq.data.blocks import BLOCK, Strings, in_blocks, string_tensors
from keras_seq2seq.data.encoding import source_rows, target_rows
from keras_seq2seq.data.report import Report
from keras_seq2seq.data.rows import PairRows, Rows, Tally
from keras_seq2seq.text import Tokenizer
from keras_seq2seq.text.integers import integer

_LOGGER = logging.getLogger(__name__)


class Corpus(Protocol):
    """What is to be known of pairs, or lines, that can be read again and again."""

    unit: str  # "pairs" or "lines"
    report: Report | None

    def __len__(self) -> int: ...


class Survey(NamedTuple):
    """What is known of a corpus before the first epoch."""

    tally: Tally
    is_complete: bool  # whether the tally counts all kept pairs
    whole: PairRows | None  # the corpus, if it is one chunk


class Chunks:
    """The kept pairs of a corpus, in its order, at most `size` of them at a time.

    Args:
        corpus: where the pairs come from; each full pass leaves its report there.
        blocks: the ids of all pairs, as `blocks_of` gives them.
        sides: 2 for pairs, 1 for lines, whose sources are empty rows.
        limits: the most ids of a source and a target, EOS counted; 0 for no source.
        size: the most pairs of a chunk.
    """

    def __init__(
        self, corpus: Corpus, blocks: tf.data.Dataset, sides: int, limits: tuple[int, int], size: int
    ):
        self.sides = sides
        self.limits = limits
        self._corpus, self._blocks, self._size = corpus, blocks, integer("shuffle_buffer", size)

    def read(self) -> Iterator[tuple[PairRows, bool]]:
        """Read the corpus once: the chunks, and with each whether it is the last.

        All chunks but the last are full, so that they do not depend on the blocks.

        Raises:
            ValueError: if no pair was kept, or the corpus has another number of pairs than before.
        """
        parts: list[PairRows] = []
        held = pairs = blank = too_long = 0
        for block in self._blocks:
            *ids, count, blanks = (part.numpy() for part in block)
            kept = PairRows(Rows.from_lengths(*ids[:2]), Rows.from_lengths(*ids[2:]))
            kept = self._short_enough(kept)
            pairs, blank, too_long = pairs + count, blank + blanks, too_long + count - blanks - len(kept)
            parts.append(kept)
            held += len(kept)
            while held > self._size:
                rows = PairRows.join(parts)
                yield rows.take(np.arange(self._size)), False
                parts = [rows.take(np.arange(self._size, held))]
                held -= self._size
        self._finish(Report(int(pairs), int(blank), int(too_long), *self.limits, self._corpus.unit))
        yield PairRows.join(parts), True

    def survey(self, complete: bool) -> Survey:
        """Read the corpus, or its first chunk only, and count the lengths."""
        chunks = self.read()
        first, is_whole = next(chunks)
        tally = first.tally()
        if complete:
            for chunk, _ in chunks:
                tally += chunk.tally()
        return Survey(tally, complete or is_whole, first if is_whole else None)

    def _short_enough(self, pairs: PairRows) -> PairRows:
        sources, targets = pairs.lengths
        fits = (sources <= self.limits[0]) & (targets <= self.limits[1])
        return pairs if fits.all() else pairs.take(np.flatnonzero(fits))

    def _finish(self, report: Report) -> None:
        if report.pairs != len(self._corpus):
            raise ValueError(f"The corpus had {len(self._corpus)} {report.unit} and now has {report.pairs}.")
        if not report.kept:
            raise ValueError(f"No {report.unit[:-1]} is left to make a batch of: {report}.")
        if report != self._corpus.report:
            _LOGGER.log(logging.WARNING if report.dropped else logging.INFO, "%s", report)
        self._corpus.report = report


def blocks_of(
    read: Callable[[], Iterable[Strings]], tokenizers: Sequence[Tokenizer], buffer: int
) -> tf.data.Dataset:
    """Tokenize a corpus in the graph, block by block.

    A block is: the ids of all sources one after the other, the lengths of the sources, the same of the
    targets, the number of pairs, the number of blank ones, which are left out.

    Args:
        read: gives the pairs, or single strings in tuples.
        tokenizers: of the source and of the target, or of the strings.
        buffer: how many pairs to make ready in the background.
    """
    size, sides = min(BLOCK, buffer), len(tokenizers)

    def blocks() -> Iterator[tuple[Any, ...]]:
        for block in in_blocks(read(), size):
            kept = filled(block)
            yield *string_tensors(kept, sides), len(block), len(block) - len(kept)

    @tf.autograph.experimental.do_not_convert
    def encode(*block: Any) -> tuple[Any, ...]:
        return *encode_block(tokenizers, block[:sides]), *block[sides:]

    lines, count = tf.TensorSpec([None], tf.string), tf.TensorSpec([], tf.int64)
    dataset = tf.data.Dataset.from_generator(blocks, output_signature=(*[lines] * sides, count, count))
    dataset = dataset.map(encode, num_parallel_calls=2, deterministic=True)
    return plain(dataset.prefetch(buffer // size))


def encode_block(tokenizers: Sequence[Tokenizer], texts: Sequence[Any]) -> tuple[Any, ...]:
    """Give the ids of the sources, their lengths, the ids of the targets and their lengths, in a graph."""
    rows = [target_rows(tokenizers[-1], texts[-1])]
    rows.insert(0, source_rows(tokenizers[0], texts[0]) if len(tokenizers) == 2 else rows[0][:, :0])
    return tuple(part for side in rows for part in (side.values, side.row_lengths()))


def filled(block: Sequence[Strings]) -> list[Strings]:
    """Give the pairs of which no side is blank."""
    return [pair for pair in block if all(side.strip() for side in pair)]


def plain(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Switch tf.data's autotuning off: it can hold up a step for seconds after an iterator was dropped."""
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)
