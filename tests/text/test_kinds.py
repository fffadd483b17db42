"""What holds for every kind of tokenizer: control ids, round trips, broken input, files, graphs."""

import json
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from tokenizer_kinds import LINES, MAKE, REVERSIBLE

from keras_seq2seq import text
from keras_seq2seq.text import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Tokenizer

TEXTS = [
    "25. September 2003",
    "It costs £2,000",
    "foo 😀 bar",
    "他住在这附近\uff0c对吗\uff1f",
    "two  spaces",
    "  spaces at both ends  ",
    "a\0b\x97c\td",
    "a\u2028b\x85c\rd\x0be\n",
    "\ufeffbom",
    "<s> a </s> <pad><unk> [UNK] [PAD] ⁇",
    "",
]
BROKEN = [
    b"ab\xffc",
    b"\xf0\x9f",
    b"\xed\xa0\x80",
    "\ud800",
    "\0",
    "x" * 100_000,
    "字" * 33_000,
    "a " * 50_000,
]


def decoded(strings: Any) -> list[str]:
    return [string.decode("utf-8", "strict") for string in strings.numpy()]


@pytest.fixture(scope="module", params=MAKE)
def kind(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def tokenizer(kind) -> Tokenizer:
    return MAKE[kind](LINES)


def test_tokenize_gives_ragged_int32_without_bos_and_eos(tokenizer):
    rows = tokenizer.tokenize(["the fox", "", "sea"])
    assert isinstance(rows, tf.RaggedTensor)
    assert (rows.dtype, rows.row_splits.dtype) == (tf.int32, tf.int64)
    assert rows.shape.as_list() == [3, None]
    assert rows.row_lengths().numpy()[1] == 0
    assert min(rows.values.numpy()) > EOS_ID
    assert max(rows.values.numpy()) < tokenizer.vocabulary_size
    assert tokenizer.tokenize([]).shape[0] == 0
    one = tokenizer.tokenize("the fox")
    np.testing.assert_array_equal(one, rows[0])
    assert decoded(tokenizer.detokenize(one[tf.newaxis])) == ["the fox"]


def test_text_never_gives_control_ids(tokenizer):
    for line in (*TEXTS, *BROKEN):
        assert not {PAD_ID, BOS_ID, EOS_ID} & set(tokenizer.tokenize([line]).values.numpy())


def test_reversible_kinds_give_the_text_back(kind, tokenizer):
    if kind in REVERSIBLE:
        assert decoded(tokenizer.detokenize(tokenizer.tokenize(TEXTS))) == TEXTS
        assert UNK_ID not in tokenizer.tokenize(TEXTS).values


def test_the_second_pass_changes_nothing(tokenizer):
    first = tokenizer.detokenize(tokenizer.tokenize([*TEXTS, "never seen: ЖЩ ⁇⁇ Ω"]))
    assert decoded(tokenizer.detokenize(tokenizer.tokenize(first))) == decoded(first)


def test_detokenize_stops_at_the_first_eos_and_hides_control_ids(tokenizer):
    a, b = (int(ids[0]) for ids in tokenizer.tokenize(["t", "s"]).to_list())
    plain = decoded(tokenizer.detokenize([[a, b], [b], [a, b]]))
    ids = [[BOS_ID, a, b, EOS_ID, PAD_ID], [BOS_ID, b, EOS_ID, a, a], [PAD_ID, BOS_ID, a, BOS_ID, b]]
    assert decoded(tokenizer.detokenize(ids)) == plain
    assert decoded(tokenizer.detokenize([[EOS_ID, a], []])) == ["", ""]
    assert decoded(tokenizer.detokenize([[UNK_ID]])) == ["⁇"]
    assert tokenizer.detokenize(np.arange(24).reshape(2, 3, 4)).shape == [2, 3]


def test_any_ids_give_valid_utf8(tokenizer, rng):
    ids = rng.integers(-3, tokenizer.vocabulary_size + 9, [300, 20])
    assert len(decoded(tokenizer.detokenize(ids))) == 300


def test_broken_and_huge_input_does_not_stop_it(kind, tokenizer):
    tokenizer.tokenize(["x"])
    rows = tokenizer.tokenize(BROKEN)
    assert all(rows.row_lengths().numpy() > 0)
    assert len(decoded(tokenizer.detokenize(rows))) == len(BROKEN)
    if kind in REVERSIBLE:
        assert decoded(tokenizer.detokenize(tokenizer.tokenize([b"ab\xffc"]))) == ["ab\ufffdc"]


def test_seeding_leaves_it_intact(tokenizer):
    before = tokenizer.tokenize(LINES).to_list()
    dataset = tf.data.Dataset.from_tensors(tf.constant(LINES)).map(tokenizer.tokenize)
    for seed in (1, 2):
        keras.utils.set_random_seed(seed)
        tf.random.set_seed(seed)
        assert tokenizer.tokenize(LINES).to_list() == before
        assert next(iter(dataset)).to_list() == before


def test_saved_and_loaded_it_is_the_same(kind, tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    tokenizer.save(tmp_path)
    for loaded in (text.load(tmp_path), type(tokenizer).load(tmp_path)):
        assert type(loaded) is type(tokenizer)
        assert repr(loaded) == repr(tokenizer)
        assert loaded.vocabulary_size == tokenizer.vocabulary_size
        assert loaded.tokenize(TEXTS).to_list() == tokenizer.tokenize(TEXTS).to_list()
        every = np.arange(tokenizer.vocabulary_size)[:, np.newaxis]
        assert decoded(loaded.detokenize(every)) == decoded(tokenizer.detokenize(every))


def test_damaged_files_are_refused(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    for path in tmp_path.glob("*.json"):
        if path.name == "tokenizer.json":
            continue
        whole = path.read_text()
        for content in (
            whole[: len(whole) // 2],
            "[]",
            "{}",
            json.dumps(dict.fromkeys(json.loads(whole), 5)),
        ):
            path.write_text(content)
            with pytest.raises(ValueError, match=f"{path.name}' is damaged") as caught:
                text.load(tmp_path)
            assert "\n" not in str(caught.value)
