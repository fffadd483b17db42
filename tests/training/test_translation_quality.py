"""Translations are measured while a model is trained, and everybody who listens hears of it."""

import csv

import keras
import pytest
from token_batches import V, as_dataset, make_batch, small_model

import keras_seq2seq as ks
from keras_seq2seq.training import Checkpoints, SmoothedCrossentropy, TranslationQuality, checkpoints

LETTERS = ks.text.Characters.build("abcdefghij")
SOURCES, REFERENCES = ["abc", "bcd", "cde"], ["a b c d e", ["b c", "c d e f"], "c d"]
DATA = as_dataset([make_batch([4, 1, 6], seed) for seed in range(2)])


@pytest.fixture(scope="module")
def translator() -> ks.Translator:
    assert LETTERS.vocabulary_size == V
    model = small_model()
    model.compile("sgd", SmoothedCrossentropy(), run_eagerly=True)
    return ks.Translator(model, LETTERS, strategy=ks.search.Beam(2), max_length=12)


def fit(translator, *callbacks, **options):
    return translator.model.fit(DATA, verbose=0, callbacks=list(callbacks), **options)


def test_the_scores_are_those_of_the_search_and_are_logged_everywhere(translator, tmp_path):
    shown: list[str] = []
    quality = TranslationQuality(translator, SOURCES, REFERENCES, samples=2, show=shown.append)
    log = keras.callbacks.CSVLogger(tmp_path / "log.csv")
    keep = Checkpoints(tmp_path / "run", monitor="val_chrf", mode="max")
    history = fit(translator, quality, log, keep).history
    scores = ks.evaluate.scores(translator(SOURCES), REFERENCES)
    assert history["val_bleu"] == [scores.bleu.value]
    assert history["val_chrf"] == [scores.chrf.value]
    with open(tmp_path / "log.csv") as file:
        (row,) = csv.DictReader(file)
    assert float(row["val_chrf"]) == scores.chrf.value
    assert checkpoints(tmp_path / "run")[0].logs[0]["val_bleu"] == scores.bleu.value
    (text,) = shown
    lines = text.splitlines()
    assert lines[1].startswith("epoch 1: BLEU ")
    assert lines[5:] == [
        "  source       bcd",
        "  reference    b c",
        f"  translation  {translator('bcd')}",
    ]


def scripted(monkeypatch, values):
    """Let BLEU be these values, one after the other."""
    left = list(values)

    def score(hypotheses, references, tokenize):
        found = ks.evaluate.Score("BLEU", left.pop(0), ""), ks.evaluate.Score("chrF", 1.0, "")
        return ks.evaluate.Scores(*found)

    monkeypatch.setattr(ks.evaluate, "scores", score)


def test_the_best_is_kept_and_patience_ends(translator, tmp_path, monkeypatch):
    path, weights = tmp_path / "best.weights.h5", []
    scripted(monkeypatch, [0.0, 1.0, 3.0, 2.0, 3.0, 9.0])  # the first is a check of the arguments
    quality = TranslationQuality(translator, SOURCES, REFERENCES, best=path, patience=2)
    note = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda *_: weights.append(translator.model.get_weights())
    )
    history = fit(translator, note, quality, epochs=9).history
    assert history["val_bleu"] == [1.0, 3.0, 2.0, 3.0]
    best = small_model()
    best.load_weights(path)
    for ours, theirs in zip(best.get_weights(), weights[1], strict=True):
        assert (ours == theirs).all()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"every": 2}, [0.0, 1.0, 1.0, 2.0, 3.0]),  # and after the last epoch
        ({"every_steps": 3}, [0.0, 1.0, 2.0, 2.0, 3.0]),  # after batches 3, 6 and 9 of 10
    ],
)
def test_every_so_often(translator, monkeypatch, options, expected):
    scripted(monkeypatch, [0.0, 1.0, 2.0, 3.0])
    quality = TranslationQuality(translator, SOURCES, REFERENCES, **options)
    assert fit(translator, quality, epochs=5).history["val_bleu"] == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"every": 0}, "every must be an integer of at least 1, received 0"),
        ({"patience": 0}, "patience must be an integer of at least 1, received 0"),
        ({"monitor": "val_ter"}, "monitor must be .*, received 'val_ter'"),
        ({"best": "best.keras"}, r"best must end in \.weights\.h5, received 'best\.keras'"),
        ({"tokenize": "x"}, "`tokenize` is 'x'"),
        ({"references": REFERENCES[:2]}, "`hypotheses` has 3 entries and `references` 2"),
    ],
)
def test_impossible_arguments_are_named(translator, options, message):
    with pytest.raises(ValueError, match=message):
        TranslationQuality(translator, **{"sources": SOURCES, "references": REFERENCES, **options})


def test_a_translator_of_another_model_is_refused(translator):
    quality = TranslationQuality(translator, SOURCES, REFERENCES)
    other = small_model()
    other.compile("sgd", SmoothedCrossentropy())
    with pytest.raises(ValueError, match="translator must hold the model that is trained"):
        other.fit(DATA, verbose=0, callbacks=[quality])
