"""Rows that are equal are answered once: a server fills batches with copies of a row."""

from typing import Any

import pytest
import tensorflow as tf

from keras_seq2seq.serving.graph import signature_function


def counted(*names: str) -> Any:
    """A signature that says which rows it was given, and how many."""

    def body(*columns: Any) -> dict[str, Any]:
        texts = [each if each.dtype == tf.string else tf.strings.as_string(each) for each in columns]
        count = tf.fill(tf.shape(columns[0]), tf.size(columns[0]))
        return {"row": tf.strings.join(texts, "|"), "count": count}

    return signature_function(body, *names)


@pytest.mark.parametrize(
    ("text", "different"),
    [
        ([], 0),
        (["a"], 1),
        (["a"] * 8, 1),
        (["a", "", "b", "", "a", "b"], 3),
        (["a\0", "a", b"\xff", b"\xff", b"\xfe", "a\0"], 4),
    ],
)
def test_texts_that_are_equal_are_asked_once(text: list[Any], different: int) -> None:
    found = counted("text")(tf.constant(text, tf.string))
    expected = [each.encode() if isinstance(each, str) else each for each in text]
    assert found["row"].numpy().tolist() == expected
    assert found["count"].numpy().tolist() == [different] * len(text)


def test_a_row_is_all_of_its_columns() -> None:
    text, seed = ["a", "a", "b", "a", "a1"], [1, 2, 1, 1, -1]
    found = counted("text", "seed")(tf.constant(text), tf.constant(seed, tf.int64))
    assert found["row"].numpy().tolist() == [b"a|1", b"a|2", b"b|1", b"a|1", b"a1|-1"]
    assert set(found["count"].numpy()) == {4}
    # Joined without care, these would be one.
    text, prefix = ["a", "aa", "1:a", "a"], ["aa", "a", "", "aa"]
    found = counted("text", "prefix")(tf.constant(text), tf.constant(prefix))
    assert found["row"].numpy().tolist() == [b"a|aa", b"aa|a", b"1:a|", b"a|aa"]
    assert set(found["count"].numpy()) == {3}


def test_columns_of_unequal_length_are_an_error() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="seed must have one entry for each text"):
        counted("text", "seed")(tf.constant(["a", "b"]), tf.constant([1], tf.int64))
