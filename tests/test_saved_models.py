"""What an earlier version saved loads, answers the same and goes on training; see `saved_models.py`."""

import contextlib
import io
import json
import shutil
from pathlib import Path
from typing import Any

import keras
import pytest
import saved_models
import tensorflow as tf
from saved_models import ANSWERS, EXPORT, FOLDER, RUN, SAVED, answer, differences

import keras_seq2seq as ks
from keras_seq2seq import cli

FOLDERS = sorted(path.parent for path in SAVED.glob(f"*/{ANSWERS}"))


def lines(folder: Path) -> list[dict[str, Any]]:
    """Read the questions and answers of a version."""
    return [json.loads(line) for line in (folder / ANSWERS).read_text(encoding="utf-8").splitlines()]


def names(folder: Path) -> list[str]:
    """List the models that a version was asked through, each once."""
    return list(dict.fromkeys(line["model"] for line in lines(folder)))


def load(folder: Path, name: str) -> Any:
    """Load a translator, a generator, an export or a Keras model, by what lies there."""
    if name == EXPORT:
        return tf.saved_model.load(str(folder / name / "1"))
    if (folder / f"{name}.keras").exists():
        return keras.saving.load_model(folder / f"{name}.keras")
    kind = ks.Translator if (folder / name / "translator.json").exists() else ks.Generator
    return kind.load(folder / name)


MODELS = [(folder, name) for folder in FOLDERS for name in names(folder) if name != RUN]


def test_models_of_this_version_are_kept() -> None:
    assert FOLDER in FOLDERS, (
        f"tests/data/saved has no models of version {FOLDER.name}: "
        "run `python tests/saved_models.py` and commit what it writes."
    )
    assert set(names(FOLDER)) == {*saved_models.MAKE, EXPORT, RUN}


@pytest.mark.parametrize(("folder", "name"), MODELS, ids=[f"{folder.name}-{name}" for folder, name in MODELS])
def test_a_saved_model_answers_the_same(folder: Path, name: str) -> None:
    served = load(folder, name)
    for line in lines(folder):
        if line["model"] == name:
            found = answer(served, line["method"], line["arguments"])
            assert not list(differences(found, line["answer"])), line["method"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_export_is_described(folder: Path) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert cli.main(["inspect", str(folder / EXPORT)]) == 0
    assert f"{folder.name}." in out.getvalue()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_training_run_goes_on(folder: Path, tmp_path: Path) -> None:
    (kept,) = (line["answer"] for line in lines(folder) if line["model"] == RUN)
    shutil.copytree(folder / RUN, tmp_path / "run")
    before, after = saved_models.run_on(tmp_path / "run", every=100)
    assert kept["before"]["step"] > 0
    assert not list(differences(before, kept["before"]))
    assert not list(differences(after, kept["after"]))


def test_differences_are_found() -> None:
    kept = {"text": "a b", "score": -3.0, "tokens": [5, 6, 3], "token_scores": [-1.0, -1.0, -1.0]}
    assert not list(differences({**kept, "score": -3.0002, "more": 1}, kept))
    for name, other in [
        ("text", "a c"),
        ("score", -3.0004),
        ("score", float("nan")),
        ("tokens", [5, 6]),
        ("token_scores", [-1.0, -1.0002, -1.0]),
        ("text", None),
    ]:
        assert len(list(differences([{**kept, name: other}], [kept]))) == 1
