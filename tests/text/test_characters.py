"""Characters and bytes: which tokens they have, and what they refuse."""

import json

import pytest

from keras_seq2seq import text
from keras_seq2seq.text import UNK_ID, Bytes, Characters


def test_characters_come_by_frequency_and_ties_by_code_point():
    tokenizer = Characters.train(["ccb", "bca\n"], iter([b"d\n\xff"]))
    assert tokenizer.characters == ("c", "\n", "b", "a", "d", "\ufffd")
    assert tokenizer.vocabulary_size == 10
    assert tokenizer.tokenize(["ab\nz", "\ufffd"]).to_list() == [[7, 6, 5, UNK_ID], [9]]
    assert Characters.train(["ccbbca\nd\n"], vocabulary_size=7).characters == ("c", "\n", "b")
    assert Characters.train(["ccbbca\nd\n"], min_count=3).characters == ("c",)


def test_a_vocabulary_is_taken_as_it_is():
    for characters in ("ba😀", ["b", "a", "😀"]):
        tokenizer = Characters.build(characters)
        assert tokenizer.tokenize(["a😀b"]).to_list() == [[5, 6, 4]]


@pytest.mark.parametrize(
    ("characters", "message"),
    [
        ("", "characters must hold at least one token"),
        ("abca", "characters holds 'a' twice, at places 0 and 3"),
        (["a", "bc"], "characters must be single code points, got 'bc' at place 1"),
        (["a", ""], "characters must hold non-empty strings, got '' at place 1"),
        (["a", 5], "characters must hold non-empty strings, got 5 at place 1"),
        ("a\ud800", r"characters must hold valid Unicode, got '\\ud800' at place 1"),
    ],
)
def test_what_is_no_vocabulary_is_refused(characters, message):
    with pytest.raises(ValueError, match=message):
        Characters.build(characters)


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        ([], {}, "lines hold no text"),
        ([""], {}, "lines hold no text"),
        (["abc"], {"vocabulary_size": 4}, "vocabulary_size must be an integer of at least 5, got 4"),
        (["abc"], {"min_count": 0}, "min_count must be an integer of at least 1, got 0"),
        (["abcc"], {"min_count": 3}, "min_count=3 leaves no token: the most frequent occurs 2 times"),
    ],
)
def test_bad_arguments_get_one_sentence(lines, options, message):
    with pytest.raises(ValueError, match=message):
        Characters.train(lines, **options)


def test_a_path_is_not_taken_for_lines():
    with pytest.raises(TypeError, match="single string"):
        Characters.train("corpus.en")


def test_a_file_with_duplicates_is_refused(tmp_path):
    Characters.build("ab").save(tmp_path)
    (tmp_path / "characters.json").write_text(json.dumps({"characters": ["a", "b", "a"]}))
    with pytest.raises(
        ValueError, match=r"characters.json' is damaged: characters holds 'a' twice, at places"
    ):
        text.load(tmp_path)


def test_bytes_are_numbered_in_order():
    tokenizer = Bytes.build()
    assert tokenizer.vocabulary_size == 260
    assert tokenizer.tokenize(["aé\0"]).to_list() == [[97 + 4, 0xC3 + 4, 0xA9 + 4, 4]]
    half = tokenizer.detokenize([[97 + 4, 0xC3 + 4]]).numpy()
    assert half[0].decode() == "a\ufffd"
