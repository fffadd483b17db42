"""The commands around a finished model: score, the options of export, and the number of threads."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from served_families import STRATEGIES, make
from tokenizer_kinds import LINES, MAKE

import keras_seq2seq as ks
from keras_seq2seq import cli


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator with random weights."""
    directory = tmp_path_factory.mktemp("model") / "model"
    make("bahdanau", MAKE["words"](LINES), STRATEGIES["greedy"]).save(directory)
    return directory


def test_score_gives_a_line_for_a_pair(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    sources, targets = ["the sea", "", "s t", "the dog"] * 5, ["the lazy dog", "s", "", "他住在这附近"] * 5
    files = [tmp_path / "source", tmp_path / "target"]
    for file, lines in zip(files, (sources, targets), strict=True):
        file.write_text("".join(line + "\n" for line in lines))
    expected = ks.Translator.load(model).score(sources, targets)
    arguments = ["score", str(model), "--source", str(files[0]), "--target", str(files[1])]
    for size in ("1", "7"):
        assert cli.main([*arguments, "--batch-size", size]) == 0
        rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
        assert [int(count) for _, count in rows] == [each.token_count for each in expected]
        assert [float(score) for score, _ in rows] == pytest.approx(
            [each.score for each in expected], abs=1e-4
        )


def test_export_takes_a_warm_up(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    # Lengths alone ask for what they are the lengths of.
    options = ["--warmup-lengths", "4", "8", "--warmup-batch-sizes", "1", "2", "--server-files", "toy"]
    assert cli.main(["export", str(model), "--output", str(tmp_path / "base"), *options]) == 0
    models = (tmp_path / "base" / "models.config").read_text()
    assert 'base_path: "/models/toy"' in models
    batching = (tmp_path / "base" / "batching_parameters.txt").read_text()
    assert "allowed_batch_sizes: 1\nallowed_batch_sizes: 2\n#" in batching
    assert cli.main(["inspect", str(tmp_path / "base"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out.partition("\n")[2])
    assert found["warmup"] == {"batch_sizes": [1, 2], "lengths": [4, 8], "signatures": None}
    assert found["warmup_requests"] == 3 * 2 * 2


@pytest.mark.parametrize(
    ("options", "xla", "warmup"),
    [
        ([], False, False),
        (["--xla", "--warmup"], ks.serving.XLABuckets(), ks.serving.Warmup()),
        (["--xla-lengths", "8"], ks.serving.XLABuckets(lengths=(8,)), False),
        (["--xla-batch-sizes", "1", "4"], ks.serving.XLABuckets(batch_sizes=(1, 4)), False),
        (["--warmup-batch-sizes", "1", "4"], False, ks.serving.Warmup(batch_sizes=(1, 4))),
    ],
)
def test_options_of_export_mean(
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
    options: list[str],
    xla: Any,
    warmup: Any,
) -> None:
    calls = []

    def export(self: Any, base: str, **given: Any) -> str:
        calls.append((base, given))
        return "base/1"

    monkeypatch.setattr(ks.Translator, "export", export)
    assert cli.main(["export", str(model), "--output", "base", *options]) == 0
    assert calls == [("base", {"xla": xla, "warmup": warmup})]
    assert capsys.readouterr().out == "base/1\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--xla", "--xla-lengths", "8", "4"], "--xla: lengths must be rising integers"),
        (["--warmup-batch-sizes", "4", "4"], "--warmup: batch_sizes must be rising integers"),
    ],
)
def test_options_of_export_are_checked(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture, options: list[str], message: str
) -> None:
    assert cli.main(["export", str(model), "--output", str(tmp_path / "base"), *options]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "base").exists()


def test_a_name_that_no_server_takes_is_refused_first(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    arguments = ["export", str(model), "--output", str(tmp_path / "base"), "--server-files", "a b"]
    assert cli.main(arguments) == 2
    assert "--server-files: name must be letters" in capsys.readouterr().err
    assert not (tmp_path / "base").exists()


def test_threads_are_set_before_the_first_operation(model: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("the sea\n")
    program = (
        "import sys, tensorflow as tf; from keras_seq2seq import cli; status = cli.main(sys.argv[1:]); "
        "of = tf.config.threading; "
        "print(status, of.get_intra_op_parallelism_threads(), of.get_inter_op_parallelism_threads())"
    )
    text = str(tmp_path / "text")
    arguments = ["score", str(model), "--source", text, "--target", text, "--threads", "3"]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "0 3 3"


@pytest.mark.parametrize("command", ["train", "translate", "evaluate", "score"])
def test_threads_come_too_late(command: str, model: Path, capsys: pytest.CaptureFixture) -> None:
    tf.zeros([]).numpy()
    needed = {
        "train": ["--train", "a", "--valid", "a", "--output", "a"],
        "evaluate": [str(model), "--source", "a", "--reference", "a"],
        "score": [str(model), "--source", "a", "--target", "a"],
        "translate": [str(model)],
    }
    assert cli.main([command, *needed[command], "--threads", "63"]) == 2
    assert "--threads must come before TensorFlow's first operation" in capsys.readouterr().err
