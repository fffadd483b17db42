"""What is no text, no ids or no lines gets one sentence; odd but good input is taken. For every kind."""

import pathlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from keras_seq2seq.text import Bytes, Characters, SentencePiece, Tokenizer, WordPiece, Words

TRAIN: dict[str, Callable[..., Tokenizer]] = {
    "characters": Characters.train,
    "words": Words.train,
    "word_piece": partial(WordPiece.train, vocabulary_size=60),
    "sentence_piece": partial(SentencePiece.train, vocabulary_size=60),
}


@pytest.fixture(params=TRAIN)
def train(request) -> Callable[..., Tokenizer]:
    return TRAIN[request.param]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("corpus.en", "lines must be iterables of strings, got a single string"),
        (b"corpus.en", "lines must be iterables of strings, got a single string"),
        (pathlib.Path("corpus.en"), r"lines must be iterables of strings, got PosixPath\('corpus.en'\)"),
        (5, "lines must be iterables of strings, got 5"),
        (None, "lines must be iterables of strings, got None"),
        ([("a", "b")], r"lines must hold strings, got \('a', 'b'\)"),
        (["fine", None], "lines must hold strings, got None"),
        ([tf.constant("a")], "lines must hold strings, got <tf.Tensor"),
    ],
)
def test_what_holds_no_lines_is_refused(train, lines, message):
    with pytest.raises(TypeError, match=message) as caught:
        train(lines)
    assert "\n" not in str(caught.value)


def test_lines_of_numpy_and_bytes_are_taken(train):
    assert repr(train(np.array(["ab", "c"]))) == repr(train([b"ab", "c"]))


def unread() -> Iterator[str]:
    yield str(1 / 0)  # so that reading them fails


@pytest.mark.parametrize("size", [0, -1, 4, "8", 7.5, True])
def test_a_vocabulary_size_is_refused_before_a_line_is_read(train, size):
    with pytest.raises(ValueError, match=f"vocabulary_size must be .*, got {size!r}"):
        train(unread(), vocabulary_size=size)


@pytest.mark.parametrize("count", [0, -1, "8", 1.5, None])
def test_a_count_is_refused_before_a_line_is_read(train, count):
    name = "max_lines" if train is TRAIN["sentence_piece"] else "min_count"
    with pytest.raises(ValueError, match=f"{name} must be an integer of at least 1.*, got {count!r}"):
        train(unread(), **{name: count})


def test_sizes_of_numpy_are_taken(train):
    assert train(["hello world"], vocabulary_size=np.int64(40)).vocabulary_size <= 40


def test_words_beyond_the_limit_of_pieces_are_not_learnt_from():
    letters = np.random.default_rng(0).choice(list("abcdef"), 100_000)
    tokenizer = WordPiece.train(["".join(letters), "a short one"], vocabulary_size=60)
    assert repr(tokenizer) == repr(WordPiece.train(["a short one"], vocabulary_size=60))
    with pytest.raises(ValueError, match="lines hold no word of at most 100 bytes"):
        WordPiece.train(["x" * 101], vocabulary_size=60)


@pytest.mark.parametrize("reserved", ["\u2585", "\u2581"])
def test_a_character_of_the_trainer_costs_no_line_of_text(reserved):
    lines = [f"the quick {reserved} fox"] * 3
    tokenizer = SentencePiece.train(lines, vocabulary_size=60)
    assert 1 not in tokenizer.tokenize(["the quick fox"]).values
    SentencePiece.train([reserved], vocabulary_size=60)


@pytest.mark.parametrize("value", [0, 0.5, 1.01, float("nan"), "x"])
def test_a_coverage_that_the_trainer_does_not_take_is_named(value):
    with pytest.raises(ValueError, match=f"character_coverage must be from 0.98 to 1, got {value!r}"):
        SentencePiece.train(unread(), vocabulary_size=60, character_coverage=value)


def test_a_truncated_model_is_refused_wherever_it_is_cut():
    model = SentencePiece.train(["the quick brown fox", "jumps over"], vocabulary_size=40)._model
    for size in range(len(model)):
        with pytest.raises(ValueError, match=r"^model "):
            SentencePiece(model[:size])


@pytest.mark.parametrize("strings", [None, 5, [1, 2], [None], ["a", None], pathlib.Path("a"), iter("ab")])
def test_what_is_no_text_is_refused(strings):
    with pytest.raises(TypeError, match="strings must be text, got ") as caught:
        Bytes().tokenize(strings)
    assert "\n" not in str(caught.value)


def test_text_of_more_axes_is_refused():
    for strings in (tf.ragged.constant([["a"], ["b", "c"]]), [["a"], ["b"]], np.array([["a", "b"]])):
        with pytest.raises(ValueError, match=r"strings must be a scalar or have shape \[B\], got shape"):
            Bytes().tokenize(strings)


def test_text_in_arrays_is_text_in_lists():
    strings = ["a\0b", "\ud800", "ü"]
    expected = Bytes().tokenize(strings).to_list()
    assert Bytes().tokenize(np.array(strings, object)).to_list() == expected
    assert Bytes().tokenize(np.array(strings[::2])).to_list() == expected[::2]
    assert Bytes().tokenize(np.array("ü")).numpy().tolist() == expected[2]
    assert Bytes().tokenize(np.array([], object)).shape[0] == 0


def test_nested_lists_of_ids_may_be_ragged_everywhere():
    a, b = 4 + ord("a"), 4 + ord("b")
    text = Bytes().detokenize
    assert text([[[a], [a, b]], [[b, b, b], []]]).numpy().tolist() == [[b"a", b"ab"], [b"bbb", b""]]
    assert text([[[a]], [[b, b], [a]]]).numpy().tolist() == [[b"a", b""], [b"bb", b"a"]]
    assert text([np.array([a, b]), [a]]).numpy().tolist() == [b"ab", b"a"]
    assert text([tf.constant([a, b]), tf.constant([b])]).numpy().tolist() == [b"ab", b"b"]
    assert text([[np.int32(a), np.int64(b)]]).numpy().tolist() == [b"ab"]


def test_ids_that_no_int32_holds_are_no_text():
    for number in (2**32 + 4 + ord("a"), -(2**32) + 4 + ord("a"), 2**62):
        assert Bytes().detokenize(np.array([[number]])).numpy().tolist() == [b""]
    assert Bytes().detokenize(np.array([[4 + ord("a"), 0]], np.uint64)).numpy().tolist() == [b"a"]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (tf.constant([[4.0]]), "ids must be integers, got float32"),
        (np.array([[4.5]]), "ids must be integers, got float64"),
        ([[4.5]], "ids must be integers, got "),
        (["ab"], "ids must be integers, got "),
        (None, "ids must be integers, got "),
        (4, "ids must have at least one axis, got 4"),
    ],
)
def test_what_is_no_ids_is_refused(ids: Any, message: str):
    with pytest.raises(ValueError, match=message) as caught:
        Bytes().detokenize(ids)
    assert "\n" not in str(caught.value)
