"""SentencePiece: training, round trips, control ids, graphs, seeds."""

import logging

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_seq2seq import text
from keras_seq2seq.text import BOS_ID, EOS_ID, PAD_ID, UNK_ID, SentencePiece

LINES = [
    "The quick brown fox jumps over the lazy dog.",
    "She sells sea shells by the sea shore, 25 of them.",
    "他住在这附近。",
    "你想喝点什么吗\uff1f",
    "It costs 2,000 pounds.",
] * 4
CONTROL = {PAD_ID, UNK_ID, BOS_ID, EOS_ID}


def decoded(strings: tf.Tensor) -> list[str]:
    return [string.decode("utf-8", "strict") for string in strings.numpy()]


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def lossless(request) -> SentencePiece:
    return SentencePiece.train(LINES, vocabulary_size=2000, model_type=request.param)


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def small(request) -> SentencePiece:
    return SentencePiece.train(LINES, vocabulary_size=80, model_type=request.param)


def test_vocabulary_size_is_a_maximum_and_a_smaller_one_is_noted(caplog):
    for model_type in ("unigram", "bpe"):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            tokenizer = SentencePiece.train(LINES, vocabulary_size=5000, model_type=model_type)
        assert 64 < tokenizer.vocabulary_size < 5000
        (message,) = caplog.messages
        assert f"{tokenizer.vocabulary_size} entries" in message
        assert "5000" in message


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_a_vocabulary_that_the_text_can_fill_has_the_size_asked_for(model_type, rng, caplog):
    lines = ["".join(rng.choice(list("abcde "), 60)) for _ in range(300)]
    assert SentencePiece.train(lines, vocabulary_size=90, model_type=model_type).vocabulary_size == 90
    assert not caplog.messages


def test_tokenize_gives_ragged_int32_without_bos_and_eos(small):
    rows = small.tokenize(["the fox", "", "sea"])
    assert isinstance(rows, tf.RaggedTensor)
    assert rows.dtype == tf.int32
    assert rows.shape.as_list() == [3, None]
    assert rows.row_lengths().numpy()[1] == 0
    assert not CONTROL & set(rows.values.numpy())


def test_scalars_and_empty_lists_are_taken(small):
    one = small.tokenize("the fox")
    np.testing.assert_array_equal(one, small.tokenize(["the fox"])[0])
    assert small.detokenize(one).numpy() == b"the fox"
    assert small.tokenize([]).shape[0] == 0
    assert small.detokenize(tf.zeros([0, 5], tf.int32)).shape == [0]
    with pytest.raises(ValueError, match=r"strings must be a scalar or have shape \[B\]"):
        small.tokenize(tf.constant([["a"], ["b"]]))


@pytest.mark.parametrize(
    "line",
    [
        "25. September 2003",
        "It costs £2,000",
        "foo 😀 bar",
        "他住在这附近\uff0c对吗\uff1f",
        "two  spaces",
        "ends in spaces  ",
        "a\0b\x97c\td",
        "a\u2028b\x85c\rd\x0be\n",
        "<s> a </s> <pad><unk>⁇",
        "e\u0301 \u00e9 \ufb01",
        "",
    ],
)
def test_byte_fallback_gives_any_text_back(lossless, line):
    assert decoded(lossless.detokenize(lossless.tokenize([line]))) == [line]


def test_what_is_not_given_back_is_as_documented(lossless, small):
    assert decoded(lossless.detokenize(lossless.tokenize(["  a", "x\u2581y"]))) == ["a", "x_y"]
    first = small.detokenize(small.tokenize(["foo 😀 bar", "a 😀😀", "Ω"]))
    assert "⁇" in decoded(first)[0]
    assert decoded(small.detokenize(small.tokenize(first))) == decoded(first)


def test_a_normalization_of_sentencepiece_folds_spaces_and_is_then_a_fixed_point():
    tokenizer = SentencePiece.train(LINES, vocabulary_size=2000, normalization="nmt_nfkc")
    first = tokenizer.detokenize(tokenizer.tokenize(["two  spaces", "你想喝点什么吗\uff1f"]))
    assert decoded(first) == ["two spaces", "你想喝点什么吗?"]
    assert decoded(tokenizer.detokenize(tokenizer.tokenize(first))) == decoded(first)


def test_text_that_spells_control_tokens_is_text():
    trained_on = ["<s> a </s> <pad> b"] * 20 + LINES
    for model_type in ("unigram", "bpe"):
        tokenizer = SentencePiece.train(trained_on, vocabulary_size=80, model_type=model_type)
        for line in ("<s>", "</s>", "<pad>", "<s> a </s>", "a<pad>b"):
            ids = tokenizer.tokenize([line])
            assert not {PAD_ID, BOS_ID, EOS_ID} & set(ids.values.numpy())
            assert decoded(tokenizer.detokenize(ids)) == [line]


def test_detokenize_stops_at_the_first_eos_and_hides_control_ids(small):
    a, b = (int(ids[0]) for ids in small.tokenize(["t", "s"]).to_list())
    ids = [[BOS_ID, a, b, EOS_ID, PAD_ID], [BOS_ID, b, EOS_ID, a, a], [PAD_ID, BOS_ID, a, BOS_ID, b]]
    plain = decoded(small.detokenize([[a, b], [b], [a, b]]))
    for given in (ids, tf.constant(ids), tf.constant(ids, tf.int64), tf.ragged.constant(ids), np.array(ids)):
        assert decoded(small.detokenize(given)) == plain
    assert decoded(small.detokenize([[EOS_ID, a], []])) == ["", ""]


def test_detokenize_keeps_the_batch_shape(small):
    ids = np.arange(24).reshape(2, 3, 4) + 4
    text = small.detokenize(ids)
    assert text.shape == [2, 3]
    assert text[1, 2].numpy() == small.detokenize(ids[1, 2]).numpy()
    traced = tf.function(small.detokenize).get_concrete_function(tf.TensorSpec([None, 3, None], tf.int32))
    assert traced.structured_outputs.shape.as_list() == [None, 3]


def test_any_ids_give_valid_utf8(lossless, rng):
    ids = rng.integers(-3, lossless.vocabulary_size + 9, [500, 20])
    ids[250:] = rng.integers(4, 260, [250, 20])  # bytes only
    assert len(decoded(lossless.detokenize(ids))) == 500


def test_broken_and_huge_input_does_not_stop_it(lossless, small):
    for tokenizer in (lossless, small):
        strings = [
            b"ab\xffc",
            b"\xf0\x9f",
            "\ud800",
            "\u2028",
            "\0",
            "x" * 100_000,
            "字" * 33_000,
            "a " * 50_000,
        ]
        rows = tokenizer.tokenize(strings)
        assert all(rows.row_lengths().numpy() > 0)
        assert len(decoded(tokenizer.detokenize(rows))) == len(strings)
    assert decoded(lossless.detokenize(lossless.tokenize([b"ab\xffc"]))) == ["ab\ufffdc"]


def test_seeding_leaves_it_intact(lossless):
    before = lossless.tokenize(LINES)
    dataset = tf.data.Dataset.from_tensors(tf.constant(LINES)).map(lossless.tokenize)
    traced = tf.function(lambda strings: lossless.detokenize(lossless.tokenize(strings)))
    traced(tf.constant(LINES))
    for seed in (1, 2):
        keras.utils.set_random_seed(seed)
        tf.random.set_seed(seed)
        for rows in (lossless.tokenize(LINES), next(iter(dataset))):
            np.testing.assert_array_equal(rows.values, before.values)
            np.testing.assert_array_equal(rows.row_splits, before.row_splits)
        assert decoded(traced(tf.constant(LINES))) == LINES
        assert decoded(lossless.detokenize(before)) == LINES


def test_training_is_joint_streams_and_is_repeatable():
    english, chinese = LINES[:2] * 4, LINES[2:4] * 4
    joint = SentencePiece.train(iter(english), iter(chinese), vocabulary_size=80)
    chained = SentencePiece.train(english + chinese, vocabulary_size=80)
    assert joint._files() == chained._files()
    assert UNK_ID not in joint.tokenize(english + chinese).values
    words = [f"w{number} v{number * 7 % 1000}" for number in range(5000)]
    drawn = [SentencePiece.train(iter(words), vocabulary_size=60, max_lines=300) for _ in range(2)]
    assert drawn[0]._files() == drawn[1]._files()


def test_long_lines_are_learnt_from_too():
    tokenizer = SentencePiece.train(["ab " * 3000 + "q" * 5000], vocabulary_size=12)
    assert UNK_ID not in tokenizer.tokenize(["aq"]).values


def test_bytes_are_taken_and_invalid_utf8_replaced():
    tokenizer = SentencePiece.train([b"ab\xffc", b"ab"], vocabulary_size=20)
    assert decoded(tokenizer.detokenize(tokenizer.tokenize(["ab\ufffd"]))) == ["ab\ufffd"]


def test_a_lone_surrogate_is_learnt_as_an_invalid_character():
    tokenizer = SentencePiece.train(["ab\ud800 c"] * 3, vocabulary_size=12)
    assert decoded(tokenizer.detokenize(tokenizer.tokenize(["ab\ufffd"]))) == ["ab\ufffd"]
    with pytest.raises(TypeError, match="lines must hold strings, got 1"):
        SentencePiece.train([1], vocabulary_size=12)  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        ([], {}, "lines hold no text"),
        (["", ""], {}, "lines hold no text"),
        (["abc def"], {"vocabulary_size": 5}, r"vocabulary_size=5 is too small: .* need 11"),
        (["abc def"], {"vocabulary_size": 50, "byte_fallback": True}, r"need 2\d\d"),
        (["abc"], {"model_type": "word"}, "model_type must be one of .*'word'"),
        (["abc"], {"normalization": "nfd"}, "normalization must be one of .*'nfd'"),
        (["abc"], {"character_coverage": 7.0}, "character_coverage must be from 0.98 to 1, got 7.0"),
        *[
            (["abc"], {"vocabulary_size": size}, f"vocabulary_size must be .*{size!r}")
            for size in (0, -1, 4, 7.5, "many", None, 10**30)
        ],
        (["abc"], {"max_lines": 0}, "max_lines must be an integer of at least 101, got 0"),
    ],
)
def test_bad_arguments_get_one_sentence(lines, options, message):
    with pytest.raises(ValueError, match=message) as caught:
        SentencePiece.train(lines, **{"vocabulary_size": 50, **options})
    assert "\n" not in str(caught.value)


def test_a_path_is_not_taken_for_lines():
    with pytest.raises(TypeError, match="single string"):
        SentencePiece.train("corpus.en", vocabulary_size=50)


def test_errors_of_the_iterable_come_through():
    def broken():
        yield "some text"
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        SentencePiece.train(broken(), vocabulary_size=50)


def test_special_ids():
    assert (text.PAD_ID, text.UNK_ID, text.BOS_ID, text.EOS_ID) == (0, 1, 2, 3)
