"""What the README shows is run as it stands, on less data."""

import contextlib
import gzip
import io
import re
import shlex
import sys
from pathlib import Path

import pytest

from keras_seq2seq import cli

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LESS = {"vocabulary_size=8000": "vocabulary_size=900", "epochs=10": "epochs=1"}  # of the Python code
# The last of equal options counts.
SMALL = ["--epochs", "1", "--vocabulary-size", "900", "--tokens-per-batch", "1024"]


def blocks(language: str) -> list[str]:
    """Return the code blocks of a language."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return [text for name, text in fenced if name == language]


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch) -> Path:
    """Make a working directory with the files that the README names."""
    with gzip.open(ROOT / "examples/data/tatoeba/train.en-cmn.tsv.gz", "rt", encoding="utf-8") as file:
        pairs = [next(file).split("\t")[:2] for _ in range(320)]
    for name, part in (("train", pairs[:300]), ("val", pairs[300:310]), ("test", pairs[310:])):
        for side, language in enumerate(("en", "de")):
            (tmp_path / f"{name}.{language}").write_text("".join(pair[side] + "\n" for pair in part))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_ten_lines_run(corpus: Path, capsys) -> None:
    (code,) = blocks("python")
    for whole, less in LESS.items():
        assert code.count(whole) == 1
        code = code.replace(whole, less)
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    assert (corpus / "served/1/saved_model.pb").exists()
    assert capsys.readouterr().out


def test_the_commands_run(corpus: Path, monkeypatch) -> None:
    """One after the other, as each takes what the ones before wrote."""
    lines = [line for block in blocks("bash") for line in block.splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("keras-seq2seq ")]
    names = ["train", "translate", "evaluate", "score", "export", "inspect"]
    assert [words[0] for words in commands] == names
    for words in commands:
        with contextlib.ExitStack() as files:
            if "<" in words:
                given = (corpus / words[words.index("<") + 1]).read_bytes()
                monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
            if ">" in words:
                out = files.enter_context((corpus / words[words.index(">") + 1]).open("w"))
                files.enter_context(contextlib.redirect_stdout(out))
            ends = [words.index(sign) for sign in "<>" if sign in words]
            assert cli.main([*words[: min(ends, default=None)], *(SMALL if words[0] == "train" else [])]) == 0
    assert len((corpus / "test.hyp").read_text().splitlines()) == 10
    assert len((corpus / "test.scores").read_text().splitlines()) == 10
    assert (corpus / "served/1/saved_model.pb").exists()


def test_the_map_is_true() -> None:
    """Every room and file of the map is there, and every room is on the map."""
    (plan,) = (block for block in blocks("") if block.startswith("keras_seq2seq/\n"))
    package, rest = plan.split("examples/", 1)
    named = set(re.findall(r"^  ([a-z_]+(?:/|\.py))", package, re.MULTILINE))
    there = {f"{path.name}/" if path.is_dir() else path.name for path in (ROOT / "keras_seq2seq").iterdir()}
    assert named <= there
    assert {name for name in there if name.endswith("/")} - {"__pycache__/"} <= named
    examples = {path.name for path in (ROOT / "examples").glob("*.py")}
    assert set(re.findall(r"\w+\.py", rest.split("tests/")[0])) == examples
