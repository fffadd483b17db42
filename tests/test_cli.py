"""The command: what it prints, what it refuses, and that nothing is lost."""

import functools
import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import keras_seq2seq as ks
from keras_seq2seq import cli

DATA = Path(__file__).parents[1] / "examples" / "data" / "tatoeba"


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """A folder with little parallel text: two files, and one with tabs."""
    folder = tmp_path_factory.mktemp("data")
    with gzip.open(DATA / "train.en-cmn.tsv.gz", "rt", encoding="utf-8") as file:
        pairs = [next(file).split("\t")[:2] for _ in range(300)]
    (folder / "train.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    for side, name in enumerate(["en", "zh"]):
        (folder / f"train.{name}").write_text("".join(pair[side] + "\n" for pair in pairs))
        (folder / f"test.{name}").write_text("".join(pair[side] + "\n" for pair in pairs[:20]))
    (folder / "empty").touch()
    (folder / "blank").write_text("\n\n \n\u3000\n")
    return folder


@pytest.fixture(scope="module")
def trained(data) -> Path:
    """What `train` writes after two epochs."""
    arguments = ["train", "--train", "train.en", "train.zh", "--valid", "test.en", "test.zh"]
    arguments += ["--epochs", "2", "--tokens-per-batch", "1024", "--vocabulary-size", "900"]
    folder = os.getcwd()
    os.chdir(data)
    try:
        assert cli.main([*arguments, "--output", "model"]) == 0
    finally:
        os.chdir(folder)
    return data / "model"


def translate(model: Path, text: bytes, monkeypatch, capsysbinary, *options: str) -> bytes:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert cli.main(["translate", str(model), *options]) == 0
    return capsysbinary.readouterr().out


def test_train_writes_a_translator(trained):
    translator = ks.Translator.load(trained)
    assert translator.target_tokenizer is translator.source_tokenizer
    assert translator.source_tokenizer.vocabulary_size <= 900
    assert translator.model.count_params() > 500_000  # tiny
    assert [name for name in os.listdir(trained) if name.startswith(".")] == []


def test_translate_gives_a_line_for_a_line(trained, monkeypatch, capsysbinary):
    lines = ["Hello.", "", "  ", "How are you?", "a\u2028b", "Do you want a drink?"]
    expected = [text.replace("\n", " ") for text in ks.Translator.load(trained)(lines)]
    text = "\r\n".join(lines).encode()
    for size in ("1", "2", "64"):
        out = translate(trained, text, monkeypatch, capsysbinary, "--batch-size", size)
        assert out.decode().split("\n") == [*expected, ""]
    assert translate(trained, b"", monkeypatch, capsysbinary) == b""


def test_a_translation_with_a_line_break_stays_one_line(trained, monkeypatch, capsysbinary):
    monkeypatch.setattr(ks.Translator, "__call__", lambda self, texts, **options: ["a\nb\rc"] * len(texts))
    assert translate(trained, b"x\ny\n", monkeypatch, capsysbinary) == b"a b c\na b c\n"


def test_sampled_lines_depend_on_no_chunk(trained, tmp_path, monkeypatch, capsysbinary):
    sampling = ks.search.Sampling(seed=1)
    translator = ks.Translator.load(trained, strategy=sampling, max_length=8)
    translator.save(tmp_path)
    lines = ["Hello."] * 20  # more than are read at a time with a batch size of 1
    out = translate(tmp_path, "\n".join(lines).encode(), monkeypatch, capsysbinary, "--batch-size", "1")
    assert out.decode().split("\n") == [*translator(lines), ""]


def test_invalid_bytes_are_one_line_too(trained, monkeypatch, capsysbinary):
    out = translate(trained, b"a\xffb\n\x00\nc", monkeypatch, capsysbinary)
    assert out.count(b"\n") == 3
    out.decode()


def test_a_long_line_is_cut_with_one_line_of_warning(trained, monkeypatch, capsysbinary):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"word " * 5000)))
    monkeypatch.setattr(
        ks.Translator, "load", functools.partial(ks.Translator.load, max_length=5, length_factor=0.0)
    )
    assert cli.main(["translate", str(trained)]) == 0
    captured = capsysbinary.readouterr()
    assert captured.out.count(b"\n") == 1
    assert captured.err.decode() == (
        "keras-seq2seq: 1 of 1 texts had more than 1024 tokens with EOS and were cut there.\n"
    )


def test_evaluate_prints_one_line(trained, data, capsys):
    arguments = ["--source", str(data / "test.en"), "--reference", str(data / "test.zh"), "--tokenize", "zh"]
    assert cli.main(["evaluate", str(trained), *arguments]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("BLEU ")
    assert "  chrF " in line
    assert "tok:zh" in line


def test_export_prints_the_path_of_the_version(trained, tmp_path, capsys):
    assert cli.main(["export", str(trained), "--output", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / '1'}\n"
    card = json.loads((tmp_path / "1" / "assets.extra" / "model.json").read_text())
    assert card["fingerprint"] == json.loads((trained / "translator.json").read_text())["fingerprint"]


TRAIN = ["train", "--valid", "test.en", "test.zh", "--output", "new", "--train"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*TRAIN, "none", "train.zh"], "'none' does not exist"),
        ([*TRAIN, "train.tsv", "--valid", "none"], "'none' does not exist"),
        ([*TRAIN, "empty", "empty"], "not one line in empty"),
        ([*TRAIN, "train.en", "test.zh"], "'train.en' has 300 lines and 'test.zh' has 20"),
        ([*TRAIN, "train.en"], "'train.en' has 1 columns in line 1"),
        ([*TRAIN, "a", "b", "c"], "--train takes a source and a target file, or one with tabs, received 3"),
        ([*TRAIN, "train.tsv", "--size", "huge"], "invalid choice: 'huge' (choose from"),
        ([*TRAIN, "train.tsv", "--epochs", "0"], "--epochs: expected an integer of at least 1, received '0'"),
        ([*TRAIN, "train.tsv", "--tokens-per-batch", "x"], "--tokens-per-batch: expected an integer"),
        ([*TRAIN, "train.tsv", "--vocabulary-size", "7"], "vocabulary_size=7 is too small"),
        ([*TRAIN, "train.tsv", "--vocabulary-size", "1"], "vocabulary_size must be an integer of at least 5"),
        *[
            ([*TRAIN, "train.tsv", name, "1" + "0" * 30], f"{name}: expected an integer")
            for name in ("--epochs", "--tokens-per-batch", "--vocabulary-size", "--seed")
        ],
        ([*TRAIN, "train.tsv", "--seed", "-1"], "--seed: expected an integer from 0 to 4294967295"),
        ([*TRAIN, "train.tsv", "--output", "."], "holds other files and no model"),
        ([*TRAIN, "train.tsv", "--output", "empty"], "'empty' is not a directory"),
        ([*TRAIN, "train.tsv", "--output", "empty/below"], "'empty/below' cannot be written"),
        (["translate", "nowhere"], "'nowhere' holds no translator: there is no such directory"),
        (["translate", "."], "'.' holds no translator: translator.json is missing"),
        (["translate", "model", "--batch-size", "0"], "--batch-size: expected an integer of at least 1"),
        (
            ["translate", "model", "--batch-size", "1" + "0" * 18],
            "--batch-size: expected an integer of at most",
        ),
        (["evaluate", "model", "--source", "test.en", "--reference", "none"], "'none' does not exist"),
        (["evaluate", "model", "--source", "test.en", "--reference", "train.zh"], "has 20 lines and"),
        (["evaluate", "model", "--source", "empty", "--reference", "empty"], "not one line"),
        (
            ["evaluate", "model", "--source", "test.en", "--reference", "test.zh", "--tokenize", "x"],
            "`tokenize` is 'x': expected one of",
        ),
        (["export", "nowhere", "--output", "base"], "'nowhere' holds no translator"),
        (["export", "model", "--output", "empty"], "'empty' cannot be written"),
        (["export", "model"], "the following arguments are required: --output"),
        (["dance"], "invalid choice: 'dance'"),
        ([], "the following arguments are required: COMMAND"),
    ],
)
def test_bad_input_gives_one_line_and_status_2(trained, data, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(data)
    before = sorted(os.listdir(data))
    status: int | str | None
    try:
        status = cli.main(arguments)
    except SystemExit as stopped:
        status = stopped.code
    assert status == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("keras-seq2seq")
    assert message in line
    assert sorted(os.listdir(data)) == before


@pytest.mark.parametrize("side", ["--train", "--valid"])
def test_text_of_which_nothing_is_left_is_named(data, capsys, monkeypatch, side):
    monkeypatch.chdir(data)
    arguments = [*TRAIN, "train.tsv", "--vocabulary-size", "900"]
    assert cli.main([*arguments, side, "blank", "blank"]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert (
        line == f"keras-seq2seq: {side}: No pair is left to make a batch of: 4 of 4 pairs dropped: 4 blank."
    )
    assert not (data / "new").exists()


def test_a_language_for_which_something_must_be_installed(trained, data, capsys, monkeypatch):
    def missing(*arguments, **options):
        raise RuntimeError("Install it!\n\n  pip install x")

    monkeypatch.chdir(data)
    monkeypatch.setattr(ks.evaluate, "scores", missing)
    arguments = ["--source", "test.en", "--reference", "test.zh", "--tokenize", "ja-mecab"]
    assert cli.main(["evaluate", "model", *arguments]) == 2
    assert capsys.readouterr().err == "keras-seq2seq: --tokenize ja-mecab: Install it! pip install x\n"


def test_closed_streams_are_empty_ones(trained):
    shell = 'exec "$@" <&- >&- 2>&-'
    for model, status in ((trained, 0), ("nowhere", 2)):
        command = [sys.executable, "-m", "keras_seq2seq", "translate", str(model)]
        assert subprocess.run(["sh", "-c", shell, "sh", *command]).returncode == status


@pytest.mark.parametrize("arguments", [[], ["train"], ["translate"], ["evaluate"], ["export"]])
def test_help_is_readable(capsys, arguments):
    with pytest.raises(SystemExit) as stopped:
        cli.main([*arguments, "--help"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out.startswith("usage: keras-seq2seq")


def test_training_that_fails_leaves_the_earlier_model(trained, data, monkeypatch, capsys):
    monkeypatch.chdir(data)
    before = {path: path.stat().st_mtime_ns for path in trained.rglob("*") if path.is_file()}

    def fail(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(ks.models.Seq2Seq, "fit", fail)
    arguments = [*TRAIN, "train.tsv", "--vocabulary-size", "900"]
    assert cli.main([*arguments, "--output", "model"]) == 130
    assert {path: path.stat().st_mtime_ns for path in trained.rglob("*") if path.is_file()} == before
    assert [name for name in os.listdir(trained) if name.startswith(".")] == []
    assert cli.main(arguments) == 130
    assert not (data / "new").exists()


def test_as_a_command_of_its_own(trained):
    """Errors without a traceback, and a reader that has gone away."""
    command = [sys.executable, "-m", "keras_seq2seq", "translate"]
    done = subprocess.run([*command, str(trained / "none")], input=b"", capture_output=True)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert b"holds no translator: there is no such directory." in done.stderr.splitlines()[-1]
    reader, writer = os.pipe()
    os.close(reader)
    gone = subprocess.run([*command, str(trained)], input=b"a\n", stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert gone.returncode == 0
    assert b"Traceback" not in gone.stderr
    assert b"BrokenPipe" not in gone.stderr
