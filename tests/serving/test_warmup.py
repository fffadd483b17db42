"""The warm-up file: read back, of the asked shapes, and each request run through the loaded SavedModel."""

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from served_families import STRATEGIES, make
from tensorflow_serving.apis import prediction_log_pb2
from tokenizer_kinds import LINES, MAKE

import keras_seq2seq as ks
from keras_seq2seq.serving import Warmup
from keras_seq2seq.serving.warmup import WARMUP_FILE, _texts

OTHERS = ("serving_default", "score", "sample", "translate_with_prefix", "translate_n_best")


def export(base: Path, family: str, warmup: Any) -> str:
    served = make(family, MAKE["words"](LINES), STRATEGIES["greedy"])
    return served.export(base, warmup=warmup, samples=["the sea"])


def read(path: str) -> list[Any]:
    """The requests of the file, with their inputs as arrays."""
    records = tf.data.TFRecordDataset(str(Path(path) / WARMUP_FILE)).as_numpy_iterator()
    logs = [prediction_log_pb2.PredictionLog.FromString(record) for record in records]
    assert all(log.WhichOneof("log_type") == "predict_log" for log in logs)
    found = []
    for log in logs:
        request = log.predict_log.request
        inputs = {name: tf.make_ndarray(proto) for name, proto in request.inputs.items()}
        found.append((request.model_spec.signature_name, inputs))
    return found


@pytest.mark.parametrize(
    ("family", "names"),
    [("language model", None), ("bahdanau", OTHERS)],
)
def test_every_request_runs_through_its_signature(tmp_path: Path, family: str, names: Any) -> None:
    warmup = Warmup(batch_sizes=[1, 3], lengths=[4, 9], signatures=names)  # type: ignore[arg-type]
    path = export(tmp_path / "base", family, warmup)
    signatures = tf.saved_model.load(path).signatures
    requests = read(path)
    expected = names or ("serving_default", "generate", "sample")
    shapes = [(name, len(next(iter(inputs.values())))) for name, inputs in requests]
    assert sorted(shapes) == sorted(itertools.product(expected, [1, 3] * 2))
    words = MAKE["words"](LINES)
    widths = set()
    for name, inputs in requests:
        specs = signatures[name].structured_input_signature[1]
        assert set(inputs) == set(specs)
        tensors = {key: tf.constant(value, specs[key].dtype) for key, value in inputs.items()}
        first = tensors["source" if name == "score" else "text"]
        assert len(set(zip(*(value.tolist() for value in inputs.values()), strict=True))) == len(first)
        widths.add(1 + words.tokenize(first).bounding_shape()[1].numpy())
        for output in signatures[name](**tensors).values():
            assert output.shape[0] == len(first)
    assert widths == {4, 9}
    card = json.loads((Path(path) / "assets.extra" / "model.json").read_text())
    assert card["warmup"]["batch_sizes"] == [1, 3]


@pytest.mark.parametrize("kind", MAKE)
def test_texts_have_the_tokens_asked_for(kind: str) -> None:
    tokenizer = MAKE[kind](LINES)
    for length in (1, 2, 7, 16, 33):
        texts = _texts(tokenizer, length, 5)
        assert len(set(texts)) == len(texts) == (1 if length == 1 else 5)
        assert tokenizer.tokenize(texts).row_lengths().numpy().tolist() == [length - 1] * len(texts)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_sizes": ()}, "batch_sizes must be rising integers of at least 1"),
        ({"lengths": (8, 4)}, "lengths must be rising integers of at least 1"),
        ({"signatures": "translate"}, "signatures must be different names"),
        ({"signatures": ()}, "signatures must be different names"),
        ({"signatures": ("a", "a")}, "signatures must be different names"),
    ],
)
def test_options_that_cannot_be_are_named(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Warmup(**options)


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path / "base"
    many = Warmup(batch_sizes=tuple(range(1, 400)))
    cases = [(many, "at most 1000 requests, received 2394"), (Warmup(signatures=("no",)), "signature 'no'")]
    for warmup, message in cases:
        with pytest.raises(ValueError, match=message):
            export(base, "language model", warmup)
    with pytest.raises(TypeError, match="warmup must be True, False or Warmup, received 3"):
        export(base, "language model", 3)
    monkeypatch.setitem(sys.modules, "tensorflow_serving.apis", None)
    with pytest.raises(ImportError, match=r"pip install 'keras_seq2seq\[serving\]'"):
        export(base, "language model", True)
    assert list(base.iterdir()) == []
    assert ks.serving.Warmup is Warmup
