"""`keras-seq2seq inspect` says what an export is, and is clear about what is none."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from served_families import STRATEGIES, TEXTS, make
from tokenizer_kinds import LINES, MAKE

from keras_seq2seq import cli
from keras_seq2seq.commands.inspect import describe, read_export

WEIGHTS: list[int] = []  # of the model that is exported


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two versions of a generator; the second, 12, is looked at."""
    directory = tmp_path_factory.mktemp("inspect") / "base"
    served = make("language model", MAKE["words"](LINES), STRATEGIES["beam"])
    WEIGHTS.append(served.model.count_params())
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
    assert found["version"] == "12"
    assert found["path"] == str(base / "12")
    assert found["size"].endswith(f"; {WEIGHTS[0]:,} weights")
    assert found["search"].startswith("Beam(width=3, ")
    assert found["XLA"] == "no"
    assert found["warm-up"] == "3 requests"
    assert "max_new_tokens=12" in found["settings"]
    assert f"tensorflow {tf.__version__}" in found["packages"]
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
    assert answers[0]["weights"] == WEIGHTS[0]


def test_xla_says_what_a_server_needs(base: Path) -> None:
    found = read_export(str(base)) | {"xla": {"batch_sizes": [1, 8], "lengths": [16]}}
    line = "XLA           batch_sizes [1, 8], lengths [16]; needs --xla_cpu_compilation_enabled=true"
    assert line in describe(found).splitlines()


def test_facts_fit_a_terminal(base: Path) -> None:
    found = read_export(str(base))
    found["path"] = "/a/folder-with-hyphens/that-is-wider/than-the-terminal/" + "12-" * 20
    short, stacked = describe(found, 60).split("\n\n")
    long, table = describe(found).split("\n\n")
    assert describe(found, 200).endswith(table)
    assert stacked.splitlines()[:3] == [
        "serving_default",
        "  text string [None]",
        "    -> completion string [None], score float32 [None]",
    ]
    assert short.split() == long.split()  # the same words
    lines = short.splitlines()
    assert len(lines) > len(long.splitlines())
    # A path and a fingerprint are not cut.
    assert all(len(line) <= 60 for line in lines if " " in line[14:])


def test_what_is_no_export_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    foreign = tmp_path / "foreign" / "1"
    tf.saved_model.save(tf.Module(), str(foreign))
    (tmp_path / "empty").mkdir()
    cases = {
        "nowhere": "nowhere' is no directory",
        "empty": "saved_model.pb is missing",
        "foreign": f"is no export of keras_seq2seq, but a SavedModel of TensorFlow {tf.__version__} with ",
    }
    for name, message in cases.items():
        assert cli.main(["inspect", str(tmp_path / name)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert message in line


def damages(path: Path) -> Iterator[tuple[Path, bytes | None, str]]:
    """Yield a file of a version, what may have become of it (None: it is gone), and what is said of that."""
    card, graph = path / "assets.extra" / "model.json", path / "saved_model.pb"
    index, values = (
        path / "variables" / "variables.index",
        path / "variables" / "variables.data-00000-of-00001",
    )
    requests = path / "assets.extra" / "tf_serving_warmup_requests"
    yield graph, graph.read_bytes()[:-100], "saved_model.pb' is damaged"
    yield graph, b"", "saved_model.pb' is damaged: it holds no graph"
    yield index, None, "variables.index or what it points to is not whole"
    yield index, index.read_bytes()[:50], "variables.index or what it points to is not whole"
    yield values, values.read_bytes()[:-100], "variables' is damaged: "
    yield values, None, "variables' is damaged: "
    yield requests, b"\xff" * 12, "its last request is not whole"
    yield requests, requests.read_bytes()[:-1], "its last request is not whole"
    content = json.loads(card.read_text())
    broken: list[Any] = [[], 3, {}, {"signatures": 3}, {"signatures": {"a": {}}}]
    names = ("versions", "strategy", "settings", "vocabulary_sizes", "xla", "custom_ops", "signatures")
    broken += [content | {name: "no"} for name in names]
    specs: list[Any] = [{"text": 3}, {"text": {}}, 3]
    broken += [content | {"signatures": {"a": {"inputs": each, "outputs": {}}}} for each in specs]
    for each in (b"{", b"\xff", *(json.dumps(one).encode() for one in broken)):
        yield card, each, "model.json' does not describe an export"


def test_a_damaged_export_is_named(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "1"
    shutil.copytree(base / "12", path)
    for file, content, message in list(damages(path)):
        whole = file.read_bytes()
        file.unlink() if content is None else file.write_bytes(content)
        assert cli.main(["inspect", str(path)]) == 2, (file, content)
        (line,) = capsys.readouterr().err.splitlines()
        assert message in line
        file.write_bytes(whole)
    assert cli.main(["inspect", str(path)]) == 0
