"""Parallel text: pairs of lines in files, read as a stream."""

import hashlib
import itertools
import os
import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import tensorflow as tf

from keras_seq2seq.data.blocks import BLOCK, in_blocks, string_tensors
from keras_seq2seq.data.chunks import blocks_of
from keras_seq2seq.data.cleaning import Cleaning, Rule, masked, select
from keras_seq2seq.data.epochs import Batches
from keras_seq2seq.data.lines import Path, Paths, count_lines, expand, read_lines
from keras_seq2seq.data.making import check_tokenizers, make_batches
from keras_seq2seq.data.report import Report
from keras_seq2seq.text import SubwordSampling, Tokenizer
from keras_seq2seq.text.integers import integer

Pairs = Iterator[tuple[str, str]]


class Part(NamedTuple):
    """Pairs that can be read again and again, such as those of one file, and their number."""

    size: int
    read: Callable[[], Pairs]


class ParallelText:
    """Pairs of a source and a target line, read from files whenever they are needed.

    The files are read through once at the start, to count and check their lines, and never kept in
    memory. The module `lines` says what a line is. `len(text)` is the number of pairs, blank ones among them.

    Args:
        source: path of the source side, a pattern such as "news.*.en.gz", or a list of them, which
            are read one after the other; gzip if a name ends in .gz. What a pattern finds is sorted.
        target: the same for the target side; line n belongs to line n of the source.

    Raises:
        FileNotFoundError: if a file is missing, or a pattern finds none.
        ValueError: if two files differ in their number of lines, a gzip file is damaged, or there
            are no lines at all.

    Example:
        >>> text, letters = ks.data.ParallelText("train.en", "train.de"), ks.text.Bytes()
        >>> batches = text.batches(letters, tokens_per_batch=128, shuffle=False)
        >>> inputs, labels, weights = next(iter(batches))
        >>> inputs["source"].shape[0] == labels.shape[0], round(float(np.sum(weights)), 3)
        (True, 1.0)
    """

    unit = "pairs"

    def __init__(self, source: Paths, target: Paths):
        sources, targets = expand(source), expand(target)
        if len(sources) != len(targets):
            raise ValueError(
                f"source names {len(sources)} files and target {len(targets)}, expected as many."
            )
        files = list(zip(sources, targets, strict=True))
        self._use([Part(_aligned_count(*pair), partial(_zipped, *pair)) for pair in files], sources)

    @classmethod
    def from_tsv(cls, path: Paths, columns: tuple[int, int] = (0, 1)) -> Self:
        """Read pairs from two columns (counted from 0) of a file with tabs, or of a list of such files.

        Raises:
            FileNotFoundError: if a file is missing.
            ValueError: if a line has too few columns, a gzip file is damaged, or there are no lines.
        """
        if not isinstance(columns, (tuple, list)) or len(columns) != 2:
            raise ValueError(f"columns must be two numbers, got {columns!r}.")
        if not all(isinstance(column, int) and column >= 0 for column in columns):
            raise ValueError(f"columns must be numbers from 0, got {columns!r}.")
        paths = expand(path)
        reads = [partial(_rows, name, columns) for name in paths]
        return cls._of([Part(sum(1 for _ in read()), read) for read in reads], paths)

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, str]]) -> Self:
        """Take pairs from Python, such as a list of tuples; it must be possible to iterate more than once."""
        if not isinstance(pairs, Iterable):
            raise ValueError(f"pairs must be an iterable of pairs of strings, got {pairs!r}.")
        if iter(pairs) is pairs:
            raise ValueError("pairs can be read only once, expected a list or the like, not an iterator.")
        count = 0
        for pair in pairs:
            strings = isinstance(pair, (tuple, list)) and all(isinstance(side, str) for side in pair)
            if not strings or len(pair) != 2:
                raise ValueError(f"pairs must hold pairs of strings, got {pair!r}.")
            count += 1
        return cls._of([Part(count, lambda: ((source, target) for source, target in pairs))], ["pairs"])

    @classmethod
    def from_dataset(cls, dataset: tf.data.Dataset) -> Self:
        """Take pairs from a `tf.data.Dataset` of two scalar strings, the same at every iteration.

        Invalid UTF-8 becomes U+FFFD. If the cardinality is not known, the dataset is read here to count.

        Raises:
            ValueError: if the elements are no such pairs, or there are none, or infinitely many.
        """
        if not isinstance(dataset, tf.data.Dataset):
            raise ValueError(f"dataset must be a tf.data.Dataset, got {reprlib.repr(dataset)}.")
        spec = dataset.element_spec
        if not isinstance(spec, tuple) or len(spec) != 2 or not all(map(_may_be_string, spec)):
            raise ValueError(f"dataset must hold pairs of scalar strings, got {spec}.")
        dataset = dataset.map(lambda *pair: tuple(tf.ensure_shape(side, []) for side in pair))
        count = int(dataset.cardinality())
        if count == tf.data.INFINITE_CARDINALITY:
            raise ValueError("dataset must come to an end, got one of infinite cardinality.")
        if count == tf.data.UNKNOWN_CARDINALITY:
            count = int(dataset.reduce(np.int64(0), lambda total, _: total + 1))
        return cls._of([Part(count, partial(_elements, dataset))], ["dataset"])

    @classmethod
    def _of(cls, parts: Sequence[Part], names: Sequence[Path]) -> Self:
        text = cls.__new__(cls)
        text._use(parts, names)
        return text

    def _use(self, parts: Sequence[Part], names: Sequence[Path]) -> None:
        self._parts = tuple(part for part in parts if part.size)
        self._count = sum(part.size for part in parts)
        if not self._count:
            raise ValueError(f"There is not one line in {', '.join(map(str, names))}.")
        self._names = names
        self.report: Report | None = None
        self.cleaning: Cleaning | None = None

    def clean(
        self,
        *,
        min_length: int = 1,
        max_length: int | None = None,
        max_ratio: float | None = None,
        identical: bool = False,
        duplicates: bool = False,
        keep: Callable[[str, str], bool] | None = None,
    ) -> Self:
        """Give the pairs that are good to train on, and to learn a vocabulary from.

        The corpus is read through once, here. What was dropped, and why, is in the log and in
        `cleaning` of what is returned. Lengths are in characters, because they are judged before
        there is a tokenizer; `batches` has limits in tokens. Only this method drops such pairs: texts
        to translate or to evaluate with are never cleaned.

        Args:
            min_length: the fewest characters of either side.
            max_length: the most characters of either side.
            max_ratio: how many times as long as the other a side may be.
            identical: whether to keep pairs of which both sides are the same.
            duplicates: whether to keep pairs that came before, to the letter. They are found by
                64-bit hashes, which take 9 bytes of memory a pair.
            keep: a predicate `(source, target) -> bool` of your own, called once for each pair.

        Raises:
            ValueError: if an argument is out of range, or no pair is left.
        """
        rule = Rule(min_length, max_length, max_ratio, identical, duplicates, keep)
        kept, cleaning = select(self.pairs(), len(self), rule)
        parts, place = [], 0
        for part in self._parts:
            mask = kept[place : place + part.size]
            parts.append(Part(int(mask.sum()), partial(_masked, part.read, mask)))
            place += part.size
        text = self._of(parts, self._names)
        text.cleaning = cleaning
        return text

    def shard(self, count: int, index: int, *, by: str = "line") -> Self:
        """Give one of `count` shares of the pairs, to prepare them in several processes, say.

        Replicas and workers that train one model all read the whole text, not shares of it: each takes
        its own rows of the same global batches.

        Args:
            count: number of shares.
            index: which of them, from 0.
            by: "line" deals the pairs out one by one, "file" whole files, which are read by one share only.

        Raises:
            ValueError: if an argument is out of range, or the share would be empty.
        """
        integer("count", count)
        if not isinstance(index, (int, np.integer)) or isinstance(index, bool) or index not in range(count):
            raise ValueError(f"index must be an integer from 0 to {count - 1}, got {index!r}.")
        if by not in ("line", "file"):
            raise ValueError(f"by must be 'line' or 'file', got {by!r}.")
        if by == "file":
            parts = list(self._parts[index::count])
        else:
            left = len(range(index, len(self), count))
            parts = [Part(left, lambda: itertools.islice(self.pairs(), index, None, count))]
        if not sum(part.size for part in parts):
            raise ValueError(f"count must leave no share empty, got {count} shares by {by}.")
        return self._of(parts, self._names)

    def __len__(self) -> int:
        return self._count

    def pairs(self) -> Pairs:
        """Iterate over all pairs, blank ones among them."""
        return itertools.chain.from_iterable(part.read() for part in self._parts)

    def fingerprint(self) -> str:
        """Give a hash of all pairs in their order; the text is read through once for it."""
        digest = hashlib.blake2b(digest_size=16)
        for pair in self.pairs():
            digest.update(self.entry(pair))
        return digest.hexdigest()

    @staticmethod
    def entry(pair: tuple[str, ...]) -> bytes:
        """Give the bytes that stand for a pair in the fingerprint."""
        sides = [side.encode("utf-8", "surrogatepass") for side in pair]
        return b"".join(b"%d " % len(side) + side for side in sides)

    def sources(self) -> Iterator[str]:
        """Iterate over the source lines, to learn a vocabulary from, say."""
        return (source for source, _ in self.pairs())

    def targets(self) -> Iterator[str]:
        """Iterate over the target lines."""
        return (target for _, target in self.pairs())

    def dataset(self) -> tf.data.Dataset:
        """Give all pairs, blank ones among them, as a `tf.data.Dataset` of two scalar strings."""

        def blocks() -> Iterator[tuple[Any, Any]]:
            return map(string_tensors, in_blocks(self.pairs()))

        lines = tf.TensorSpec([None], tf.string)
        dataset = tf.data.Dataset.from_generator(blocks, output_signature=(lines, lines))
        return dataset.unbatch().apply(tf.data.experimental.assert_cardinality(self._count))

    def batches(
        self,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer | None = None,
        *,
        tokens_per_batch: int | None = None,
        sentences_per_batch: int | None = None,
        max_length: int | None = None,
        max_source_length: int | None = None,
        max_target_length: int | None = None,
        buckets: Sequence[int | tuple[int, int]] | None = None,
        max_buckets: int = 6,
        width_multiple: int = 8,
        fixed_shapes: bool = False,
        shuffle: bool = True,
        shuffle_buffer: int = 100_000,
        seed: int | None = None,
        count: bool = True,
        sampling: SubwordSampling | None = None,
    ) -> Batches:
        """Give the pairs as batches of ids for `fit` and `evaluate`; one iteration is one epoch.

        A batch is `({"source": int32 [B,S], "target": int32 [B,T]}, labels int32 [B,T],
        weights float32 [B,T])`, padded with id 0. Sources are tokens and EOS, targets BOS and tokens,
        labels tokens and EOS. Weights are 0 on pads and sum to 1 over the batch.

        Pairs with a blank side, and those that are too long, are dropped, counted in the log and in
        `text.report`. Each other pair is in exactly one batch of an epoch. The widths (S, T) are few;
        without `buckets` they are chosen so as to waste little.

        The order depends on the seed and the number of the epoch alone, which counts the iterations
        that were begun; `Batches` says how a run goes on in the middle of one. Pairs are shuffled
        within `shuffle_buffer` of them, and so are the batches made of them. That many pairs are in
        memory as ids, and as many again are made ready in the background. A corpus that fits is
        tokenized once, here; a larger one in every epoch.

        Args:
            source_tokenizer: tokenizer of the source side.
            target_tokenizer: tokenizer of the target side; by default that of the source side.
            tokens_per_batch: rows times the wider of S and T is at most this.
            sentences_per_batch: the rows of a full batch; with `tokens_per_batch`, its most rows.
            max_length: the most ids of a kept source or target, the EOS among them; by default the
                last of `buckets`, or 128, or `tokens_per_batch` if that is less.
            max_source_length: the limit of the source side where it differs from `max_length`.
            max_target_length: the limit of the target side where it differs from `max_length`.
            buckets: the widths S = T, or (S, T), each at least the one before, up to the limits.
            max_buckets: the most widths to choose.
            width_multiple: chosen widths are multiples of this, except at the limits.
            fixed_shapes: make every batch of a bucket the same shape, for XLA. What is left over at
                the end of an epoch is filled up with empty rows: EOS alone as the source, so that
                attention has something to look at, BOS alone as the target, and weights 0.
            shuffle: False keeps the order of the corpus within a bucket, for validation.
            shuffle_buffer: how many pairs to shuffle among.
            seed: the same seed gives the same batches in any process; None differs every time.
            count: read a larger corpus here too, so that the number of batches and the report are
                known before the first epoch. False starts sooner, leaves the cardinality unknown
                (of which Keras warns once) and chooses widths by the first `shuffle_buffer` pairs.
            sampling: draw the pieces of a `SentencePiece` anew in every epoch, for training only. The pairs
                of a batch do not depend on it; a side that is drawn too long for its batch keeps its
                usual pieces.

        Raises:
            ValueError: if an argument is out of range or no pair is kept.
        """
        shuffle_buffer = integer("shuffle_buffer", shuffle_buffer)
        tokenizers = source_tokenizer, target_tokenizer or source_tokenizer
        check_tokenizers(source_tokenizer=tokenizers[0], target_tokenizer=tokenizers[1])
        return make_batches(
            self,
            blocks_of(self.pairs, tokenizers, shuffle_buffer),
            tokens_per_batch=tokens_per_batch,
            sentences_per_batch=sentences_per_batch,
            max_length=max_length,
            max_source_length=max_source_length,
            max_target_length=max_target_length,
            buckets=buckets,
            max_buckets=max_buckets,
            width_multiple=width_multiple,
            fixed_shapes=fixed_shapes,
            shuffle=shuffle,
            shuffle_buffer=shuffle_buffer,
            seed=seed,
            count=count,
            sampling=sampling,
            tokenizers=tokenizers,
        )


def _aligned_count(source: Path, target: Path) -> int:
    counts = count_lines(source), count_lines(target)
    if counts[0] != counts[1]:
        raise ValueError(
            f"{os.fspath(source)!r} has {counts[0]} lines and {os.fspath(target)!r} has {counts[1]}, "
            "expected as many in both."
        )
    return counts[0]


def _zipped(source: Path, target: Path) -> Pairs:
    for pair in itertools.zip_longest(read_lines(source), read_lines(target)):
        if None in pair:
            raise ValueError(
                f"{os.fspath(source)!r} and {os.fspath(target)!r} no longer have the same number of lines."
            )
        yield pair


def _rows(path: Path, columns: tuple[int, int]) -> Pairs:
    for number, line in enumerate(read_lines(path), start=1):
        cells = line.split("\t")
        if len(cells) > max(columns):
            yield cells[columns[0]], cells[columns[1]]
        elif line.strip():
            raise ValueError(
                f"{os.fspath(path)!r} has {len(cells)} columns in line {number}, "
                f"expected at least {max(columns) + 1}."
            )
        else:
            yield "", ""


def _may_be_string(spec: Any) -> bool:
    return isinstance(spec, tf.TensorSpec) and spec.dtype == tf.string and spec.shape.is_compatible_with([])


def _elements(dataset: tf.data.Dataset) -> Pairs:
    for sources, targets in dataset.batch(BLOCK).as_numpy_iterator():
        for source, target in zip(sources, targets, strict=True):
            yield source.decode("utf-8", "replace"), target.decode("utf-8", "replace")


def _masked(read: Callable[[], Pairs], kept: Any) -> Pairs:
    return masked(read(), kept)
