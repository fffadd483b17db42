"""Batches by number of tokens: bucket, shuffle, pad, shift, weight."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from keras_seq2seq.data.buckets import Bucket, BucketRule, batch_count, has_room, numbers_of
from keras_seq2seq.data.chunks import Chunks, plain
from keras_seq2seq.data.resampling import Resampler
from keras_seq2seq.data.rows import Ints, PairRows
from keras_seq2seq.text import BOS_ID, EOS_ID
from keras_seq2seq.text.integers import integer

_READY = 4  # batches made in the background

Batch = tuple[dict[str, Any], Any, Any]
Group = tuple[Bucket, Ints]  # the pairs of one batch, by number


class TokenBatches:
    """The epochs of a corpus; `ParallelText.batches` and `Text.batches` say what comes out.

    The pairs of a chunk are shuffled and dealt out to the buckets, the full batches are shuffled and
    emitted, and what is left over goes into the next chunk.

    Args:
        chunks: the pairs; they are kept in memory if they are one chunk only.
        rule: which buckets to use.
        fixed_shapes: fill up what is left over with empty rows.
        shuffle: False keeps the order of the corpus.
        seed: of the order; None differs every time.
        count: read all the corpus before the first epoch, so that the number of batches is known.
        reproducible: whether the chunks are the same in every epoch and process.
        resampler: cuts the text of each batch into other pieces.
    """

    def __init__(
        self,
        chunks: Chunks,
        rule: BucketRule,
        *,
        fixed_shapes: bool,
        shuffle: bool,
        seed: int | None,
        count: bool,
        reproducible: bool = True,
        resampler: Resampler | None = None,
    ):
        seed = None if seed is None else integer("seed", seed, 0)
        self.seed = seed if reproducible else None
        self._chunks, self._fixed_shapes, self._shuffle = chunks, fixed_shapes, shuffle
        self._entropy = np.random.SeedSequence(seed).entropy
        self._resampler = resampler
        survey = chunks.survey(count)
        tally = survey.tally if resampler is None else resampler.tally(survey.tally)
        self._whole = survey.whole
        self._buckets = rule.buckets(tally, survey.is_complete)
        self.count = batch_count(tally, self._buckets) if survey.is_complete else None

    def dataset(self, read: Callable[[], Iterator[Batch]]) -> tf.data.Dataset:
        """Make a dataset of the batches of an epoch."""
        ids, weights = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None, None], tf.float32)
        names = ("source", "target")[-self._chunks.sides :]
        signature = (dict.fromkeys(names, ids), ids, weights)
        dataset = tf.data.Dataset.from_generator(read, output_signature=signature)
        return plain(dataset.prefetch(_READY))

    def epoch(self, number: int, first: int) -> Iterator[Batch]:
        """Give epoch `number` (from 0) from batch `first` (from 0) on."""
        seed = np.random.SeedSequence(self._entropy, spawn_key=(number,))
        rng = np.random.default_rng(seed)
        held, passed = PairRows.join([]), 0
        for chunk, last in self._chunks.read() if self._whole is None else [(self._whole, True)]:
            pairs = PairRows.join([held, chunk])
            groups, rest = self._deal(pairs, last, rng)
            skipped = min(max(0, first - passed), len(groups))
            passed += skipped
            for bucket, index in groups[skipped:]:
                yield self._batch(pairs, bucket, index, (number, passed))
                passed += 1
            held = pairs.take(rest)
        if first > passed:
            raise ValueError(f"batch must be at most the {passed} batches of an epoch, got {first}.")

    def _deal(self, pairs: PairRows, last: bool, rng: np.random.Generator) -> tuple[list[Group], Ints]:
        """Make batches of the pairs; give them, and the numbers of the pairs that fill none yet.

        The last time all pairs go into batches: what is left over of a bucket joins what is left
        over of the next if that has room, and makes a batch of its own otherwise.
        """
        order = rng.permutation(len(pairs)) if self._shuffle else np.arange(len(pairs))
        lengths = pairs.lengths if self._resampler is None else self._resampler.room(pairs.lengths)
        numbers = numbers_of(*lengths, self._buckets)[order]
        members = np.bincount(numbers, minlength=len(self._buckets))
        groups: list[Group] = []
        rest = [np.zeros([0], np.int64)]
        carried = rest[0]
        for number, bucket in enumerate(self._buckets):
            own = np.concatenate([order[numbers == number], carried])
            full = len(own) - len(own) % bucket.rows
            groups += [(bucket, own[at : at + bucket.rows]) for at in range(0, full, bucket.rows)]
            left, carried = own[full:], rest[0]
            if not last:
                rest.append(left)
            elif has_room(self._buckets, members, number + 1, len(left)):
                carried = left
            elif len(left):
                groups.append((bucket, left))
        if self._shuffle:
            groups = [groups[at] for at in rng.permutation(len(groups))]
        else:
            groups.sort(key=lambda group: group[1][0])
        return groups, np.concatenate(rest)

    def _batch(self, pairs: PairRows, bucket: Bucket, index: Ints, place: tuple[int, int]) -> Batch:
        if self._resampler is not None:
            seed = np.random.SeedSequence(self._entropy, spawn_key=place).generate_state(1)[0]
            pairs = self._resampler.draw(pairs.take(index), bucket, int(seed) % 2**29)
            index = np.arange(len(pairs))
        inputs = {"target": pairs.target.padded(index, bucket.target, without_last=1)}  # [B, T]
        if self._chunks.sides == 2:
            inputs["source"] = pairs.source.padded(index, bucket.source)  # [B, S]
        labels = pairs.target.padded(index, bucket.target, without_first=1)  # [B, T]
        real = np.arange(bucket.target) < pairs.lengths[1][index][:, np.newaxis]
        weights = real.astype(np.float32) / np.float32(real.sum())
        if self._fixed_shapes:
            empty = [(0, bucket.rows - len(index)), (0, 0)]
            inputs = {name: np.pad(rows, empty) for name, rows in inputs.items()}
            labels, weights = np.pad(labels, empty), np.pad(weights, empty)
            for name, rows in inputs.items():
                rows[len(index) :, 0] = EOS_ID if name == "source" else BOS_ID
        return inputs, labels, weights
