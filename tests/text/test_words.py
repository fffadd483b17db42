"""Words: what a word is, which words are kept, what comes back."""

import json

import numpy as np
import pytest
import tensorflow as tf

from keras_seq2seq import text
from keras_seq2seq.text import UNK_ID, WordPiece, Words, splitting, words
from keras_seq2seq.text.splitting import Splitter

ODD = ["a b", "\r", "\n", "\r\n", "\u2028", "\x85", " ", "\0", "c\0", '"', "\\", "😀", "</s>"]


def decoded(strings: tf.Tensor) -> list[str]:
    return [string.decode() for string in strings.numpy()]


def random_texts(rng: np.random.Generator, count: int) -> list[str]:
    """Make texts of white space, marks, letters and what is neither in many scripts."""
    pool = [
        *map(chr, range(0x3000)),
        *"你好行くはがーＡ、。\uff1f\uff01㍿\u3000𠀀😀❤\ufe0f\u200d\u3099\ud7a3\uac00⁇" * 100,
    ]
    return ["".join(rng.choice(pool, 40)) for _ in range(count)]


def test_words_come_by_frequency_and_ties_by_code_points():
    tokenizer = Words.train(["c b  c", "b\ta"], [b"\xff c", b""])
    assert tokenizer.words == ("c", "b", "a", "\ufffd")
    assert tokenizer.tokenize(["a d\u2028c", ""]).to_list() == [[6, UNK_ID, 4], []]
    assert Words.train(["c b c b a"], vocabulary_size=6).words == ("b", "c")
    assert Words.train(["c b c b a"], min_count=2).words == ("b", "c")


def test_white_space_is_that_of_python(rng):
    texts = [*random_texts(rng, 300), *(f"a{chr(code)}b" for code in range(0x3001))]
    found = Splitter("whitespace", False)(tf.constant([line.encode() for line in texts]))
    assert [[word.decode() for word in row] for row in found.to_list()] == [line.split() for line in texts]


def test_punctuation_stands_alone():
    line = "Don't pay £2,000: 他住в_e\u0301té 😀😀 は行く"
    found = Splitter("punctuation", False)(tf.constant([line.encode()]))
    expected = "Don ' t pay £ 2 , 000 : 他 住 в _ e\u0301té 😀 😀 は 行 く"
    assert [word.decode() for word in found.to_list()[0]] == expected.split()


def test_case_is_lowered_on_both_sides_of_a_nul():
    found = Splitter("whitespace", True)(tf.constant([b"AB\0C D\0", b"\0", b"", "ÀİŒ".encode(), b"A\xff"]))
    words = [[b"ab\0c", b"d\0"], [b"\0"], [], ["ài\u0307œ".encode()], ["a\ufffd".encode()]]
    assert found.to_list() == words
    assert Words.train(["The the THE"], lowercase=True).words == ("the",)


def test_spaces_are_put_where_splitting_needs_them():
    lines = ["他住在这附近\uff0c对吗\uff1f", "は行く", "It's 5 o'clock.", "你好 world 你", "😀 😀"]
    tokenizer = Words.train(lines, split="punctuation")
    expected = ["他住在这附近\uff0c对吗\uff1f", "は行く", "It ' s 5 o ' clock .", "你好 world 你", "😀 😀"]
    assert decoded(tokenizer.detokenize(tokenizer.tokenize(lines))) == expected
    assert decoded(tokenizer.detokenize(tokenizer.tokenize(["你 很 好", "It was"]))) == ["你 ⁇ 好", "It ⁇"]
    plain = Words.train(["你 好"])
    assert decoded(plain.detokenize(plain.tokenize(["你 好"]))) == ["你 好"]


@pytest.mark.parametrize("make", [Words.train, WordPiece.train])
@pytest.mark.parametrize("lowercase", [False, True])
def test_the_second_pass_changes_nothing(make, lowercase, rng):
    texts = random_texts(rng, 400)
    options = {"split": "punctuation"} if make == Words.train else {}
    tokenizer = make(texts[:100], vocabulary_size=1500, lowercase=lowercase, **options)
    first = tokenizer.detokenize(tokenizer.tokenize(texts))
    assert decoded(tokenizer.detokenize(tokenizer.tokenize(first))) == decoded(first)


@pytest.mark.parametrize("options", [{}, {"split": "punctuation", "lowercase": True}])
def test_any_word_survives_save_and_load(tmp_path, options):
    Words.build(ODD, **options).save(tmp_path)
    loaded = text.load(tmp_path)
    assert isinstance(loaded, Words)
    assert loaded.words == tuple(ODD)
    assert decoded(loaded.detokenize([[number + 4] for number in range(len(ODD))])) == ODD
    assert json.loads((tmp_path / "words.json").read_text())["lowercase"] == ("lowercase" in options)


def test_words_with_one_hash_are_told_apart(monkeypatch):
    hashes = words._hashes
    monkeypatch.setattr(
        words, "_hashes", lambda tokens, salt: hashes(tokens, salt) // (1 << 62 if salt < 3 else 1)
    )
    tokenizer = Words.build(["a", "b", "c"])
    assert tokenizer.tokenize(["c a d b"]).to_list() == [[6, 4, UNK_ID, 5]]


def test_a_word_that_has_the_hash_of_another_is_unknown(monkeypatch):
    monkeypatch.setattr(words, "_hashes", lambda tokens, _: tf.zeros(tf.shape(tokens), tf.int64))
    assert Words.build(["a"]).tokenize(["a b"]).to_list() == [[4, UNK_ID]]


def test_counting_forgets_the_rarest_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(splitting, "_MOST_WORDS", 3)
    monkeypatch.setattr(splitting, "_LINES", 1)
    lines = ["often"] * 9 + ["now often then"] + [f"once{number}" for number in range(9)] + ["now"] * 3
    counts = Splitter("whitespace", False).count(lines)
    assert counts["often"] == 10
    assert len(counts) <= 3


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([], "words must hold at least one token"),
        (["a", "b", "a"], "words holds 'a' twice, at places 0 and 2"),
        (["a", ""], "words must hold non-empty strings, got '' at place 1"),
    ],
)
def test_what_is_no_vocabulary_is_refused(tokens, message):
    with pytest.raises(ValueError, match=message):
        Words.build(tokens)


def test_bad_arguments_get_one_sentence():
    with pytest.raises(ValueError, match=r"split must be one of \('whitespace', 'punctuation'\), got 'x'"):
        Words.train(["a"], split="x")
    with pytest.raises(ValueError, match="lines hold no text"):
        Words.train([" ", "\u2028"])
    with pytest.raises(TypeError, match="single string"):
        Words.train("corpus.en")


def test_a_file_with_duplicates_is_refused(tmp_path):
    Words.build(["a"]).save(tmp_path)
    file = {"words": ["b c", "d", "b c"], "split": "whitespace", "lowercase": False}
    (tmp_path / "words.json").write_text(json.dumps(file))
    with pytest.raises(
        ValueError, match=r"words.json' is damaged: words holds 'b c' twice, at places 0 and 2"
    ):
        text.load(tmp_path)
