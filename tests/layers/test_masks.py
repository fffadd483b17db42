"""Masks, written out."""

import numpy as np
import pytest

from keras_seq2seq.layers.masks import causal_mask, combine_masks, padding_mask

T, F = True, False


def test_padding_mask_marks_real_tokens() -> None:
    ids = np.array([[5, 2, 3], [7, 3, 0], [0, 0, 0]])
    np.testing.assert_array_equal(padding_mask(ids), [[T, T, T], [T, T, F], [F, F, F]])
    np.testing.assert_array_equal(padding_mask(ids, pad_id=7), [[T, T, T], [F, T, T], [T, T, T]])


def test_causal_mask_shows_what_came_before() -> None:
    np.testing.assert_array_equal(causal_mask(3), [[[T, F, F], [T, T, F], [T, T, T]]])


def test_masks_of_different_shapes_are_anded() -> None:
    keys = np.array([[T, T, F], [T, F, F]])
    pairs = np.array([[[F, T, T], [T, T, T], [T, T, T]]])
    np.testing.assert_array_equal(
        combine_masks(keys, causal_mask(3), None, pairs),
        [[[F, F, F], [T, T, F], [T, T, F]], [[F, F, F], [T, F, F], [T, F, F]]],
    )


def test_nothing_masked_is_none_and_one_row_serves_all_queries() -> None:
    assert combine_masks() is None
    assert combine_masks(None, None) is None
    np.testing.assert_array_equal(combine_masks(np.array([[T, F]])), [[[T, F]]])


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.ones((2, 3), "float32"), "must be boolean.*float32"),
        (np.ones((2, 3), "int32"), "must be boolean.*int32"),
        (np.ones((3,), "bool"), r"\[B, S\] or \[B, T, S\].*\(3,\)"),
        (np.ones((2, 1, 3, 3), "bool"), r"\(2, 1, 3, 3\)"),
    ],
)
def test_other_masks_are_refused(mask: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        combine_masks(mask)
