"""Text to rows of ids for serving."""

import numpy as np
import pytest
import tensorflow as tf

from keras_seq2seq.data import encode_prefixes, encode_sources
from keras_seq2seq.text import SentencePiece

TEXTS = ["a long text of words", "", "words", "</s> text <pad>"]


@pytest.fixture(scope="module")
def tokenizer() -> SentencePiece:
    return SentencePiece.train(TEXTS * 5, vocabulary_size=50)


def test_sources_end_in_eos_and_prefixes_start_with_bos(tokenizer):
    tokens = tokenizer.tokenize(TEXTS).to_list()
    width = max(map(len, tokens)) + 1
    sources = [[*row, 3] + [0] * (width - 1 - len(row)) for row in tokens]
    prefixes = [[2, *row] + [0] * (width - 1 - len(row)) for row in tokens]
    for encode, expected in ((encode_sources, sources), (encode_prefixes, prefixes)):
        ids = encode(tokenizer, TEXTS)
        assert ids.dtype == tf.int32
        np.testing.assert_array_equal(ids, expected)
        traced = tf.function(lambda texts, encode=encode: encode(tokenizer, texts))
        np.testing.assert_array_equal(traced(tf.constant(TEXTS)), expected)


def test_a_cut_row_keeps_its_control_token(tokenizer):
    tokens = tokenizer.tokenize(TEXTS).to_list()
    for length in (1, 2, 4):
        sources = encode_sources(tokenizer, TEXTS, length).numpy()
        prefixes = encode_prefixes(tokenizer, TEXTS, max_length=length).numpy()
        for row, source, prefix in zip(tokens, sources, prefixes, strict=True):
            assert [*row[: length - 1], 3] == source[source > 0].tolist()
            assert [2, *row[: length - 1]] == prefix[prefix > 0].tolist()
    with pytest.raises(ValueError, match="max_length must be an integer of at least 1, got 0"):
        encode_sources(tokenizer, TEXTS, 0)


def test_one_row_out_for_each_row_in(tokenizer):
    assert encode_sources(tokenizer, ["x " * 5000, ""], 7).shape == [2, 7]
    assert encode_sources(tokenizer, [""]).numpy().tolist() == [[3]]
    assert encode_prefixes(tokenizer, [""]).numpy().tolist() == [[2]]
    assert encode_sources(tokenizer, []).shape[0] == 0
