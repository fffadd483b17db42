"""How an export is written: versions, metadata, verification, and what a killed one leaves behind."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from tensorflow.core.protobuf import saved_model_pb2

import keras_seq2seq as ks
from keras_seq2seq.serving import saved_model
from keras_seq2seq.serving.files import aside
from keras_seq2seq.serving.graph_ops import graph_ops, refused_ops


def test_versions_are_numbered_and_whole(base):
    assert sorted(os.listdir(base)) == ["1", "2"]
    for version in ("1", "2"):
        names = set(os.listdir(base / version))
        assert {"saved_model.pb", "variables", "assets.extra"} <= names
        assert os.stat(base / version).st_mode & 0o055


def test_the_card_says_what_is_inside(base, beam):
    card = json.loads((base / "2" / "assets.extra" / "model.json").read_text())
    assert card["strategy"]["kind"] == "Beam"
    assert card["vocabulary_sizes"] == {"source": 400, "target": 892}
    assert card["versions"]["keras_seq2seq"] == ks.__version__
    assert set(card["versions"]) >= {"tensorflow", "keras", "tensorflow_text", "python"}
    assert card["signatures"]["serving_default"] == {
        "inputs": {"text": {"dtype": "string", "shape": [None]}},
        "outputs": {
            "translation": {"dtype": "string", "shape": [None]},
            "score": {"dtype": "float32", "shape": [None]},
        },
    }
    n_best = card["signatures"]["translate_n_best"]["outputs"]
    assert n_best["translations"] == {"dtype": "string", "shape": [None, 4]}
    assert card["signatures"]["score"]["outputs"]["token_count"] == {"dtype": "int32", "shape": [None]}
    assert card["custom_ops"]
    assert all(name.startswith("Sentencepiece") for name in card["custom_ops"])
    greedy = json.loads((base / "1" / "assets.extra" / "model.json").read_text())
    assert greedy["fingerprint"] == card["fingerprint"]


def test_the_fingerprint_is_that_of_the_saved_translator(base, beam, tmp_path):
    beam.save(tmp_path)
    saved = json.loads((tmp_path / "translator.json").read_text())
    exported = json.loads((base / "2" / "assets.extra" / "model.json").read_text())
    assert saved["fingerprint"] == exported["fingerprint"]


def test_the_graph_is_what_a_stock_server_can_run(base):
    for version in ("1", "2"):
        assert refused_ops(str(base / version)) == []
        assert "StatelessRandomUniformV2" not in graph_ops(str(base / version))  # dropout
        saved = saved_model_pb2.SavedModel.FromString((base / version / "saved_model.pb").read_bytes())
        text = saved.SerializeToString()
        assert os.fsencode(os.path.dirname(ks.__file__)) not in text
        assert os.fsencode(base) not in text
        signatures = saved.meta_graphs[0].signature_def
        outputs = [name for each in signatures.values() for name in each.outputs]
        assert outputs
        assert not any(name.endswith("_bytes") for name in outputs)
        functions = saved.meta_graphs[0].graph_def.library.function
        assert not any(each.attr["_XlaMustCompile"].b for each in functions)


@pytest.mark.parametrize("version", ["v1", -1, 0, True, 1.0])
def test_a_version_that_is_no_positive_integer_is_refused(greedy, tmp_path, version):
    with pytest.raises(ValueError, match="version must be an integer of at least 1"):
        greedy.export(tmp_path / "base", version=version)
    assert not (tmp_path / "base").exists()


def test_a_version_that_exists_is_never_changed(greedy, tmp_path):
    (tmp_path / "3").mkdir()
    with pytest.raises(ValueError, match=r"version 3 exists in .*, and no version is ever changed"):
        greedy.export(tmp_path, version=3)
    assert os.listdir(tmp_path) == ["3"]


def test_the_next_version_is_one_more_than_the_highest(tmp_path, monkeypatch):
    work = tmp_path / ".work"
    for name in ("2", "10", "notes", "7.5"):
        (tmp_path / name).mkdir()
    for expected in ("11", "12"):
        (work / "model").mkdir(parents=True)
        path = saved_model._publish(str(work / "model"), str(tmp_path), None)
        assert path == str(tmp_path / expected)
    (work / "model").mkdir()
    assert saved_model._publish(str(work / "model"), str(tmp_path), 5) == str(tmp_path / "5")


def test_a_version_taken_in_between_is_left_alone(tmp_path, monkeypatch):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "other").touch()
    (tmp_path / ".work" / "model").mkdir(parents=True)
    real, answers = os.listdir, iter([()])
    monkeypatch.setattr(os, "listdir", lambda path: next(answers, real(path)))
    assert saved_model._publish(str(tmp_path / ".work" / "model"), str(tmp_path), None) == str(tmp_path / "2")
    monkeypatch.undo()
    assert os.listdir(tmp_path / "1") == ["other"]


def test_an_export_that_differs_is_an_error_and_leaves_nothing(greedy, tmp_path, monkeypatch):
    def lie(texts, *arguments, **options):
        return [[ks.serving.Hypothesis("something else", 0.0, [], None, True)] for _ in texts]

    monkeypatch.setattr(greedy, "translate", lie)
    with pytest.raises(RuntimeError, match="signature 'serving_default' of the export gives"):
        greedy.export(tmp_path, samples=["Hello."])
    assert os.listdir(tmp_path) == []


def test_a_base_that_cannot_be_written_is_named(greedy, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"file' cannot be written: .*exists\.$"):
        greedy.export(tmp_path / "file")


KILLED = """
import sys, time, keras_seq2seq as ks
from keras_seq2seq.serving import saved_model
def wait(*arguments):
    print("written", flush=True)
    time.sleep(60)
saved_model.verify = wait
ks.Translator.load(sys.argv[1]).export(sys.argv[2])
"""


def test_a_killed_export_leaves_no_version_and_the_next_one_cleans_up(greedy, tmp_path):
    greedy.save(tmp_path / "saved")
    base = tmp_path / "base"
    command = [sys.executable, "-c", KILLED, str(tmp_path / "saved"), str(base)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        process.send_signal(signal.SIGKILL)
    (left,) = os.listdir(base)
    assert not left.isdecimal()
    assert (base / left / "model" / "saved_model.pb").exists()
    with aside(str(base)) as work:
        assert os.listdir(base) == [os.path.basename(work)]
    assert os.listdir(base) == []


def test_only_what_is_ours_and_abandoned_is_removed(tmp_path):
    day_ago = time.time() - 2 * 24 * 3600
    names = {
        ".keras_seq2seq-elsewhere-1-aa": False,  # old, of another machine
        ".keras_seq2seq-otherhost-1-bb": True,  # young, of another machine
        ".other-tool": True,
        "5": True,
    }
    for name in names:
        (tmp_path / name).mkdir()
        if not name.endswith("bb"):
            os.utime(tmp_path / name, (day_ago, day_ago))
    with aside(str(tmp_path)), aside(str(tmp_path)):
        kept = {name for name in os.listdir(tmp_path) if str(os.getpid()) not in name}
    assert kept == {name for name, stays in names.items() if stays}
