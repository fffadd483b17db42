"""Saving and loading a translator."""

import json
import os
import subprocess
import sys

import keras
import pytest

import keras_seq2seq as ks
from keras_seq2seq.serving import bundle


def test_a_fresh_process_translates_the_same(beam, texts, tmp_path):
    beam.save(tmp_path / "saved")
    code = (
        "import json, sys, keras_seq2seq as ks;"
        "translator = ks.Translator.load(sys.argv[1]);"
        "rows = translator.translate(json.load(sys.stdin), n_best=2);"
        "print(json.dumps([[each.text, each.tokens, each.score] for row in rows for each in row]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "saved")]
    done = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    expected = [each for row in beam.translate(texts, n_best=2) for each in row]
    assert [[text, tokens] for text, tokens, _ in found] == [[each.text, each.tokens] for each in expected]
    assert max(abs(score - each.score) for (*_, score), each in zip(found, expected, strict=True)) < 1e-5


def test_strategy_and_settings_come_back(make_model, chinese, tmp_path):
    strategy = ks.search.Beam(3, length_penalty=0.6, penalty="gnmt", n_best=2)
    model = make_model(chinese.vocabulary_size, None, tie_embeddings=False)
    saved = ks.Translator(model, chinese, strategy=strategy, max_length=77, batch_size=5, length_factor=1.5)
    saved.save(tmp_path)
    loaded = ks.Translator.load(tmp_path)
    assert loaded.strategy == strategy
    assert loaded.settings == saved.settings
    assert loaded.target_tokenizer is loaded.source_tokenizer
    assert loaded("你好") == saved("你好")
    other = ks.Translator.load(tmp_path, strategy=ks.search.Greedy(), batch_size=2)
    assert other.strategy == ks.search.Greedy()
    assert (other.settings.batch_size, other.settings.max_length) == (2, 77)


def test_the_file_of_a_compiled_model_has_no_optimizer(make_model, english, chinese, texts, tmp_path):
    model = make_model(english.vocabulary_size, chinese.vocabulary_size)
    model.compile("adam", ks.training.SmoothedCrossentropy(0.1))
    model.optimizer.build(model.trainable_variables)
    translator = ks.Translator(model, english, chinese, ks.search.Greedy())
    translator.save(tmp_path)
    loaded = ks.Translator.load(tmp_path)
    assert loaded(texts[:3]) == translator(texts[:3])
    (path,) = tmp_path.glob("content-*/model.keras")
    assert not keras.saving.load_model(path).compiled


def test_saving_again_replaces_and_leaves_other_files_alone(greedy, beam, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    greedy.save(tmp_path)
    beam.save(tmp_path)
    assert ks.Translator.load(tmp_path).strategy == ks.search.Beam(4)
    names = sorted(os.listdir(tmp_path))
    assert names[1:] == ["notes.txt", "translator.json"]
    assert names[0].startswith("content-")


@pytest.mark.parametrize("moment", ["model", "tokenizer", "card"])
def test_an_interrupted_save_leaves_the_old_translator(greedy, beam, tmp_path, monkeypatch, moment):
    greedy.save(tmp_path)
    before = sorted(os.listdir(tmp_path))

    def fail(*arguments, **options):
        raise KeyboardInterrupt

    if moment == "model":
        monkeypatch.setattr(type(beam.model), "save", fail)
    elif moment == "tokenizer":
        monkeypatch.setattr(type(beam.source_tokenizer), "save", fail)
        monkeypatch.setattr(bundle, "fingerprint", lambda *arguments: "")
    else:
        replace = os.replace
        monkeypatch.setattr(os, "replace", lambda a, b: fail() if str(b).endswith(".json") else replace(a, b))
    with pytest.raises(KeyboardInterrupt):
        beam.save(tmp_path)
    monkeypatch.undo()
    assert ks.Translator.load(tmp_path).strategy == ks.search.Greedy()
    greedy.save(tmp_path)
    assert len(os.listdir(tmp_path)) == len(before)


def test_a_directory_that_is_no_translator_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no translator: translator.json is missing\.$"):
        ks.Translator.load(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"holds no translator: there is no such directory\.$"):
        ks.Translator.load(tmp_path / "nowhere")
    (tmp_path / "translator.json").write_text("[]")
    with pytest.raises(ValueError, match="does not describe a translator"):
        ks.Translator.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("format", 2, "has format 2, this version of keras_seq2seq reads 1"),
        ("kind", "Painter", "does not describe a translator"),
        ("fingerprint", "0", "do not have the fingerprint"),
        ("strategy", {"kind": "Guess"}, "has no search strategy 'Guess'"),
        ("strategy", {"kind": "Beam", "width": 2, "depth": 3}, "cannot read the strategy Beam"),
        ("content", "content-0", "is missing"),
        ("content", "../content-0", "does not describe a translator"),
        ("content", None, "does not describe a translator"),
        ("settings", [], "does not describe a translator"),
        ("settings", {"width": 3}, "does not know the settings width"),
        ("settings", {"length_factor": "a"}, "length_factor must be a finite number"),
        ("strategy", "Beam", "does not describe a translator"),
        ("strategy", {"kind": ["Beam"]}, "has no search strategy"),
        ("strategy", {"kind": "Beam", "width": "4"}, "width must be an integer, received '4'"),
        ("fingerprint", None, "does not describe a translator"),
    ],
)
def test_a_damaged_translator_is_refused(greedy, tmp_path, name, value, message):
    greedy.save(tmp_path)
    card = json.loads((tmp_path / "translator.json").read_text())
    (tmp_path / "translator.json").write_text(json.dumps({**card, name: value}))
    with pytest.raises(ValueError, match=message):
        ks.Translator.load(tmp_path)


def test_a_damaged_model_is_refused(greedy, tmp_path):
    greedy.save(tmp_path)
    (path,) = tmp_path.glob("content-*/model.keras")
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"model.keras' cannot be loaded"):
        ks.Translator.load(tmp_path)


def test_a_place_that_cannot_be_written_is_named(greedy, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file' cannot be written"):
        greedy.save(tmp_path / "file")
    with pytest.raises(OSError, match="below' cannot be written"):
        greedy.save(tmp_path / "file" / "below")


def test_an_unknown_strategy_cannot_be_saved(model, english, chinese, tmp_path):
    class Mine(ks.search.Greedy):
        pass

    with pytest.raises(ValueError, match=r"strategy must be one of keras_seq2seq\.search"):
        ks.Translator(model, english, chinese, Mine()).save(tmp_path)
    assert not os.listdir(tmp_path)
