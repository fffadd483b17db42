"""Batches: what is in them, each pair once an epoch, order, shapes, reports."""

import hashlib
import logging
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from letter_pairs import Letters, arrays, batches, pairs_of, some_pairs

from keras_seq2seq.data import ParallelText, encode_sources
from keras_seq2seq.text import BOS_ID, EOS_ID, SentencePiece


def test_a_batch_in_full():
    (batch,) = batches([("ab", "c"), ("", "gone"), ("x", "yz")], shuffle=False, buckets=[4])
    inputs, labels, weights = batch
    a, b, c, x, y, z = (ord(letter) + 4 for letter in "abcxyz")
    assert inputs["source"].numpy().tolist() == [[a, b, 3, 0], [x, 3, 0, 0]]
    assert inputs["target"].numpy().tolist() == [[2, c, 0, 0], [2, y, z, 0]]
    assert labels.numpy().tolist() == [[c, 3, 0, 0], [y, z, 3, 0]]
    np.testing.assert_allclose(weights, np.array([[1, 1, 0, 0], [1, 1, 1, 0]]) / 5, rtol=1e-6)
    assert [tensor.dtype for tensor in (inputs["source"], inputs["target"], labels, weights)] == [
        tf.int32,
        tf.int32,
        tf.int32,
        tf.float32,
    ]


@pytest.mark.parametrize("fixed_shapes", [False, True])
@pytest.mark.parametrize("shuffle_buffer", [50, 100_000])
@pytest.mark.parametrize("shuffle", [False, True])
def test_every_pair_is_in_one_batch_of_an_epoch(shuffle, shuffle_buffer, fixed_shapes):
    pairs = some_pairs(203)
    dataset = batches(pairs, shuffle=shuffle, shuffle_buffer=shuffle_buffer, fixed_shapes=fixed_shapes)
    orders = []
    for _ in range(3):
        epoch = arrays(dataset)
        found = pairs_of(epoch)
        assert len(found) == 203
        assert sorted(found) == sorted(pairs)
        assert all(weights.any() for *_, weights in epoch)
        orders.append(found)
        assert dataset.cardinality() == len(epoch)
    assert (orders[0] != orders[1] != orders[2]) == shuffle


@pytest.mark.parametrize("fixed_shapes", [False, True])
def test_targets_labels_and_weights_fit_together(fixed_shapes):
    for source, target, labels, weights in arrays(batches(some_pairs(203), fixed_shapes=fixed_shapes)):
        assert source.shape[0] * max(source.shape[1], target.shape[1]) <= 256
        assert target.shape == labels.shape == weights.shape
        real = labels > 0
        np.testing.assert_array_equal(weights > 0, real)
        np.testing.assert_allclose(weights.sum(dtype=np.float64), 1, rtol=1e-6)
        np.testing.assert_allclose(weights[real], 1 / real.sum(), rtol=1e-6)
        assert (target[:, 0] == BOS_ID).all()
        filled = real.any(axis=1)
        for row in np.flatnonzero(filled):
            length = real[row].sum()
            assert labels[row, length - 1] == EOS_ID
            np.testing.assert_array_equal(target[row, 1:length], labels[row, : length - 1])
            assert not target[row, length:].any()
            size = np.count_nonzero(source[row])
            assert source[row, size - 1] == EOS_ID
            assert not (source[row] == BOS_ID).any()
        empty = np.zeros_like(source[0])
        empty[0] = EOS_ID
        assert (source[~filled] == empty).all()
        assert not target[~filled, 1:].any()
        assert fixed_shapes or filled.all()


def test_sources_are_what_serving_encodes():
    pairs = some_pairs(60)
    for source, *_, weights in arrays(batches(pairs, shuffle=False)):
        texts = [text for text, _ in pairs_of([(source, source, source, weights)])]
        served = encode_sources(Letters(), texts).numpy()
        np.testing.assert_array_equal(source[:, : served.shape[1]], served)
        assert not source[:, served.shape[1] :].any()


def test_pairs_are_dropped_for_a_reason_and_counted(caplog):
    pairs = [("a" * 10, "b" * 10)] * 163 + [("a" * 50, "b")] * 20 + [("a", "b" * 50)] * 10
    pairs += [("", "b")] * 3 + [("a", " \u2028\t")] * 4
    text = ParallelText.from_pairs(pairs)
    with caplog.at_level(logging.WARNING):
        dataset = text.batches(Letters(), tokens_per_batch=512, max_length=50)
    line = "37 of 200 pairs dropped: 30 longer than 50 tokens, 7 blank"
    assert caplog.messages == [line]
    report = text.report
    assert report is not None
    assert str(report) == line
    assert (report.pairs, report.too_long, report.blank, report.kept) == (200, 30, 7, 163)
    assert len(pairs_of(arrays(dataset))) == 163
    assert caplog.messages == [line]  # said once
    text.batches(Letters(), tokens_per_batch=512, max_length=50, max_target_length=51)
    assert (
        str(text.report) == "27 of 200 pairs dropped: 20 longer than 50 source or 51 target tokens, 7 blank"
    )


def test_an_uncounted_corpus_is_reported_at_the_end_of_an_epoch(caplog):
    pairs = [*some_pairs(100), ("", ""), ("a" * 300, "a")]
    text = ParallelText.from_pairs(pairs)
    dataset = text.batches(Letters(), tokens_per_batch=256, shuffle_buffer=20, count=False)
    assert text.report is None
    for _ in range(2):
        assert len(pairs_of(arrays(dataset))) == 100
    assert caplog.messages == ["2 of 102 pairs dropped: 1 longer than 128 tokens, 1 blank"]


def test_length_limits_count_the_eos():
    pairs = [("a" * 7, "b" * 7), ("a" * 8, "b"), ("a", "b" * 8)]
    assert pairs_of(arrays(batches(pairs, max_length=8))) == pairs[:1]
    assert len(pairs_of(arrays(batches(pairs, max_length=8, max_source_length=9)))) == 2
    assert len(pairs_of(arrays(batches(pairs, max_length=8, max_target_length=9)))) == 2


def test_two_tokenizers():
    english, chinese = ["the sea", "a fox"] * 20, ["海", "狐狸"] * 20
    source = SentencePiece.train(english, vocabulary_size=30)
    target = SentencePiece.train(chinese, vocabulary_size=12)
    text = ParallelText.from_pairs(list(zip(english, chinese, strict=True)))
    ((inputs, labels, _),) = text.batches(source, target, tokens_per_batch=4096, shuffle=False, buckets=[16])
    assert [line.decode() for line in source.detokenize(inputs["source"]).numpy()] == english
    assert [line.decode() for line in target.detokenize(labels).numpy()] == chinese


def digest(dataset: tf.data.Dataset) -> str:
    hashed = hashlib.sha256()
    for batch in arrays(dataset.take(20)):
        for array in batch:
            hashed.update(repr(array.shape).encode() + array.tobytes())
    return hashed.hexdigest()


@pytest.mark.parametrize("shuffle_buffer", [100, 100_000])
def test_the_seed_decides_the_order(shuffle_buffer):
    pairs = some_pairs(400)

    def epochs(seed: int | None) -> list[str]:
        tf.random.set_seed(np.random.default_rng().integers(1 << 30))  # of no influence
        dataset = batches(pairs, seed=seed, shuffle_buffer=shuffle_buffer)
        return [digest(dataset), digest(dataset)]

    seven = epochs(7)
    assert seven == epochs(7)
    assert len({*seven, *epochs(8), *epochs(None), *epochs(None)}) == 8


def test_the_same_seed_gives_the_same_batches_in_another_process():
    script = f"""
import sys; sys.path[:0] = {[str(parent) for parent in pathlib.Path(__file__).parents[:2]]!r}
import test_batches as here
dataset = here.batches(here.some_pairs(400), shuffle_buffer=100)
print(here.digest(dataset), here.digest(dataset))
"""
    dataset = batches(some_pairs(400), shuffle_buffer=100)
    expected = f"{digest(dataset)} {digest(dataset)}"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == expected


class Counting(keras.Model):
    """A model that counts the rows it is trained on."""

    def __init__(self):
        super().__init__()
        self.logits = keras.layers.Dense(Letters.vocabulary_size)
        self.rows = tf.Variable(0)

    def call(self, inputs):
        return self.logits(keras.ops.cast(inputs["target"][..., None], "float32"))

    def train_step(self, data):
        _, _, weights = data
        self.rows.assign_add(tf.reduce_sum(tf.cast(tf.reduce_any(weights > 0, axis=1), tf.int32)))
        return super().train_step(data)


@pytest.mark.parametrize(
    ("shuffle_buffer", "count"),
    [
        (50, True),
        (100_000, True),
        # Keras says so of every dataset of unknown cardinality that comes to its end.
        pytest.param(50, False, marks=pytest.mark.filterwarnings("ignore:Your input ran out of data")),
    ],
)
def test_fit_sees_all_data_in_each_epoch(shuffle_buffer, count):
    model, counts = Counting(), []
    model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), optimizer="sgd")
    watch = keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: counts.append(int(model.rows)))
    dataset = batches(some_pairs(203), shuffle_buffer=shuffle_buffer, count=count)
    assert (dataset.cardinality() == tf.data.UNKNOWN_CARDINALITY) != count
    model.fit(dataset, epochs=3, verbose=0, callbacks=[watch])
    assert np.diff([0, *counts]).tolist() == [203, 203, 203]


def test_two_replicas_share_a_batch(two_replicas):
    pairs = some_pairs(203)
    dataset = batches(pairs)
    rows, total = 0, 0.0
    distributed = list(two_replicas.experimental_distribute_dataset(dataset))
    for batch in distributed:
        weights = two_replicas.experimental_local_results(batch[2])
        total += sum(float(tf.reduce_sum(part)) for part in weights)
        rows += sum(int(tf.math.count_nonzero(tf.reduce_any(part > 0, axis=1))) for part in weights)
    assert rows == 203
    np.testing.assert_allclose(total, len(distributed), rtol=1e-6)


def test_after_an_epoch_that_is_given_up_the_next_is_whole():
    for shuffle_buffer in (50, 100_000):
        dataset = batches(some_pairs(400), shuffle_buffer=shuffle_buffer)
        for _ in range(3):
            next(iter(dataset))
        assert len(pairs_of(arrays(dataset))) == 400


MEMORY = """
import sys; sys.path[:0] = {folders!r}
import psutil
from letter_pairs import Letters
from keras_seq2seq.data import ParallelText

def read(name, count):
    text = ParallelText(sys.argv[1] + name, sys.argv[1] + name)
    dataset = text.batches(Letters(), tokens_per_batch=4096, shuffle_buffer=10_000)
    assert sum(1 for _ in dataset.take(count)) == count

read("small", 5)  # what a first run loads
before = psutil.Process().memory_info().rss
read("large", 50)
print(psutil.Process().memory_info().rss - before)
"""


def test_memory_is_bounded_by_the_buffer(tmp_path):
    line = (
        b"some words that make a line of an ordinary length, more or less, as they are in the news of today\n"
    )
    for name, count in (("small", 20_000), ("large", 200_000)):  # 158 MB as ids
        (tmp_path / name).write_bytes(line * count)
    # In a process of its own: one that has run other tests gives back and takes memory as it likes.
    folders = [str(parent) for parent in pathlib.Path(__file__).parents[:2]]
    command = [sys.executable, "-c", MEMORY.format(folders=folders), f"{tmp_path}/"]
    grown = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert grown < 80e6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokens_per_batch": 0}, "tokens_per_batch must be an integer of at least 1, got 0"),
        ({"max_length": 0}, "max_length must be an integer of at least 1, got 0"),
        ({"shuffle_buffer": 0}, "shuffle_buffer must be an integer of at least 1, got 0"),
        ({"max_buckets": 0}, "max_buckets must be an integer of at least 1, got 0"),
        ({"width_multiple": 0}, "width_multiple must be an integer of at least 1, got 0"),
        ({"sentences_per_batch": 1.5}, "sentences_per_batch must be an integer of at least 1, got 1.5"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
        ({"seed": "a"}, "seed must be an integer of at least 0, got 'a'"),
        ({"tokens_per_batch": 64.5}, "tokens_per_batch must be an integer of at least 1, got 64.5"),
        ({"max_length": "a"}, "max_length must be an integer of at least 1, got 'a'"),
        ({"max_source_length": 0}, "max_source_length must be an integer of at least 1, got 0"),
        ({"width_multiple": 1.5}, "width_multiple must be an integer of at least 1, got 1.5"),
        ({"shuffle_buffer": True}, "shuffle_buffer must be an integer of at least 1, got True"),
        ({"buckets": 8}, "buckets must be a list of widths, got 8"),
        ({"buckets": [0, 32]}, "every width in buckets must be an integer of at least 1, got 0"),
        ({"buckets": [-1, 32]}, "every width in buckets must be an integer of at least 1, got -1"),
        ({"buckets": [(8, 8, 8)]}, r"buckets must be widths S = T or pairs \(S, T\), got \(8, 8, 8\)"),
        (
            {"tokens_per_batch": 16},
            "No pair is left to make a batch of: 2 of 2 pairs dropped: 2 longer than 16",
        ),
        (
            {"tokens_per_batch": 16, "max_length": 64},
            "tokens_per_batch must be at least the width 24, got 16",
        ),
        ({"buckets": [32, 16]}, r"buckets must grow, got \(16, 16\) after \(32, 32\)"),
        ({"buckets": [(8, 16), (16, 8)]}, r"buckets must grow, got \(16, 8\) after \(8, 16\)"),
        (
            {"buckets": [8, 16], "max_length": 24},
            r"buckets must reach the maximum lengths \(24, 24\), got \[8, 16\]",
        ),
        ({"max_length": 8}, "No pair is left to make a batch of: 2 of 2 pairs dropped"),
    ],
)
def test_bad_arguments_get_one_sentence(options, message):
    pairs = [("a" * 20, "b" * 20)] * 2
    with pytest.raises(ValueError, match=message):
        batches(pairs, **options)


def test_a_corpus_that_changed_is_refused(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("x\n" * 5)
    text = ParallelText(tmp_path / "a", tmp_path / "b")
    for name in ("a", "b"):
        (tmp_path / name).write_text("x\n" * 4)
    with pytest.raises(ValueError, match="The corpus had 5 pairs and now has 4"):
        text.batches(Letters(), tokens_per_batch=64)
