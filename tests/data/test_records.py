"""Records: the batches of the text, what is refused, half-written directories, the tf.data service."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from keras_seq2seq.data import Batches, ParallelText, Records, write_records
from keras_seq2seq.serving.graph_ops import graph_ops
from keras_seq2seq.text import Bytes, Characters, SentencePiece

RNG = np.random.default_rng(3)
PAIRS = [
    (f"{n} " + "ab\0 ü\u2028"[: s % 7] * (s % 5), "" if n % 100 == 7 else f"{n} " + "cd" * t)
    for n, (s, t) in enumerate(RNG.integers(1, 20, [2600, 2]).tolist())
]
TEXT = ParallelText.from_pairs(PAIRS)
LETTERS = Characters.train((source for source, _ in PAIRS), (target for _, target in PAIRS))
OPTIONS: dict[str, Any] = {"tokens_per_batch": 1024, "seed": 7}


@pytest.fixture(scope="module")
def of_ids(tmp_path_factory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("records") / "ids"
    write_records(path, TEXT, LETTERS, Bytes(), files=2)
    return path


@pytest.fixture(scope="module")
def of_text(tmp_path_factory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("records") / "text"
    write_records(path, TEXT, files=8)
    return path


def raw(dataset: tf.data.Dataset) -> list[bytes]:
    return [
        b"".join(repr((a.shape, a.dtype)).encode() + a.tobytes() for a in tf.nest.flatten(batch))
        for batch in dataset.as_numpy_iterator()
    ]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle_buffer": 1100, "fixed_shapes": True},
        {"shuffle_buffer": 300, "tokens_per_batch": None, "sentences_per_batch": 20},
        {"shuffle_buffer": 10, "count": False},  # less than a block of the files
    ],
)
def test_batches_are_those_of_the_text(of_ids, of_text, options):
    options = OPTIONS | options
    expected = TEXT.batches(LETTERS, Bytes(), **options)
    epochs = [raw(expected), raw(expected)]
    for path in (of_ids, of_text):
        records = Records(path, LETTERS, Bytes(), text=TEXT)
        batches = records.batches(**options)
        assert isinstance(batches, Batches)
        assert [raw(batches), raw(batches)] == epochs
        assert raw(batches.rest(1, 9)) == epochs[1][9:]
        assert len(records) == 2600
        assert str(records.report) == "26 of 2600 pairs dropped: 26 blank"


def test_files_share_the_blocks_in_their_order(of_ids, of_text, tmp_path):
    # Three blocks of pairs: no file is empty, and there are no more files than blocks.
    assert sorted(path.name for path in of_ids.iterdir()) == [
        "00000-of-00002.tfrecord",
        "00001-of-00002.tfrecord",
        "records.json",
    ]
    assert len(list(of_text.glob("*.tfrecord"))) == 3
    counts = [sum(1 for _ in tf.data.TFRecordDataset(str(path))) for path in sorted(of_text.glob("*.tf*"))]
    assert counts == [1, 1, 1]
    rows = [block[1].numpy().size for block in Records(of_ids, LETTERS, Bytes()).blocks()]
    assert rows == [1013, 1014, 547]


@pytest.mark.parametrize("reads", ["ids", "text"])
def test_reading_needs_operations_of_the_graph_alone(of_ids, of_text, tmp_path, reads):
    records = Records(of_ids if reads == "ids" else of_text, LETTERS, Bytes())
    module = tf.Module()
    module.f = tf.function(
        lambda: records.blocks().reduce(np.int64(0), lambda n, block: n + block[4]), autograph=False
    )
    tf.saved_model.save(module, str(tmp_path), signatures=module.f.get_concrete_function())
    assert not [name for name in graph_ops(str(tmp_path)) if "PyFunc" in name]


def test_other_tokenizers_and_texts_are_refused(of_ids, of_text):
    other = Characters.build("abc")
    for pair, side in (((other, Bytes()), "source"), ((LETTERS, other), "target"), ((LETTERS,), "target")):
        with pytest.raises(
            ValueError, match=f"ids' was written with another {side} tokenizer than Characters"
        ):
            Records(of_ids, *pair)
    Records(of_text, other, other)
    Records(of_ids, Characters.build(LETTERS.characters), Bytes())  # another object that does the same
    for path in (of_ids, of_text):
        for text in (ParallelText.from_pairs(PAIRS[:-1]), ParallelText.from_pairs(PAIRS[::-1])):
            with pytest.raises(ValueError, match="was written of another text than the one given"):
                Records(path, LETTERS, Bytes(), text=text)


def test_a_fingerprint_tells_pairs_and_tokenizers_apart():
    texts = [[("a", "b")], [("a", "c")], [("ab", "")], [("", "ab")], [("a", "b"), ("a", "b")], [("a1 ", "b")]]
    assert len({ParallelText.from_pairs(pairs).fingerprint() for pairs in texts}) == len(texts)
    lines = ["some words of a text", "other words"]
    made = [
        Characters.train(lines),
        Characters.train(lines[:1]),
        SentencePiece.train(lines, vocabulary_size=30),
        Bytes(),
    ]
    assert len({each.fingerprint for each in made}) == len(made)
    assert SentencePiece.train(lines, vocabulary_size=30).fingerprint == made[2].fingerprint


def test_damaged_directories_are_refused(of_ids, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no records: records.json is missing"):
        Records(tmp_path, LETTERS)
    card = json.loads((of_ids / "records.json").read_text())
    wrong: list[dict[str, Any]] = [
        {"files": "ab"},
        {"files": [], "sizes": []},
        {"sizes": [5]},
        {"pairs": -1},
        {"pairs": True},
        {"tokenizers": []},
        {"tokenizers": ["a"]},
    ]
    for change in wrong:
        (tmp_path / "records.json").write_text(json.dumps(card | change))
        with pytest.raises(ValueError, match=r"records.json' does not describe records"):
            Records(tmp_path, LETTERS, Bytes())
    for content in (
        "[" * 100_000,
        "",
        "[]",
        "{}",
        "7",
        json.dumps(card | {"files": [1]}),
        json.dumps(card | {"format": 1}),
    ):
        (tmp_path / "records.json").write_text(content)
        with pytest.raises(ValueError, match=r"records.json' does not describe records"):
            Records(tmp_path, LETTERS)
    (tmp_path / "records.json").write_text(json.dumps(card))
    with pytest.raises(ValueError, match=r"is damaged: '00000-of-00002.tfrecord' is missing"):
        Records(tmp_path, LETTERS, Bytes())


def test_nothing_is_overwritten_and_nothing_half_written_is_left(tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(FileExistsError, match="there' exists already, choose another directory"):
        write_records(tmp_path / "there", TEXT, LETTERS)

    class Failing(ParallelText):
        def pairs(self):
            yield from PAIRS[:2000]
            raise OSError("the disk is gone")

    with pytest.raises((OSError, tf.errors.OpError), match="the disk is gone"):
        write_records(tmp_path / "new", Failing.from_pairs(PAIRS))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["there"]
    with pytest.raises(ValueError, match="files must be an integer of at least 1, got 0"):
        write_records(tmp_path / "new", TEXT, files=0)
    with pytest.raises(ValueError, match="source_tokenizer must be given if target_tokenizer is, got None"):
        write_records(tmp_path / "new", TEXT, None, LETTERS)


# Dispatcher and workers, as they would run on other machines.
DISPATCHER = """
import keras_seq2seq.text
import tensorflow as tf
service = tf.data.experimental.service
server = service.DispatchServer(service.DispatcherConfig(port=0))
print(server.target, flush=True)
server.join()
"""
WORKER = """
import sys
import keras_seq2seq.text
import tensorflow as tf
service = tf.data.experimental.service
server = service.WorkerServer(service.WorkerConfig(dispatcher_address=sys.argv[1]))
print("ready", flush=True)
server.join()
"""


@contextlib.contextmanager
def running(script: str, *arguments: str) -> Iterator[str]:
    """Run a server, and give the first line that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parents[2])},
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()


def test_the_service_spreads_reading_over_two_workers(tmp_path):
    pairs = [(f"s{number}", f"t{number}" * (1 + number % 5)) for number in range(5000)]
    text = ParallelText.from_pairs(pairs)
    write_records(tmp_path / "records", text, files=5)
    tokenizer = SentencePiece.train(text.sources(), text.targets(), vocabulary_size=60)
    records = Records(tmp_path / "records", tokenizer)
    with running(DISPATCHER) as target:
        address = target.partition("://")[2]
        with running(WORKER, address) as one, running(WORKER, address) as two:
            assert (one, two) == ("ready", "ready")
            batches = records.batches(service=target, tokens_per_batch=2048, seed=1)
            seen: Counter[tuple[bytes, bytes]] = Counter()
            for inputs, labels, _ in batches:
                sides = [tokenizer.detokenize(ids).numpy() for ids in (inputs["source"], labels)]
                seen.update(zip(*sides, strict=True))
            expected = Counter((source.encode(), target.encode()) for source, target in pairs)
            assert seen == expected
            assert str(records.report) == "0 of 5000 pairs dropped"
            with pytest.raises(ValueError, match="seed must be given for batches that are to go on later"):
                batches.rest(0, 1)
