"""How large batches are: by tokens or by sentences, few shapes, what is left over."""

import itertools
from typing import Any

import numpy as np
import pytest
from letter_pairs import Letters, arrays, batches, pairs_of, some_pairs

from keras_seq2seq.data import ParallelText
from keras_seq2seq.data.chunks import blocks_of
from keras_seq2seq.data.making import make_batches


def test_shapes_are_few_and_fixed_ones_stay():
    pairs = some_pairs(2000, longest=60)
    dataset = batches(pairs, tokens_per_batch=1024, max_length=64, fixed_shapes=True)
    shapes = {(source.shape, target.shape) for _ in range(2) for source, target, *_ in arrays(dataset)}
    assert 2 <= len(shapes) <= 6
    for (rows, source), (_, target) in shapes:
        assert source % 8 == target % 8 == 0
        assert rows == 1024 // max(source, target) // 8 * 8
    one = batches(pairs, tokens_per_batch=1024, max_buckets=1, fixed_shapes=True)
    assert {source.shape for source, *_ in arrays(one)} == {(16, 64)}
    odd = batches(pairs, tokens_per_batch=1024, max_length=61, width_multiple=4)
    assert max(source.shape[1] for source, *_ in arrays(odd)) <= 61
    given = batches(pairs, tokens_per_batch=1024, buckets=[16, (32, 24), (64, 64)])
    assert {source.shape[1] for source, *_ in arrays(given)} <= {16, 32, 64}


@pytest.mark.parametrize("fixed_shapes", [False, True])
@pytest.mark.parametrize("options", [{}, {"shuffle_buffer": 50}, {"buckets": [16, 32]}, {"max_buckets": 1}])
def test_batches_by_number_of_sentences(options, fixed_shapes):
    pairs = some_pairs(203)
    options |= {"tokens_per_batch": None, "sentences_per_batch": 12, "fixed_shapes": fixed_shapes}
    dataset = batches(pairs, **options)
    epoch = arrays(dataset)
    assert sorted(pairs_of(epoch)) == sorted(pairs)
    assert dataset.cardinality() == len(epoch)
    rows = [len(source) for source, *_ in epoch]
    assert max(rows) == 12
    assert sum(row < 12 for row in rows) <= (0 if fixed_shapes else 6)  # what is left over of each width
    assert fixed_shapes or sum(rows) == 203
    if options.get("max_buckets") == 1:
        assert len(epoch) == 17


def test_batches_by_number_of_sentences_within_a_number_of_tokens():
    for source, target, *_ in arrays(batches(some_pairs(203), sentences_per_batch=12, fixed_shapes=True)):
        assert source.shape[0] * max(source.shape[1], target.shape[1]) <= 256
        assert source.shape[0] <= 12
    (batch,) = arrays(batches(some_pairs(5), tokens_per_batch=None, sentences_per_batch=10**9))
    assert len(batch[0]) == 5
    one = batches(some_pairs(5), tokens_per_batch=None, sentences_per_batch=1)
    assert [len(source) for source, *_ in arrays(one)] == [1] * 5


def test_chunks_do_not_depend_on_the_blocks_that_are_read():
    pairs = [*some_pairs(150), *[("", "blank")] * 50, *some_pairs(400)[150:]]
    options: dict[str, Any] = {"shuffle_buffer": 70, "tokens_per_batch": 256, "seed": 7}
    expected = arrays(batches(pairs, **options))
    corpus = ParallelText.from_pairs(pairs)
    for size in (1, 7, 70, 1024):
        blocks = blocks_of(lambda: corpus.pairs(), [Letters(), Letters()], size)
        for one, other in zip(arrays(make_batches(corpus, blocks, **options)), expected, strict=True):
            for mine, theirs in zip(one, other, strict=True):
                np.testing.assert_array_equal(mine, theirs)


def test_short_and_long_batches_are_mixed():
    widths = [source.shape[1] for source, *_ in arrays(batches(some_pairs(2000, 60), fixed_shapes=True))]
    changes = sum(one != other for one, other in itertools.pairwise(widths))
    assert changes > len(widths) / 3


def test_leftovers_share_a_batch_where_they_fit():
    pairs = [("a" * 5, "b" * 5)] * 3 + [("a" * 12, "b" * 12)] * 5
    dataset = batches(pairs, buckets=[8, 16], fixed_shapes=True)
    (batch,) = arrays(dataset)
    assert batch[0].shape == (16, 16)
    assert sorted(pairs_of([batch])) == sorted(pairs)
    assert len(arrays(batches(pairs, buckets=[8, 16], tokens_per_batch=112))) == 2  # 7 rows: no room


def test_the_batches_are_as_many_as_said():
    rng = np.random.default_rng(5)
    for trial in range(5):
        pairs = [("a" * s, "b" * t) for s, t in rng.integers(1, 40, [int(rng.integers(1, 120)), 2])]
        dataset = batches(pairs, tokens_per_batch=int(rng.integers(41, 300)), buckets=[10, (10, 20), 30, 41])
        assert dataset.cardinality() == len(arrays(dataset)), trial


def test_a_batch_for_many_more_pairs_than_there_are_is_not_filled_up():
    pairs = [("a" * 5, "b" * 5)] * 11
    (batch,) = arrays(batches(pairs, tokens_per_batch=10**9, fixed_shapes=True))
    assert batch[1].shape == (16, 8)
    (batch,) = arrays(batches(pairs, tokens_per_batch=10**30))
    assert batch[1].shape == (11, 8)
