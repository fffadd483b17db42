"""ParallelText: alignment, columns, what is refused, pairs in Python and as a dataset."""

import gzip
import pathlib

import pytest
import tensorflow as tf

from keras_seq2seq.data import ParallelText
from keras_seq2seq.text import Characters, SentencePiece, WordPiece, Words

TATOEBA = pathlib.Path(__file__).parents[2] / "examples" / "data" / "tatoeba"


def write(path: pathlib.Path, content: str | bytes) -> pathlib.Path:
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def elements(text: ParallelText) -> list[tuple[bytes, bytes]]:
    return [(source.numpy(), target.numpy()) for source, target in text.dataset()]


def test_two_files_give_pairs(tmp_path):
    for end in ("", ".gz"):
        source, target = write(tmp_path / f"a{end}", "one\n\nthree"), write(tmp_path / f"b{end}", "1\n2\n3\n")
        text = ParallelText(source, str(target))
        assert len(text) == 3
        for _ in range(2):  # again and again
            assert list(text.pairs()) == [("one", "1"), ("", "2"), ("three", "3")]
        assert list(text.sources()) == ["one", "", "three"]
        assert list(text.targets()) == ["1", "2", "3"]
        assert elements(text) == [(b"one", b"1"), (b"", b"2"), (b"three", b"3")]
        assert text.dataset().cardinality() == 3


def test_the_dataset_is_of_scalar_strings_and_keeps_nul(tmp_path):
    text = ParallelText(write(tmp_path / "a", b"x\0y\0\nab\xffc\n"), write(tmp_path / "b", "\0\nb\u2028\n"))
    source, target = text.dataset().element_spec
    assert source.shape == target.shape == []
    assert elements(text) == [(b"x\0y\0", b"\0"), ("ab\ufffdc".encode(), "b\u2028".encode())]


def test_more_lines_than_a_block_keep_their_order(tmp_path):
    numbers = [str(number) for number in range(2500)]
    text = ParallelText(write(tmp_path / "a", "\n".join(numbers)), write(tmp_path / "b", "\n".join(numbers)))
    assert elements(text) == [(number.encode(),) * 2 for number in numbers]


def test_several_files_are_read_one_after_the_other(tmp_path):
    sources = [write(tmp_path / "a1", "1\n2"), write(tmp_path / "a2.gz", "\ufeff3\n")]  # each BOM is dropped
    targets = [write(tmp_path / "b1.gz", "x\ny"), write(tmp_path / "b2", "z\n")]
    assert list(ParallelText(sources, targets).pairs()) == [("1", "x"), ("2", "y"), ("3", "z")]
    with pytest.raises(ValueError, match="source names 2 files and target 1"):
        ParallelText(sources, targets[0])


def test_misaligned_files_are_refused_with_both_names_and_counts(tmp_path):
    five, four = write(tmp_path / "five.en", "1\n2\n3\n4\n5\n"), write(tmp_path / "four.de.gz", "1\n2\n3\n4")
    with pytest.raises(ValueError, match=r"five.en' has 5 lines and .*four.de.gz' has 4, expected") as caught:
        ParallelText(five, four)
    assert "\n" not in str(caught.value)
    level = write(tmp_path / "level.de", "1\n2\n3\n4\n5")  # no LF at the end
    assert len(ParallelText(five, level)) == 5
    # Equal in sum, but not file by file.
    with pytest.raises(ValueError, match=r"has 5 lines and .* has 4"):
        ParallelText([five, four], [four, five])


def test_columns_of_a_tsv(tmp_path):
    path = write(tmp_path / "t.tsv.gz", "\ufeffa\tb\tc\r\nd\te\tf\r\n\r\n")
    assert list(ParallelText.from_tsv(path).pairs()) == [("a", "b"), ("d", "e"), ("", "")]
    assert list(ParallelText.from_tsv([path, path], columns=(2, 0)).pairs())[:2] == [("c", "a"), ("f", "d")]
    with pytest.raises(ValueError, match=r"t.tsv.gz' has 3 columns in line 1, expected at least 4"):
        ParallelText.from_tsv(path, columns=(0, 3))
    path = write(tmp_path / "t.tsv", "a\tb\nc\n")
    with pytest.raises(ValueError, match=r"t.tsv' has 1 columns in line 2, expected at least 2"):
        ParallelText.from_tsv(path)
    with pytest.raises(ValueError, match=r"columns must be numbers from 0, got \(0, -1\)"):
        ParallelText.from_tsv(path, columns=(0, -1))


def test_what_cannot_be_read_is_refused_at_the_start(tmp_path):
    some, none = write(tmp_path / "some", "a\n"), write(tmp_path / "none", "")
    (tmp_path / "bad.gz").write_bytes(b"a\n")
    with pytest.raises(FileNotFoundError, match="gone"):
        ParallelText(some, tmp_path / "gone")
    with pytest.raises(FileNotFoundError, match="gone"):
        ParallelText.from_tsv(tmp_path / "gone")
    with pytest.raises(ValueError, match="no gzip file"):
        ParallelText(some, tmp_path / "bad.gz")
    with pytest.raises(ValueError, match="not one line in "):
        ParallelText(none, none)
    with pytest.raises(ValueError, match="not one line in "):
        ParallelText.from_tsv(none)


def test_pairs_from_python():
    pairs = [("a", "b"), ("c\0", "")]
    text = ParallelText.from_pairs(pairs)
    assert (len(text), list(text.pairs())) == (2, pairs)
    assert elements(text) == [(b"a", b"b"), (b"c\0", b"")]
    with pytest.raises(ValueError, match="pairs can be read only once"):
        ParallelText.from_pairs(iter(pairs))
    with pytest.raises(ValueError, match=r"pairs must hold pairs of strings, got \('a',\)"):
        ParallelText.from_pairs([("a", "b"), ("a",)])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="pairs must hold pairs of strings, got 'ab'"):
        ParallelText.from_pairs(["ab"])  # type: ignore[list-item]


@pytest.mark.parametrize(("split", "count"), [("train", 26_155), ("val", 1000), ("test", 1000)])
def test_the_corpus_of_the_examples_is_whole(split, count):
    text = ParallelText.from_tsv(TATOEBA / f"{split}.en-cmn.tsv.gz")
    assert len(text) == count
    assert all(source.strip() and target.strip() for source, target in text.pairs())
    credits = ParallelText.from_tsv(TATOEBA / f"{split}.en-cmn.tsv.gz", columns=(0, 2)).targets()
    assert all("tatoeba.org" in credit and "CC-BY 2.0" in credit for credit in credits)


def test_patterns_find_files_in_order(tmp_path):
    for number in (10, 2, 1):
        write(tmp_path / f"news.{number:02}.en", f"a{number}\n")
        write(tmp_path / f"news.{number:02}.de.gz", f"b{number}\n")
    text = ParallelText(tmp_path / "news.*.en", str(tmp_path / "news.??.de.gz"))
    assert list(text.pairs()) == [("a1", "b1"), ("a2", "b2"), ("a10", "b10")]
    one = ParallelText([tmp_path / "news.[0]1.en"], [tmp_path / "news.01.de.gz"])
    assert list(one.pairs()) == [("a1", "b1")]
    write(tmp_path / "odd[1].en", "odd\n")  # a name, not a pattern
    assert list(ParallelText(tmp_path / "odd[1].en", tmp_path / "news.01.en").pairs()) == [("odd", "a1")]
    with pytest.raises(FileNotFoundError, match=r"gone.\*' finds no file"):
        ParallelText(tmp_path / "gone.*", tmp_path / "gone.*")
    with pytest.raises(ValueError, match="source names 3 files and target 1"):
        ParallelText(tmp_path / "news.*.en", tmp_path / "news.01.de.gz")
    write(tmp_path / "t2.tsv", "c\td\n")
    write(tmp_path / "t1.tsv", "a\tb\n")
    assert list(ParallelText.from_tsv(tmp_path / "t?.tsv").pairs()) == [("a", "b"), ("c", "d")]


def test_pairs_from_a_dataset():
    sources, targets = [b"one", b"ab\xffc", "\u2028\0ü".encode()] * 700, [b"1", b"2", b""] * 700
    pairs = tf.data.Dataset.from_tensor_slices((sources, targets))
    expected = [("one", "1"), ("ab\ufffdc", "2"), ("\u2028\0ü", "")] * 700
    for dataset in (pairs, pairs.filter(lambda *_: True)):  # of known and of unknown cardinality
        text = ParallelText.from_dataset(dataset)
        assert len(text) == 2100
        for _ in range(2):
            assert list(text.pairs()) == expected
    text = ParallelText.from_pairs([("a", "b"), ("c", "d")])
    assert list(ParallelText.from_dataset(text.dataset()).pairs()) == [("a", "b"), ("c", "d")]
    with pytest.raises(ValueError, match="dataset must come to an end"):
        ParallelText.from_dataset(pairs.repeat())
    for wrong in (pairs.batch(2), pairs.map(lambda one, _: one), tf.data.Dataset.range(3)):
        with pytest.raises(ValueError, match="dataset must hold pairs of scalar strings, got "):
            ParallelText.from_dataset(wrong)
    with pytest.raises(ValueError, match="not one line in dataset"):
        ParallelText.from_dataset(pairs.take(0))


LINES = ["the  quick brown fox", "jumps, over the lazy dog", "他住在这附近", "and \u2028 that's\rit"] * 5


@pytest.mark.parametrize(
    "train",
    [
        Characters.train,
        Words.train,
        lambda lines: SentencePiece.train(lines, vocabulary_size=70),
        lambda lines: WordPiece.train(lines, vocabulary_size=70),
    ],
)
def test_bom_and_crlf_change_neither_vocabulary_nor_ids(tmp_path, train):
    content = "".join(line + "\n" for line in LINES).encode()
    paths = [
        write(tmp_path / "lf", content),
        write(tmp_path / "crlf", b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n")),
    ]
    made = []
    for path in paths:
        text = ParallelText(path, path)
        tokenizer = train(text.sources())
        ((inputs, labels, _),) = text.batches(tokenizer, tokens_per_batch=4096, shuffle=False, buckets=[64])
        ids = inputs["source"].numpy()
        tokens = tokenizer.detokenize(ids[ids > 3][:, None]).numpy()
        assert not [token for token in tokens if "\ufeff".encode() in token or token.endswith(b"\r\n")]
        made.append((tokenizer.vocabulary_size, ids.tolist(), labels.numpy().tolist()))
    assert made[0] == made[1]
