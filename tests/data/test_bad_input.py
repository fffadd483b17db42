"""Arguments of the wrong kind get one sentence before work is lost; odd but good ones are taken."""

# mypy: disable-error-code="arg-type, list-item"

import os
import threading
from collections.abc import Callable
from typing import Any

import keras_hub
import numpy as np
import pytest
import tensorflow as tf

from keras_seq2seq.data import ParallelText, Records, Text, encode_sources, read_lines, write_records
from keras_seq2seq.text import Bytes

PAIRS = [(f"source {number}", f"target {number}") for number in range(30)]
CORPUS = ParallelText.from_pairs(PAIRS)
TEXT = Text.from_string("some text\nof lines\n" * 20)


def batches(**options: Any) -> tf.data.Dataset:
    return CORPUS.batches(Bytes(), **{"tokens_per_batch": 256, "seed": 1, **options})


def shapes(dataset: tf.data.Dataset) -> list[tuple[int, ...]]:
    return [tuple(labels.shape) for _, labels, _ in dataset]


class Twice:
    """Pairs that are gone after the first pass."""

    def __init__(self):
        self._pairs = iter(PAIRS)

    def __iter__(self):
        return self._pairs


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "no files": (lambda: ParallelText([], []), "paths must name at least one file, got none"),
    "no file": (lambda: Text([]), "paths must name at least one file, got none"),
    "path None": (lambda: ParallelText(None, "b"), "paths must be strings or path objects, got None"),
    "path bytes": (lambda: Text(b"a"), "paths must be strings or path objects, got b'a'"),
    "path 3": (lambda: Text(["a", 3]), "paths must be strings or path objects, got 3"),
    "one column": (
        lambda: ParallelText.from_tsv("a", columns=(0,)),
        r"columns must be two numbers, got \(0,\)",
    ),
    "three columns": (lambda: ParallelText.from_tsv("a", columns=(0, 1, 2)), "columns must be two numbers"),
    "a column": (lambda: ParallelText.from_tsv("a", columns=0), "columns must be two numbers, got 0"),
    "named columns": (
        lambda: ParallelText.from_tsv("a", columns=("en", "de")),
        r"columns must be numbers from 0, got \('en', 'de'\)",
    ),
    "half a column": (lambda: ParallelText.from_tsv("a", columns=(0, 0.5)), "columns must be numbers from 0"),
    "no pairs": (lambda: ParallelText.from_pairs([]), "not one line in pairs"),
    "pairs 5": (lambda: ParallelText.from_pairs(5), "pairs must be an iterable of pairs of strings, got 5"),
    "pairs of bytes": (
        lambda: ParallelText.from_pairs([(b"a", b"b")]),
        r"pairs must hold pairs of strings, got \(b'a', b'b'\)",
    ),
    "zipped": (lambda: ParallelText.from_pairs(zip("ab", "cd", strict=True)), "pairs can be read only once"),
    "a generator": (lambda: ParallelText.from_pairs((a, a) for a in "ab"), "pairs can be read only once"),
    "gone": (
        lambda: ParallelText.from_pairs(Twice()).batches(Bytes(), tokens_per_batch=256),
        "The corpus had 30 pairs and now has 0",
    ),
    "a list": (
        lambda: ParallelText.from_dataset([("a", "b")]),
        r"dataset must be a tf.data.Dataset, got \[\('a'",
    ),
    "dicts": (
        lambda: ParallelText.from_dataset(tf.data.Dataset.from_tensors({"a": "1", "b": "2"})),
        "dataset must hold pairs of scalar strings",
    ),
    "ragged": (
        lambda: ParallelText.from_dataset(
            tf.data.Dataset.from_tensor_slices((tf.ragged.constant([["a"]]), ["b"]))
        ),
        "dataset must hold pairs of scalar strings",
    ),
    "numbers": (
        lambda: ParallelText.from_dataset(tf.data.Dataset.from_tensors((1, 2))),
        "dataset must hold pairs of scalar strings",
    ),
    "shard 1.0": (lambda: CORPUS.shard(2, 1.0), "index must be an integer from 0 to 1, got 1.0"),
    "shard True": (lambda: CORPUS.shard(2, True), "index must be an integer from 0 to 1, got True"),
    "ratio": (lambda: CORPUS.clean(max_ratio="3"), "max_ratio must be at least 1, got '3'"),
    "keep": (lambda: CORPUS.clean(keep=3), "keep must be a function of two strings, got 3"),
    "block_length": (lambda: TEXT.blocks(Bytes(), "a", 2), "block_length must be an integer of .*, got 'a'"),
    "batch_size": (lambda: TEXT.blocks(Bytes(), 8, 2.5), "batch_size must be an integer of .*, got 2.5"),
    "steps": (lambda: TEXT.blocks(Bytes(), 8, 2, steps=1.5), "steps must be an integer of .*, got 1.5"),
    "bos_share": (
        lambda: TEXT.blocks(Bytes(), 8, 2, bos_share="x"),
        "bos_share must be from 0 to 1, got 'x'",
    ),
    "blocks seed": (lambda: TEXT.blocks(Bytes(), 8, 2, seed="x"), "seed must be an integer of .*, got 'x'"),
    "share": (lambda: TEXT.split("x"), "share must be a number from 0 to 1, got 'x'"),
    "share nan": (lambda: TEXT.split(float("nan")), "share must be a number from 0 to 1, got nan"),
    "bytes": (lambda: Text.from_string(b"abc"), "text must be a string, got b'abc'"),
    "max_length": (
        lambda: encode_sources(Bytes(), ["abc"], 2.5),
        "max_length must be an integer of .*, got 2.5",
    ),
    "seed": (lambda: batches(seed=1.0), "seed must be an integer of at least 0, got 1.0"),
    "tokens None": (
        lambda: batches(tokens_per_batch=None),
        "tokens_per_batch or sentences_per_batch must be given, got None for both",
    ),
    "sentences 0": (
        lambda: batches(sentences_per_batch=0),
        "sentences_per_batch must be an integer of at least 1, got 0",
    ),
    "buckets": (lambda: batches(buckets=[]), r"buckets must reach the maximum lengths .*, got \[\]"),
    "no tokenizer": (
        lambda: CORPUS.batches(None, tokens_per_batch=99),
        "source_tokenizer must be a Tokenizer, got None",
    ),
    "another's": (
        lambda: CORPUS.batches(Bytes(), keras_hub.tokenizers.ByteTokenizer(), tokens_per_batch=99),
        r"target_tokenizer must be a Tokenizer, got <ByteTokenizer.*; ks.text.KerasHub takes KerasHub's",
    ),
    "of lines": (lambda: TEXT.batches("a", tokens_per_batch=99), "tokenizer must be a Tokenizer, got 'a'"),
    "of blocks": (lambda: TEXT.blocks("a", 8, 2), "tokenizer must be a Tokenizer, got 'a'"),
    "of records": (lambda: write_records("new", CORPUS, "a"), "source_tokenizer must be a Tokenizer"),
    "sampling": (lambda: batches(sampling=0.1), "sampling must be a SubwordSampling, got 0.1"),
}


@pytest.mark.parametrize("case", CASES)
def test_arguments_of_the_wrong_kind_get_one_sentence(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_text("one\ttwo\n")
    call, message = CASES[case]
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert os.listdir() == ["a"]


def test_numbers_of_numpy_are_taken():
    expected = batches(buckets=[8, (16, 24)], max_length=16)
    same = batches(
        tokens_per_batch=np.int32(256),
        buckets=[np.int64(8), (np.int64(16), np.int32(24))],
        max_length=np.int8(16),
        shuffle_buffer=np.int64(100_000),
        seed=np.int64(1),
    )
    assert shapes(expected) == shapes(same)
    assert shapes(batches()) == shapes(batches(max_source_length=np.int64(128), width_multiple=np.uint8(8)))
    assert len(CORPUS.clean(min_length=np.int64(2), max_length=np.int64(50))) == 30
    assert len(CORPUS.shard(np.int64(2), np.int64(0))) == 15
    assert TEXT.blocks(Bytes(), np.int64(8), np.int64(2), seed=np.int64(1)).cardinality() == 24


def test_pairs_of_other_kinds_of_strings_are_taken():
    assert list(ParallelText.from_pairs([[np.str_("a"), "b"]]).pairs()) == [("a", "b")]
    assert list(ParallelText.from_pairs({("a", "b"): 1}).pairs()) == [("a", "b")]


def test_a_lone_surrogate_in_python_text_is_the_same_in_training_and_serving():
    text = ParallelText.from_pairs([("a\ud800b", "c\udfff")])
    ((inputs, labels, _),) = text.batches(Bytes(), tokens_per_batch=64, buckets=[16])
    served = encode_sources(Bytes(), ["a\ud800b"]).numpy()
    np.testing.assert_array_equal(inputs["source"][:, : served.shape[1]], served)
    assert Bytes().detokenize(labels).numpy()[0] == next(iter(text.dataset()))[1].numpy()
    assert "?" not in Bytes().detokenize(labels).numpy()[0].decode()


def test_any_dataset_of_pairs_is_taken():
    def made(**options: Any) -> tf.data.Dataset:
        return tf.data.Dataset.from_generator(lambda: iter(PAIRS), **options)

    named = tf.TensorSpec([], tf.string, "source"), tf.TensorSpec([], tf.string, "target")
    for dataset in (made(output_signature=named), made(output_types=(tf.string, tf.string))):
        assert list(ParallelText.from_dataset(dataset).pairs()) == PAIRS


def test_a_pipe_is_read_once_and_refused_where_it_must_be_read_again(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[b"one\r\ntwo\n"])
    writer.start()
    assert list(read_lines(pipe)) == ["one", "two"]
    writer.join()
    for call in (
        lambda: ParallelText(pipe, pipe),
        lambda: ParallelText.from_tsv(str(pipe)),
        lambda: Text(pipe),
    ):
        with pytest.raises(
            ValueError, match=r"pipe' is no regular file, expected one that can be read again"
        ):
            call()


def test_files_that_changed_are_refused(tmp_path):
    def write(*lines: int) -> None:
        for name, count in zip("ab", lines, strict=True):
            (tmp_path / name).write_text("x y\n" * count)

    write(3, 3)
    text = ParallelText(tmp_path / "a", tmp_path / "b")
    for lines in ((4, 4), (2, 2)):
        write(*lines)
        with pytest.raises(ValueError, match=rf"The corpus had 3 pairs and now has {lines[0]}"):
            text.clean(duplicates=True, identical=True)
    write(3, 2)
    message = "a' and .*b' no longer have the same number of lines"
    with pytest.raises(ValueError, match=message):
        list(text.pairs())
    with pytest.raises((ValueError, tf.errors.OpError), match=message):
        text.batches(Bytes(), tokens_per_batch=99)


def test_a_place_beyond_an_uncounted_epoch_is_refused():
    dataset = batches(shuffle_buffer=10, count=False)
    count = len(shapes(dataset))
    assert shapes(dataset.rest(0, count)) == []
    with pytest.raises(
        (ValueError, tf.errors.OpError), match=f"at most the {count} batches .*, got {count + 1}"
    ):
        shapes(dataset.rest(0, count + 1))


def test_damaged_records_are_refused_at_the_start(tmp_path):
    write_records(tmp_path / "records", CORPUS, Bytes())
    (file,) = (tmp_path / "records").glob("*.tfrecord")
    whole = file.read_bytes()
    for content in (b"", whole[:5], whole[:-1], whole + b"x"):
        file.write_bytes(content)
        with pytest.raises(
            ValueError, match=rf"is damaged: '{file.name}' has {len(content)} bytes, expected"
        ):
            Records(tmp_path / "records", Bytes())
    file.write_bytes(whole)
    with pytest.raises(ValueError, match="source_tokenizer must be a Tokenizer, got None"):
        Records(tmp_path / "records", None)
