"""The position in the stream: going on in the middle of an epoch, in the same order, also after a kill."""

import pathlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_seq2seq.data import Batches, ParallelText, Text
from keras_seq2seq.text import Characters

RNG = np.random.default_rng(3)
PAIRS = [
    ("a" * s, "b" * t + "c" * (n % 9)) for n, (s, t) in enumerate(RNG.integers(1, 30, [120, 2]).tolist())
]
TEXT = "".join(RNG.choice(list("abc \n"), 1500))
LETTERS = Characters.build("abc \n")


def pair_batches(**options: Any) -> Batches:
    given = {"tokens_per_batch": 256, "seed": 7, **options}
    return ParallelText.from_pairs(PAIRS).batches(LETTERS, **given)


def text() -> Text:
    return Text.from_string(TEXT)


# Each makes the batches of a run anew, as another process would.
MAKE: dict[str, Callable[[], Batches]] = {
    "in_memory": pair_batches,
    "in_chunks": lambda: pair_batches(shuffle_buffer=30, fixed_shapes=True),
    "uncounted": lambda: pair_batches(shuffle_buffer=30, count=False),
    "in_order": lambda: pair_batches(shuffle=False),
    "cleaned": lambda: (
        ParallelText.from_pairs([*PAIRS, *PAIRS[:50], ("a", ""), ("b", "b")])
        .clean(max_ratio=9)
        .shard(2, 1)
        .batches(LETTERS, sentences_per_batch=5, seed=7, shuffle_buffer=20, max_length=25)
    ),
    "lines": lambda: text().batches(LETTERS, tokens_per_batch=128, seed=7, shuffle_buffer=40),
    "random_blocks": lambda: text().blocks(LETTERS, 16, 4, seed=7),
    # 65,536 ids go to tf.data at a time, so these are several times that.
    "many_random_blocks": lambda: text().blocks(LETTERS, 1024, 32, seed=7, steps=5),
    "blocks_in_order": lambda: text().blocks(LETTERS, 16, 4, shuffle=False),
}


def one_by_one(dataset: tf.data.Dataset) -> Iterator[bytes]:
    """Give each batch as bytes, shapes and types among them."""
    for batch in dataset.as_numpy_iterator():
        yield b"".join(repr((a.shape, a.dtype)).encode() + a.tobytes() for a in tf.nest.flatten(batch))


def raw(dataset: tf.data.Dataset) -> list[bytes]:
    return list(one_by_one(dataset))


@pytest.mark.parametrize("kind", MAKE)
def test_a_run_goes_on_wherever_it_stopped(kind):
    batches = MAKE[kind]()
    epochs = [raw(batches) for _ in range(3)]
    assert (epochs[0] != epochs[1]) == (kind not in ("in_order", "blocks_in_order"))
    again = MAKE[kind]()
    for epoch, whole in enumerate(epochs):
        for batch in {0, len(whole) // 2 + epoch, len(whole)}:
            rest = again.rest(epoch, batch)
            assert raw(rest) == whole[batch:], (epoch, batch)
            assert rest.cardinality() in (len(whole) - batch, tf.data.UNKNOWN_CARDINALITY)
            assert (rest.cardinality() >= 0) == (kind != "uncounted")
    rest = again.rest(1, 2)
    assert raw(rest) == raw(rest) == epochs[1][2:]  # the same at every iteration
    again.seek(2)
    assert raw(again) == epochs[2]
    again.seek(0)
    assert [raw(again), raw(again)] == epochs[:2]


def test_batches_are_a_dataset_like_others(two_replicas):
    batches = pair_batches()
    assert isinstance(batches, tf.data.Dataset)
    assert len(batches) == batches.cardinality() == len(raw(batches))
    assert not batches.options().autotune.enabled
    assert batches.element_spec[2].dtype == tf.float32
    whole = raw(pair_batches())
    for made in (
        lambda new: new.prefetch(2),
        lambda new: new.map(lambda *batch: batch),
        lambda new: new.concatenate(new).take(len(whole)),
        lambda new: new.with_options(tf.data.Options()),
    ):
        assert raw(made(pair_batches())) == whole
    parts = two_replicas.experimental_distribute_dataset(pair_batches())
    assert sum(1 for _ in parts) == len(whole)


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import test_epochs as here
batches = here.MAKE["in_chunks"]()
here.raw(batches)
for number, batch in enumerate(here.one_by_one(batches)):
    print(batch.hex(), flush=True)
    if number == 7:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_after_a_kill_each_remaining_pair_comes_once_in_the_same_order():
    here = pathlib.Path(__file__).parent
    run = subprocess.run([sys.executable, "-c", KILLED, str(here)], capture_output=True, text=True)
    assert run.returncode == -signal.SIGKILL
    seen = [bytes.fromhex(line) for line in run.stdout.splitlines()]
    assert len(seen) == 8
    batches = MAKE["in_chunks"]()
    batches.seek(1)
    assert seen + raw(batches.rest(1, len(seen))) == raw(batches)


class Noting(keras.Model):
    """A model that notes the labels it is trained on."""

    def __init__(self):
        super().__init__()
        self.logits = keras.layers.Dense(LETTERS.vocabulary_size)
        self.seen: list[bytes] = []

    def call(self, inputs):
        return self.logits(keras.ops.cast(inputs["target"][..., None], "float32"))

    def train_step(self, data):
        self.seen.append(data[1].numpy().tobytes())
        return super().train_step(data)


def test_fit_goes_on():
    def compiled() -> Noting:
        model = Noting()
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), run_eagerly=True)
        return model

    def noted(batches: Batches) -> keras.callbacks.Callback:
        return keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: batches.seek(epoch))

    batches, straight = pair_batches(), compiled()
    straight.fit(batches, epochs=3, verbose=0, callbacks=[noted(batches)])
    taken = len(batches) + 5
    batches, resumed = pair_batches(), compiled()
    resumed.fit(batches.rest(1, 5), initial_epoch=1, epochs=2, verbose=0)
    batches.seek(2)
    resumed.fit(batches, initial_epoch=2, epochs=3, verbose=0)
    assert len(straight.seen) == 3 * len(batches)
    assert resumed.seen == straight.seen[taken:]


@pytest.mark.parametrize("value", [-1, 0.5, "1", None])
def test_a_position_is_two_numbers_from_zero(value):
    batches = pair_batches()
    with pytest.raises(ValueError, match=f"epoch must be an integer of at least 0, got {value!r}"):
        batches.seek(value)
    with pytest.raises(ValueError, match=f"epoch must be an integer of at least 0, got {value!r}"):
        batches.rest(value, 0)
    with pytest.raises(ValueError, match=f"batch must be an integer of at least 0, got {value!r}"):
        batches.rest(0, value)


def test_a_position_that_cannot_be_found_is_refused():
    count = len(pair_batches())
    with pytest.raises(ValueError, match=f"batch must be at most the {count} batches of an epoch, got 999"):
        pair_batches().rest(0, 999)
    with pytest.raises(ValueError, match="seed must be given for batches that are to go on later, got None"):
        pair_batches(seed=None).rest(0, 0)
