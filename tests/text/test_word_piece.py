"""WordPiece: cutting words, learning pieces, the place of the unknown token."""

import string

import pytest
import tensorflow as tf

from keras_seq2seq import text
from keras_seq2seq.text import UNK_ID, WordPiece

# The example of TensorFlow Text's FastWordpieceTokenizer.
PIECES = ["they", "##'", "##re", "the", "great", "##est", "'", "re", "hello"]


def pieces(tokenizer: WordPiece, line: str) -> list[str]:
    shown = ["<pad>", "⁇", "<bos>", "<eos>", *tokenizer.pieces]
    return [shown[number] for number in tokenizer.tokenize(line).numpy()]


def decoded(strings: tf.Tensor) -> list[str]:
    return [string.decode() for string in strings.numpy()]


def test_words_are_cut_into_the_longest_pieces():
    tokenizer = WordPiece.build(PIECES)
    assert pieces(tokenizer, "they're the greatest") == ["they", "'", "re", "the", "great", "##est"]
    assert pieces(tokenizer, "theyre greatzest, they") == ["they", "##re", "⁇", "⁇", "they"]
    ids = tokenizer.tokenize(["theyre the greatest", "greatest"])
    assert decoded(tokenizer.detokenize(ids)) == ["theyre the greatest", "greatest"]
    assert decoded(tokenizer.detokenize([[9, 4]])) == ["est they"]  # begins inside a word


def test_a_stranger_does_not_spoil_its_neighbours():
    tokenizer = WordPiece.build(PIECES)
    assert pieces(tokenizer, "hello😀") == ["hello", "⁇"]
    assert pieces(tokenizer, "hello\x97they\0the") == ["hello", "⁇", "they", "⁇", "the"]
    rows = tokenizer.tokenize(["x" * 5000, "they " * 20_000, "字" * 33_000])
    assert rows.row_lengths().numpy().tolist() == [1, 20_000, 33_000]


@pytest.mark.parametrize("size", [6, 7, 50])
def test_an_unknown_token_may_be_anywhere_in_the_vocabulary(size, tmp_path):
    module = tf.Module()
    for name, place in (("first", 0), ("middle", size // 2), ("last", size - 1)):
        entries = list((string.ascii_lowercase[:-1] + string.ascii_uppercase)[: size - 1])
        entries.insert(place, "[UNK]")
        tokenizer = WordPiece.build(entries)
        assert tokenizer.tokenize(["zzzz", "a"]).to_list() == [[UNK_ID], [entries.index("a") + 4]]
        spec = [tf.TensorSpec([None], tf.string)]
        setattr(module, name, tf.function(tokenizer.tokenize, spec, autograph=False))
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    for name in ("first", "middle", "last"):
        assert getattr(loaded, name)(tf.constant(["zzzz"])).to_list() == [[UNK_ID]]


@pytest.mark.parametrize("size", [60, 100, 160])
def test_learnt_pieces_spell_all_words_within_the_size(size):
    lines = ["the lower the lowest", "newer and newest, low and new", "widest; wider than the new ones"] * 5
    tokenizer = WordPiece.train(lines, vocabulary_size=size)
    assert tokenizer.vocabulary_size <= size
    rows = tokenizer.tokenize(lines)
    assert UNK_ID not in rows.flat_values
    assert decoded(tokenizer.detokenize(rows))[0] == lines[0]
    assert WordPiece.train(lines, vocabulary_size=size).pieces == tokenizer.pieces
    if size == 160:
        assert pieces(tokenizer, "the newest") == ["the", "newest"]


def test_little_room_goes_to_the_most_frequent_characters():
    tokenizer = WordPiece.train(["aab a aa", "b", "你好 你"], vocabulary_size=8)
    assert tokenizer.pieces == ("a", "##a", "你", "##b")
    assert pieces(tokenizer, "aab b 你") == ["a", "##a", "##b", "⁇", "你"]


def test_rare_words_case_and_nuls():
    lines = ["Common COMMON", "rare", "nul\0nul"]
    tokenizer = WordPiece.train(lines, vocabulary_size=60, min_count=2, lowercase=True)
    assert pieces(tokenizer, "cOmMoN nul") == ["common", "nul"]
    assert pieces(tokenizer, "rare") == ["⁇"]
    one = WordPiece.train(["a a b"], vocabulary_size=60, max_words=1)
    assert one.pieces == ("a",)


def test_what_is_no_vocabulary_is_refused():
    with pytest.raises(ValueError, match="pieces holds '##a' twice, at places 0 and 1"):
        WordPiece.build(["##a", "##a"])
    with pytest.raises(ValueError, match=r"pieces must not hold a NUL, got 'a\\x00' at place 1"):
        WordPiece.build(["b", "a\0"])
    with pytest.raises(ValueError, match="max_words must be an integer of at least 1, got 0"):
        WordPiece.train(["a"], vocabulary_size=60, max_words=0)
    with pytest.raises(ValueError, match="vocabulary_size must be an integer of at least 5, got 4"):
        WordPiece.train(["a"], vocabulary_size=4)
    with pytest.raises(ValueError, match="lines hold no text"):
        WordPiece.train(["\0", " "], vocabulary_size=60)


def test_any_piece_survives_save_and_load(tmp_path):
    odd = ["a b", "\r", "\n", "##\r\n", "\u2028", "##\x85", " ", "  ", "##", "###", "😀", "[UNK]", "a"]
    WordPiece.build(odd).save(tmp_path)
    loaded = text.load(tmp_path)
    assert isinstance(loaded, WordPiece)
    assert loaded.pieces == tuple(odd)
    assert loaded.tokenize(["a zz #"]).to_list() == [[16, UNK_ID, UNK_ID]]
    assert decoded(loaded.detokenize([[4, 7, 8, 12]])) == ["a b\r\n \u2028 ##"]
