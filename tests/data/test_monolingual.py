"""Text for language models: what it is, blocks of one stream, batches of lines."""

import gzip
import hashlib

import numpy as np
import pytest
import tensorflow as tf

from keras_seq2seq.data import Text
from keras_seq2seq.text import BOS_ID, EOS_ID, Bytes, Characters

TEXT = "one\ntwo lone\rCR\nü\u0085x\u2028y\x0bz\0w\n\n five \n"


def letters(count: int) -> Text:
    """Give a text of different characters."""
    return Text.from_string("".join(chr(0x4E00 + number) for number in range(count)))


def arrays(dataset: tf.data.Dataset) -> list[tuple[np.ndarray, ...]]:
    return [
        (inputs["target"].numpy(), labels.numpy(), weights.numpy()) for inputs, labels, weights in dataset
    ]


@pytest.mark.parametrize("end", ["", "\n"])
def test_the_text_is_that_of_the_file(tmp_path, end):
    plain, crlf, zipped = tmp_path / "a.txt", tmp_path / "b.txt", tmp_path / "c.txt.gz"
    content = TEXT.removesuffix("\n") + end
    plain.write_bytes(content.encode())
    crlf.write_bytes(b"\xef\xbb\xbf" + content.replace("\n", "\r\n").encode())
    zipped.write_bytes(gzip.compress(content[:9].encode()) + gzip.compress(content[9:].encode()))
    for text in (Text(plain), Text(str(crlf)), Text(zipped), Text.from_string(content)):
        assert "".join(text.pieces()) == content
        assert len(text) == len(content)
        assert list(text.lines()) == ["one", "two lone\rCR", "ü\u0085x\u2028y\x0bz\0w", "", " five "]


def test_files_are_read_one_after_the_other(tmp_path):
    for name, content in (("a", "1\n2"), ("b", ""), ("c", "3\n"), ("d", "4")):
        (tmp_path / name).write_text(content)
    text = Text([tmp_path / name for name in "abcd"])
    assert "".join(text.pieces()) == "1\n2\n3\n4"
    assert list(text.lines()) == ["1", "2", "3", "4"]


def test_what_cannot_be_read_is_refused_at_the_start(tmp_path):
    with pytest.raises(FileNotFoundError, match="gone' does not exist"):
        Text(tmp_path / "gone")
    (tmp_path / "none").write_text("\ufeff")
    (tmp_path / "bad.gz").write_text("a")
    with pytest.raises(ValueError, match="no gzip file"):
        Text(tmp_path / "bad.gz")
    with pytest.raises(ValueError, match=r"There is no text in .*none"):
        Text([tmp_path / "none"])
    with pytest.raises(ValueError, match="There is no text in text"):
        Text.from_string("")


def test_invalid_text_is_replaced(tmp_path):
    (tmp_path / "a").write_bytes(b"ab\xffc\n\0")
    assert "".join(Text(tmp_path / "a").pieces()) == "ab\ufffdc\n\0"
    assert "\ufffd" in "".join(Text.from_string("a\ud800").pieces())


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_text_is_split_at_a_character(tmp_path, share):
    (tmp_path / "a").write_text(TEXT)
    for text in (Text(tmp_path / "a"), Text.from_string(TEXT)):
        place = int(share * len(TEXT))
        first, second = text.split(share)
        assert ("".join(first.pieces()), "".join(second.pieces())) == (TEXT[:place], TEXT[place:])
        assert (len(first), len(second)) == (place, len(TEXT) - place)
        third, fourth = second.split(0.5)
        assert "".join((*third.pieces(), *fourth.pieces())) == TEXT[place:]
    for bad in (0.0, 1.0, 0.001, -1, 2):
        with pytest.raises(ValueError, match=r"share must leave text on both sides of 34 characters, got"):
            Text.from_string(TEXT).split(bad)


def test_pieces_are_whole_lines_and_long():
    content = "".join(f"line {number}\n" for number in range(20_000)) + "x" * 100_000 + "\ny"
    pieces = list(Text.from_string(content).pieces())
    assert "".join(pieces) == content
    assert all(piece.endswith("\n") and len(piece) >= 1 << 15 for piece in pieces[:-1])


def test_consecutive_blocks_in_full():
    tokenizer = Characters.build("abcdefg\n")
    batches = arrays(Text.from_string("abc\ndefg").blocks(tokenizer, 3, 2, shuffle=False))
    assert [b[0].tolist() for b in batches] == [[[2, 4, 5], [6, 11, 7]], [[8, 9, 0], [2, 0, 0]]]
    assert [b[1].tolist() for b in batches] == [[[4, 5, 6], [11, 7, 8]], [[9, 10, 0], [0, 0, 0]]]
    np.testing.assert_allclose(batches[0][2], np.full([2, 3], 1 / 6), rtol=1e-6)
    np.testing.assert_allclose(batches[1][2], np.array([[0.5, 0.5, 0], [0, 0, 0]]), rtol=1e-6)


@pytest.mark.parametrize(
    ("count", "length", "rows"), [(1, 64, 3), (384, 64, 3), (385, 64, 3), (99_999, 7, 5)]
)
def test_consecutive_blocks_cover_the_whole_text_once(count, length, rows):
    text = letters(20_000) if count > 20_000 else letters(count)
    tokenizer = Characters.train(text.pieces())
    dataset = text.blocks(tokenizer, length, rows, shuffle=False)
    assert dataset.element_spec[1].shape == [rows, length]
    for _ in range(2):
        batches = arrays(dataset)
        assert dataset.cardinality() == len(batches)
        real = np.concatenate([weights.ravel() > 0 for *_, weights in batches])
        target, labels = (np.concatenate([b[side].ravel() for b in batches])[real] for side in (0, 1))
        found = tokenizer.detokenize(labels[np.newaxis]).numpy()[0].decode()
        assert found == "".join(text.pieces())
        assert target[0] == BOS_ID
        np.testing.assert_array_equal(target[1:], labels[:-1])
        for target, labels, weights in batches:
            np.testing.assert_allclose(weights.sum(dtype=np.float64), 1, rtol=1e-6)
            assert not labels[weights == 0].any()
            assert set(target[weights == 0]) <= {0, BOS_ID}
            assert (target[:, 0] > 0).all()


def test_drawn_blocks_are_windows_of_the_stream():
    text = letters(500)
    tokenizer = Characters.build("".join(text.pieces()))
    dataset = text.blocks(tokenizer, 64, 12, steps=300, seed=1, bos_share=0.25)
    batches = arrays(dataset)
    assert dataset.cardinality() == len(batches) == 300
    target, labels, weights = (np.stack([batch[side] for batch in batches]) for side in range(3))
    assert (target.dtype, labels.dtype, weights.dtype) == (np.int32, np.int32, np.float32)
    assert target.shape == labels.shape == weights.shape == (300, 12, 64)
    np.testing.assert_allclose(weights, 1 / (12 * 64), rtol=1e-6)
    assert (np.diff(labels) == 1).all()
    np.testing.assert_array_equal(target[..., 1:], labels[..., :-1])
    bos = target[..., 0] == BOS_ID
    assert (target[..., 0] == labels[..., 0] - 1)[~bos].all()
    assert 0.2 < bos.mean() < 0.3
    # All places are drawn, the first and the last too, and about as often: 8 times.
    places = np.bincount(labels[..., 0].ravel() - 4)
    assert len(places) == 500 - 64 + 1
    assert places[0] > 0
    assert (places > 0).mean() > 0.99
    assert places.max() < 30


def test_without_a_share_bos_is_at_the_start_of_the_text_alone():
    text = letters(100)
    tokenizer = Characters.build("".join(text.pieces()))
    dataset = text.blocks(tokenizer, 8, 4, steps=200, seed=1, bos_share=0.0)
    first = np.concatenate([target[:, 0] for target, *_ in arrays(dataset)])
    labels = np.concatenate([labels[:, 0] for _, labels, _ in arrays(dataset)])
    assert set(first) == {BOS_ID, *range(4, 4 + 100 - 8)}
    assert len(labels) == 800
    always = text.blocks(tokenizer, 8, 4, bos_share=1.0)
    assert always.cardinality() == 4  # holds the text once
    assert all((target[:, 0] == BOS_ID).all() for target, *_ in arrays(always))


def digest(dataset: tf.data.Dataset) -> str:
    parts = [array.tobytes() for batch in arrays(dataset) for array in batch]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def test_the_seed_decides_the_blocks():
    text, tokenizer = letters(500), Bytes()

    def epochs(seed: int | None) -> list[str]:
        dataset = text.blocks(tokenizer, 16, 8, seed=seed)
        return [digest(dataset), digest(dataset)]

    seven = epochs(7)
    assert seven == epochs(7)
    assert len({*seven, *epochs(8), *epochs(None), *epochs(None)}) == 8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"block_length": 0}, "block_length must be an integer of at least 1, got 0"),
        ({"batch_size": 0}, "batch_size must be an integer of at least 1, got 0"),
        ({"steps": 0}, "steps must be an integer of at least 1, got 0"),
        ({"steps": 5, "shuffle": False}, "steps must be None without shuffle, got 5"),
        ({"bos_share": 1.5}, r"bos_share must be from 0 to 1, got 1\.5"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
        ({"block_length": 11}, "block_length=11 is more than the 10 ids of the text"),
    ],
)
def test_bad_arguments_of_blocks_get_one_sentence(options, message):
    text = letters(10)
    tokenizer = Characters.train(text.pieces())
    with pytest.raises(ValueError, match=message):
        text.blocks(tokenizer, **{"block_length": 4, "batch_size": 2, **options})


def test_blocks_are_made_of_a_file_and_may_be_given_up():
    text = Text.from_string("".join(f"some line {number}\n" for number in range(60_000)))
    dataset = text.blocks(Bytes(), 64, 12, steps=1000, seed=1)
    iterator = iter(dataset)
    next(iterator)
    assert sum(1 for _ in iterator) == 999
    for _ in range(3):
        next(iter(dataset))  # given up


def test_lines_are_examples(caplog):
    text = Text.from_string("ab\n\nabc\n" + "x" * 9 + "\n \t\na\r\n")
    tokenizer = Characters.build("abcx")
    dataset = text.batches(tokenizer, tokens_per_batch=64, max_length=8, shuffle=False, width_multiple=4)
    ((target, labels, weights),) = arrays(dataset)
    assert target.tolist() == [[2, 4, 5, 0], [2, 4, 5, 6], [2, 4, 0, 0]]
    assert labels.tolist() == [[4, 5, 3, 0], [4, 5, 6, 3], [4, 3, 0, 0]]
    np.testing.assert_allclose(weights, np.array([[1, 1, 1, 0], [1, 1, 1, 1], [1, 1, 0, 0]]) / 9, rtol=1e-6)
    line = "3 of 6 lines dropped: 1 longer than 8 tokens, 2 blank"
    assert caplog.messages == [line]
    assert str(text.report) == line


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle_buffer": 50},
        {"shuffle_buffer": 50, "count": False},
        {"tokens_per_batch": None, "sentences_per_batch": 4},
    ],
)
@pytest.mark.parametrize("fixed_shapes", [False, True])
def test_every_line_is_in_one_batch_of_an_epoch(options, fixed_shapes):
    rng, tokenizer = np.random.default_rng(3), Bytes()
    lines = [f"{number:03}" + "x" * size for number, size in enumerate(rng.integers(0, 50, 203))]
    options = {"tokens_per_batch": 256, "max_length": 60, "seed": 7, **options}
    dataset = Text.from_string("\n".join(lines)).batches(tokenizer, fixed_shapes=fixed_shapes, **options)
    orders = []
    for _ in range(2):
        batches, found = arrays(dataset), []
        for target, labels, weights in batches:
            np.testing.assert_allclose(weights.sum(dtype=np.float64), 1, rtol=1e-6)
            assert target.size <= 256
            assert (target[:, 0] == BOS_ID).all()
            real = weights.any(axis=1)
            np.testing.assert_array_equal((labels == EOS_ID).sum(axis=1), real)
            np.testing.assert_array_equal(weights > 0, labels > 0)
            np.testing.assert_array_equal(
                target[:, 1:] * (labels[:, 1:] > 0), labels[:, :-1] * (labels[:, 1:] > 0)
            )
            found += [line.decode() for line in tokenizer.detokenize(labels[real]).numpy()]
        assert sorted(found) == lines
        orders.append(found)
        assert dataset.cardinality() in (len(batches), tf.data.UNKNOWN_CARDINALITY)
        assert len({target.shape[1] for target, *_ in batches}) <= 6
    assert orders[0] != orders[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_length": 0}, "max_length must be an integer of at least 1, got 0"),
        ({"max_length": 3}, "No line is left to make a batch of: 2 of 2 lines dropped: 2 longer than 3"),
        ({"buckets": [8, 4]}, r"buckets must grow, got \(4, 4\) after \(8, 8\)"),
    ],
)
def test_bad_arguments_of_batches_get_one_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        Text.from_string("some\nlines").batches(Bytes(), **{"tokens_per_batch": 64, **options})
