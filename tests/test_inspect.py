"""`keras-seq2seq inspect` says what an export is, and is clear about what is none."""

import json
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from served_families import STRATEGIES, TEXTS, make
from tokenizer_kinds import LINES, MAKE

from keras_seq2seq import cli


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two versions of a generator; the second, 12, is looked at."""
    directory = tmp_path_factory.mktemp("inspect") / "base"
    served = make("language model", MAKE["words"](LINES), STRATEGIES["beam"])
    path = Path(served.export(directory, version=12, samples=TEXTS[:1]))
    (directory / "7").mkdir()
    with tf.io.TFRecordWriter(str(path / "assets.extra" / "tf_serving_warmup_requests")) as writer:
        for content in (b"a", b"b" * 300, b""):
            writer.write(content)
    return directory


def test_the_newest_version_is_described(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["inspect", str(base)]) == 0
    lines = capsys.readouterr().out.splitlines()
    found = {line[:14].rstrip(): line[14:] for line in lines if line}
    assert found["kind"] == "Generator"
    assert found["path"] == str(base / "12")
    assert found["search"].startswith("Beam(width=3, ")
    assert found["XLA"] == "no"
    assert found["warm-up"] == "3 requests"
    assert "max_new_tokens=12" in found["settings"]
    assert f"tensorflow {tf.__version__}" in found["made"]
    (row,) = [line.split("  ") for line in lines if line.startswith("generate_n_best")]
    cells = [cell.strip() for cell in row if cell.strip()]
    assert cells[1:] == ["text string [None]", "completions string [None, 3], scores float32 [None, 3]"]


def test_json_is_the_same_for_a_version_and_its_base(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers: list[dict[str, Any]] = []
    for path in (base, base / "12"):
        assert cli.main(["inspect", str(path), "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0] == answers[1]
    sizes = answers[0]["bytes"]
    assert sizes["graph"] == (base / "12" / "saved_model.pb").stat().st_size
    assert sizes["all"] > sizes["graph"] + sizes["variables"] > sizes["variables"] > 0
    assert (answers[0]["version"], answers[0]["warmup_requests"]) == (12, 3)


def test_what_is_no_export_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    foreign = tmp_path / "foreign" / "1"
    tf.saved_model.save(tf.Module(), str(foreign))
    damaged = tmp_path / "damaged"
    for name, content in (("saved_model.pb", ""), ("assets.extra/model.json", '{"signatures": 3}')):
        (damaged / name).parent.mkdir(parents=True, exist_ok=True)
        (damaged / name).write_text(content)
    (tmp_path / "empty").mkdir()
    cases = {
        "nowhere": "nowhere' is no directory",
        "empty": "saved_model.pb is missing",
        "foreign": "is no export of keras_seq2seq: ",
        "damaged": "model.json' does not describe an export",
    }
    for name, message in cases.items():
        assert cli.main(["inspect", str(tmp_path / name)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert message in line
