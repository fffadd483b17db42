"""An export asked by many threads, hostile strings among others: no error, no mix-up, no leak."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf
from benchmarks import soak
from served_families import STRATEGIES, TEXTS, make
from tokenizer_kinds import LINES, MAKE

SHORT = [("transformer", "sentence_piece", "greedy")]
LONG = [
    ("transformer", "sentence_piece", "beam"),
    ("language model", "words", "greedy"),
    ("bahdanau", "characters", "greedy"),
]


def export(family: str, kind: str, strategy: str, base: Path, **limits: int) -> Path:
    served = make(family, MAKE[kind](LINES), STRATEGIES[strategy])
    served = served.with_settings(dataclasses.replace(served.settings, **limits))
    return Path(served.export(base, samples=TEXTS[:1]))


def ask(base: Path, requests: int) -> None:
    """Run a soak in a process of its own, whose memory nothing else grows."""
    command = [sys.executable, soak.__file__, str(base), "--json", "--requests", str(requests)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["requests"] == requests


@pytest.mark.parametrize(("family", "kind", "strategy"), SHORT)
def test_a_short_soak_finds_nothing(family: str, kind: str, strategy: str, tmp_path: Path) -> None:
    export(family, kind, strategy, tmp_path, max_source_length=48)
    ask(tmp_path, 300)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("family", "kind", "strategy"), LONG)
def test_ten_thousand_requests_find_nothing(family: str, kind: str, strategy: str, tmp_path: Path) -> None:
    export(family, kind, strategy, tmp_path)
    ask(tmp_path, 10_000)


def test_errors_and_swapped_and_other_answers_are_noticed(tmp_path: Path) -> None:
    """A server that swaps rows, one that says something else, and one that fails."""

    class Liar(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
        def swap(self, text):
            return {"out": tf.reverse(text, [0])}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
        def count(self, text):
            return {"out": tf.fill([tf.size(text)], tf.strings.as_string(tf.size(text)))}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
        def fail(self, text):
            tf.debugging.assert_less(tf.size(text), 8, "too many texts")
            return {"out": tf.fill([tf.size(text)], "")}

    liar = Liar()
    for name, expected in {"swap": "swapped", "count": "different", "fail": "errors"}.items():
        tf.saved_model.save(liar, str(tmp_path / name), {name: getattr(liar, name)})
        texts = [soak.Question(name, (f"{i}".encode(),)) for i in range(50)]
        each = soak.Export(tmp_path / name)
        answers = {text: each.ask([text])[0] for text in texts}
        found = soak.Findings()
        requests = (texts[i : i + 8] for i in range(0, 48, 8))
        soak._send(each, requests, answers, 2, found)
        assert {n for n in ("swapped", "different", "errors") if getattr(found, n)} == {expected}
    assert all("too many texts" in error for error in found.errors)


def test_a_place_without_an_export_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="holds no SavedModel and no version of one"):
        soak.newest(tmp_path)
    for name in ("2", "10", "x"):
        (tmp_path / name).mkdir()
    assert soak.newest(tmp_path) == tmp_path / "10"
