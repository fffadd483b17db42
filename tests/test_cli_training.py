"""`train` with a recipe, `run.json` beside the model, going on from checkpoints, and `plot`."""

import gzip
import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

import keras_seq2seq as ks
from keras_seq2seq import cli
from keras_seq2seq.training import checkpoints

DATA = Path(__file__).parents[1] / "examples" / "data" / "tatoeba"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with little parallel text, and what `train` makes of it with many options, in two goes."""
    folder = tmp_path_factory.mktemp("data")
    with gzip.open(DATA / "train.en-cmn.tsv.gz", "rt", encoding="utf-8") as file:
        lines = ["\t".join(next(file).split("\t")[:2]) + "\n" for _ in range(60)]
    (folder / "train.tsv").write_text("".join(lines))
    (folder / "valid.tsv").write_text("".join(lines[:8]))
    before = os.getcwd()
    os.chdir(folder)
    try:
        for epochs in ("1", "2"):
            assert cli.main(train_arguments(epochs)) == 0
    finally:
        os.chdir(before)
    return folder


def train_arguments(epochs: str) -> list[str]:
    return [
        *("train", "--train", "train.tsv", "--valid", "valid.tsv", "--output", "model", "--epochs", epochs),
        *("--tokens-per-batch", "256", "--vocabulary-size", "400", "--checkpoints", "kept", "--average", "2"),
        *(
            "--schedule",
            "cosine",
            "--accumulate",
            "2",
            "--clip-norm",
            "1.0",
            "--weight-decay",
            "0.01",
            "--bleu",
        ),
    ]


def test_a_recipe_is_followed_and_noted(folder):
    run = json.loads((folder / "model" / "run.json").read_text())
    assert [set(epoch) for epoch in run["epochs"]] == [
        {"loss", "token_accuracy", "val_loss", "val_token_accuracy", "val_bleu", "val_chrf"}
    ] * 2
    assert run["seed"] == run["arguments"]["seed"] == 1
    assert run["arguments"]["schedule"] == "cosine"
    assert run["versions"]["keras"].startswith("3.")
    expected = hashlib.sha256((folder / "train.tsv").read_bytes()).hexdigest()
    assert run["data"]["train.tsv"] == f"sha256:{expected}"
    assert isinstance(ks.Translator.load(folder / "model")("Hello."), str)


def test_the_second_go_went_on_from_the_first(folder):
    first, second = checkpoints(folder / "kept")
    assert (first.epoch, second.epoch) == (1, 2)
    assert second.logs[0] == first.logs[0]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("strategy", "precision"),
    [
        ("mirrored", "mixed_float16"),
        ("one_device", "mixed_bfloat16"),
        ("one_device", "mixed_float16"),
        ("mirrored", "mixed_bfloat16"),
    ],
)
def test_strategies_and_precisions_train(folder, monkeypatch, strategy, precision):
    """With accumulation, clipping, weight decay and BLEU."""
    monkeypatch.chdir(folder)
    output = f"{strategy}-{precision}"
    # The last of an option counts.
    own = ["--output", output, "--checkpoints", f"{output}-kept", "--strategy", strategy]
    assert cli.main([*train_arguments("1"), *own, "--precision", precision]) == 0
    (logs,) = json.loads((folder / output / "run.json").read_text())["epochs"]
    assert np.isfinite(list(logs.values())).all()
    assert isinstance(ks.Translator.load(folder / output)("Hello."), str)


def test_plot_draws_every_curve(folder, capsys):
    assert cli.main(["plot", str(folder / "model")]) == 0
    path = Path(capsys.readouterr().out.strip())
    assert path == folder / "model" / "curves.png"
    assert path.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plot", "nowhere"], "'nowhere' holds no training run: run.json is missing."),
        (["plot", "broken"], "does not describe the epochs of a training run"),
        ([*train_arguments("2"), "--clip-norm", "0"], "--clip-norm: expected a number above 0, received '0'"),
        ([*train_arguments("2"), "--precision", "int8"], "invalid choice: 'int8'"),
        ([*train_arguments("2"), "--size", "small"], "the optimizer has"),
    ],
)
def test_bad_input_gives_one_line(folder, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(folder)
    (folder / "broken").mkdir(exist_ok=True)
    (folder / "broken" / "run.json").write_text('{"epochs": []}')
    status: int | str | None
    try:
        status = cli.main(arguments)
    except SystemExit as stopped:
        status = stopped.code
    assert status == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("keras-seq2seq")
    assert message in line
