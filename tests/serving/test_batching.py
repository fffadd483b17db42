"""How rows become batches, and which texts are blank."""

import sys
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from keras_seq2seq.serving.batching import batches_by_length, pad_for, pad_rows, round_up
from keras_seq2seq.serving.rows import is_blank
from keras_seq2seq.serving.signatures import BLANK


def test_every_row_is_in_one_batch_within_both_bounds(rng):
    lengths = rng.integers(1, 100, 500).tolist()
    batches = list(batches_by_length(lengths, 16, 300))
    assert sorted(row for batch in batches for row in batch) == list(range(500))
    for batch in batches:
        longest = max(lengths[row] for row in batch)
        assert len(batch) <= 16
        assert len(batch) * longest <= 300
    widths = [lengths[row] for batch in batches for row in batch]
    assert widths == sorted(widths, reverse=True)


def test_a_row_beyond_the_budget_is_a_batch_of_its_own():
    assert list(batches_by_length([3, 1000, 3], 64, 10)) == [[1], [0, 2]]
    assert list(batches_by_length([], 64, 10)) == []


def test_rows_are_padded_to_the_size_asked_for():
    assert pad_rows([[4, 5], [6]]).tolist() == [[4, 5], [6, 0]]
    assert pad_rows([[4]], count=2, width=3).tolist() == [[4, 0, 0], [0, 0, 0]]
    assert pad_rows([]).shape == (0, 0)


def test_sizes_are_few_and_close():
    sizes = {round_up(size) for size in range(1, 1025)}
    assert len(sizes) <= 24
    assert all(size <= round_up(size) < max(1.26 * size, size + 8) for size in range(1, 1025))


class Fixed(NamedTuple):
    """The settings that padding reads."""

    jit_compile: bool
    batch_size: int


def test_shapes_to_compile_are_few_whatever_comes(rng):
    """Random lists of random texts, sorted into batches as `Translator` does; each shape is compiled."""
    shapes = set()
    for _ in range(300):
        lengths = rng.integers(1, 200, rng.integers(1, 200)).tolist()
        for batch in batches_by_length(lengths, 64, 16384):
            rows = [[5] * lengths[row] for row in batch]
            shapes.add(tuple(pad_for(Fixed(True, 64), rows).shape))
            assert pad_for(Fixed(True, 64), [[1]] * len(rows), 1).shape[1] == 1  # seeds
    counts, widths = ({shape[axis] for shape in shapes} for axis in (0, 1))
    assert len(counts) <= 9
    assert len(widths) <= 16
    assert len(shapes) <= len(counts) * len(widths)


def test_a_single_row_is_not_padded_with_others():
    assert pad_for(Fixed(True, 64), [[5] * 21]).shape == (1, 24)


def test_blank_means_the_same_in_python_and_in_the_graph():
    characters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF]
    found = tf.strings.regex_full_match(tf.constant(characters), BLANK).numpy()
    assert [c for c, blank in zip(characters, found, strict=True) if blank != is_blank(c)] == []
    texts = ["", " \t\u3000", " a ", "\n\n"]
    assert np.array_equal(tf.strings.regex_full_match(texts, BLANK), [is_blank(text) for text in texts])


@pytest.mark.parametrize("invalid", [b"\xff", b" \xff ", b"\xc2"])
def test_invalid_bytes_are_not_blank(invalid):
    assert not tf.strings.regex_full_match(tf.constant([invalid]), BLANK).numpy()[0]
