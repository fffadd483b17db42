"""A corpus as ids, in chunks that fit into memory: tokenized in the graph, blanks and long pairs dropped."""

import logging
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf

from keras_seq2seq.data.blocks import BLOCK, Strings, in_blocks, string_tensors
from keras_seq2seq.data.buckets import check_count
from keras_seq2seq.data.encoding import source_rows, target_rows
from keras_seq2seq.data.report import Report
from keras_seq2seq.data.rows import PairRows, Rows, Tally
from keras_seq2seq.text import Tokenizer

_LOGGER = logging.getLogger(__name__)


class Corpus(Protocol):
    """Pairs, or lines, that can be read again and again, and know how many they are."""

    unit: str  # "pairs" or "lines"
    report: Report | None

    def __len__(self) -> int: ...

    def pairs(self) -> Iterable[Strings]:
        """Iterate over all pairs; a line is a tuple of one string."""


class Survey(NamedTuple):
    """What is known of a corpus before the first epoch."""

    tally: Tally
    is_complete: bool  # whether the tally counts all kept pairs
    whole: PairRows | None  # the corpus, if it is one chunk


class Chunks:
    """The kept pairs of a corpus, in its order, at most `size` of them at a time.

    Args:
        corpus: where the pairs come from; each full pass leaves its report there.
        tokenizers: of the source and of the target; only the latter if the corpus is of lines, whose
            sources are empty rows.
        limits: the most ids of a source and a target, EOS counted; 0 for no source.
        size: the most pairs of a chunk.
    """

    def __init__(self, corpus: Corpus, tokenizers: tuple[Tokenizer, ...], limits: tuple[int, int], size: int):
        self.sides = len(tokenizers)
        for name, value in (("max_length", min(limits[-self.sides :])), ("shuffle_buffer", size)):
            check_count(name, value)
        self.limits = limits
        self._corpus, self._size = corpus, size
        self._blocks = self._tokenized(tokenizers)

    def read(self) -> Iterator[tuple[PairRows, bool]]:
        """Read the corpus once: the chunks, and with each whether it is the last.

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
            if held + len(kept) > self._size:
                yield PairRows.join(parts), False
                parts, held = [], 0
            parts.append(kept)
            held += len(kept)
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

    def _tokenized(self, tokenizers: tuple[Tokenizer, ...]) -> tf.data.Dataset:
        """Blocks: flat sources, their lengths, flat targets, their lengths, count of pairs, of blank ones."""
        size = min(BLOCK, self._size)

        def read() -> Iterator[tuple[Any, ...]]:
            for block in in_blocks(self._corpus.pairs(), size):
                filled = [pair for pair in block if all(side.strip() for side in pair)]
                yield *string_tensors(filled, self.sides), len(block), len(block) - len(filled)

        @tf.autograph.experimental.do_not_convert
        def encode(*block: Any) -> tuple[Any, ...]:
            texts, counts = block[: self.sides], block[self.sides :]
            rows = [target_rows(tokenizers[-1], texts[-1])]
            rows.insert(0, source_rows(tokenizers[0], texts[0]) if self.sides == 2 else rows[0][:, :0])
            return *(part for side in rows for part in (side.values, side.row_lengths())), *counts

        lines, count = tf.TensorSpec([None], tf.string), tf.TensorSpec([], tf.int64)
        blocks = tf.data.Dataset.from_generator(read, output_signature=(*[lines] * self.sides, count, count))
        blocks = blocks.map(encode, num_parallel_calls=2, deterministic=True)
        return plain(blocks.prefetch(self._size // size))


def plain(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Switch tf.data's autotuning off: it can hold up a step for seconds after an iterator was dropped."""
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)
