"""Files that are meant to do harm: one rule for all lines, and damage is an error that names its file."""

import gzip
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from fuzz.strange import BYTES, DAMAGE, Damage, outcome
from hypothesis import assume
from hypothesis import strategies as st

from keras_seq2seq.data import ParallelText, Records, Text, read_lines, write_records
from keras_seq2seq.data.lines import count_lines
from keras_seq2seq.text import Bytes


def written(path: Path, content: bytes) -> Path:
    """Write a file, gzipped if its name says so."""
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    return path


def lines_of(content: bytes) -> list[str]:
    """Say what the lines are: the rule of `data/lines.py` in the plainest Python."""
    lines = content.split(b"\n")
    ended = [line.removesuffix(b"\r") for line in lines[:-1]]
    text = [line.decode("utf-8", "replace") for line in ended + ([lines[-1]] if lines[-1] else [])]
    return [text[0].removeprefix("\ufeff"), *text[1:]] if text else []


@pytest.mark.parametrize("name", ["lines.txt", "lines.txt.gz"])
def test_all_readers_agree_about_lines(fuzz, tmp_path, name):
    @fuzz(150, content=BYTES)
    def check(content: bytes) -> None:
        assume(name.endswith(".gz") or not content.startswith(b"\x1f\x8b"))
        expected, path = lines_of(content), written(tmp_path / name, content)
        assert list(read_lines(path)) == expected
        assert list(read_lines(io.BytesIO(content))) == expected
        assert count_lines(path) == len(expected)
        text = content.replace(b"\r\n", b"\n").decode("utf-8", "replace").removeprefix("\ufeff")
        if text:
            assert len(Text(path)) == len(text)
        else:
            with pytest.raises(ValueError, match=name):
                Text(path)


def test_pairs_are_the_lines_of_both_files(fuzz, tmp_path):
    @fuzz(100, source=BYTES, target=BYTES)
    def check(source: bytes, target: bytes) -> None:
        assume(not source.startswith(b"\x1f\x8b"))
        paths = written(tmp_path / "a.txt", source), written(tmp_path / "b.txt.gz", target)
        sides = lines_of(source), lines_of(target)
        if len(sides[0]) == len(sides[1]) > 0:
            expected = list(zip(*sides, strict=True))
            text = ParallelText(*paths)
            assert list(text.pairs()) == expected
            assert text.fingerprint() == ParallelText.from_pairs(expected).fingerprint()
            return
        with pytest.raises(ValueError, match=r"a\.txt.*expected as many in both|not one line in .*a\.txt"):
            ParallelText(*paths)


def test_columns_are_cut_at_tabs_alone(fuzz, tmp_path):
    @fuzz(100, content=st.one_of(BYTES, st.lists(BYTES, max_size=4).map(b"\t".join)))
    def check(content: bytes) -> None:
        assume(not content.startswith(b"\x1f\x8b"))
        path = written(tmp_path / "table.tsv", content)
        cells = [line.split("\t") if line.strip() or "\t" in line else ["", ""] for line in lines_of(content)]
        if cells and all(len(row) > 1 for row in cells):
            assert list(ParallelText.from_tsv(path).pairs()) == [(row[0], row[1]) for row in cells]
            return
        with pytest.raises(ValueError, match=r"table.tsv' has \d+ columns in line|not one line in .*table"):
            ParallelText.from_tsv(path)


def test_a_damaged_gzip_file_is_refused_or_read_right(fuzz, tmp_path):
    path = tmp_path / "lines.gz"

    @fuzz(200, content=BYTES, damage=DAMAGE)
    def check(content: bytes, damage: Damage) -> None:
        path.write_bytes(damage(gzip.compress(content)))
        found, error = outcome(lambda: list(read_lines(path)))
        count, other = outcome(lambda: count_lines(path))
        assert error == other
        if error:
            assert re.search("lines.gz' .*gzip file", error)
        else:
            assert (found, count) == (lines_of(content), len(found))


def test_bytes_that_call_themselves_gzip_are_refused(fuzz, tmp_path):
    path = tmp_path / "lines.gz"

    @fuzz(100, start=st.sampled_from([b"", b"\x1f\x8b", b"\x1f\x8b\x08", b"\x1f\x8b\x08\x1f"]), rest=BYTES)
    def check(start: bytes, rest: bytes) -> None:
        path.write_bytes(start + rest)
        with pytest.raises(ValueError, match=r"lines.gz' .*gzip file"):
            list(read_lines(path))


PAIRS = [(f"source {number}", f"target {number}" * (number % 5)) for number in range(60)]


def batches(directory: Path) -> list[Any]:
    """Read records, and give their batches as plain lists."""
    made = Records(directory, Bytes()).batches(sentences_per_batch=30, seed=1, buckets=[64])
    return [[part.tolist() for part in tf.nest.flatten(batch)] for batch in made.as_numpy_iterator()]


@pytest.mark.parametrize("tokenizers", [(), (Bytes(),)], ids=["text", "ids"])
def test_damaged_records_are_refused_by_name_or_read_right(fuzz, tmp_path, tokenizers):
    directory = tmp_path / "records"
    write_records(directory, ParallelText.from_pairs(PAIRS), *tokenizers)
    whole = {path: path.read_bytes() for path in sorted(directory.iterdir())}
    expected = batches(directory)

    @fuzz(15, path=st.sampled_from(list(whole)), damage=DAMAGE)
    def check(path: Path, damage: Damage) -> None:
        path.write_bytes(damage(whole[path]))
        found, error = outcome(lambda: batches(directory))
        path.write_bytes(whole[path])
        assert found == expected or (error and (path.suffix == ".json" or path.name in error))


def test_records_that_somebody_forged_are_refused_or_hold_ids(fuzz, tmp_path):
    """Their checksums are right and what they hold is not, which no disk does by chance."""
    directory = tmp_path / "records"
    write_records(directory, ParallelText.from_pairs(PAIRS), Bytes())
    (path,) = directory.glob("*.tfrecord")
    (record,) = tf.data.TFRecordDataset(str(path)).as_numpy_iterator()
    card = json.loads((directory / "records.json").read_text())

    @fuzz(15, damage=DAMAGE)
    def check(damage: Damage) -> None:
        with tf.io.TFRecordWriter(str(path)) as writer:
            writer.write(damage(record))
        (directory / "records.json").write_text(json.dumps(card | {"sizes": [path.stat().st_size]}))
        found, error = outcome(lambda: batches(directory))
        assert error or all(0 <= id_ < Bytes().vocabulary_size for id_ in ids_of(found))


def ids_of(batches: list[Any]) -> Iterator[int]:
    """Give every id of batches of plain lists."""
    for *sides, _ in batches:
        for rows in sides:
            for row in rows:
                yield from row
