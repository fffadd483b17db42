"""The command `keras-seq2seq prepare`."""

import pytest

from keras_seq2seq import cli
from keras_seq2seq.data import ParallelText, Records
from keras_seq2seq.text import Bytes, Characters

PAIRS = [(f"one {n}", f"eins {n}") for n in range(40)]


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [*PAIRS, PAIRS[0], ("same", "same"), ("x" * 90, "y")]
    for side, name in enumerate(("a.en", "a.de")):
        (tmp_path / name).write_text("".join(pair[side] + "\n" for pair in lines))
    Characters.build("abcdefghijklmnopqrstuvwxyz 0123456789").save(tmp_path / "letters")
    Bytes().save(tmp_path / "bytes")
    return tmp_path


def test_it_writes_records(data, capsys):
    assert cli.main(["prepare", "--data", "a.en", "a.de", "--output", "text"]) == 0
    assert capsys.readouterr().out == "Wrote text: 43 pairs.\n"
    text = ParallelText("a.en", "a.de")
    assert len(Records("text", Bytes(), text=text)) == 43
    options = ["--tokenizer", "letters", "bytes", "--files", "1", "--clean", "--max-ratio", "3"]
    assert cli.main(["prepare", "--data", "a.en", "a.de", "--output", "ids", *options]) == 0
    output = capsys.readouterr()
    assert output.out == "Wrote ids: 40 pairs.\n"
    assert "3 of 43 pairs dropped: 1 of a ratio above 3.0, 1 with identical sides, 1 duplicates" in output.err
    letters = Characters.load("letters")
    assert len(Records("ids", letters, Bytes(), text=ParallelText.from_pairs(PAIRS))) == 40


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--output", "letters"], "'letters' exists already"),
        (["--output", "new", "--tokenizer", "gone"], "'gone' holds no tokenizer"),
        (
            ["--output", "new", "--tokenizer", "bytes", "bytes", "bytes"],
            "--tokenizer takes one directory, or two",
        ),
        (["--output", "new", "--max-ratio", "2"], "need --clean"),
        (["--output", "new", "--clean", "--max-ratio", "0"], "max_ratio must be at least 1, got 0.0"),
    ],
)
def test_bad_input_gives_one_line_and_status_2(data, capsys, options, message):
    assert cli.main(["prepare", "--data", "a.en", "a.de", *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (data / "new").exists()
