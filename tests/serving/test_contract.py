"""What clients rely on: signatures with their names, dtypes and shapes, any number of rows, no local path."""

import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import c_loader
import killed_export
import numpy as np
import pytest
import tensorflow as tf
from references import randomize
from tensorflow.core.protobuf import saved_model_pb2

import keras_seq2seq as ks
from keras_seq2seq.serving import saved_model

TEXT, SEED = ("string", [None]), ("int64", [None])
NUMBER, COUNT = ("float32", [None]), ("int32", [None])


def signatures_of(name: str, default: str, n: int) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Return what every signature takes and gives; `name` is of the text that comes out."""
    one = {name: TEXT, "score": NUMBER}
    return {
        "serving_default": ({"text": TEXT}, one),
        default: ({"text": TEXT}, one),
        f"{default}_n_best": (
            {"text": TEXT},
            {f"{name}s": ("string", [None, n]), "scores": ("float32", [None, n])},
        ),
        "sample": ({"text": TEXT, "seed": SEED}, one),
    }


CONTRACT = {
    "translator": signatures_of("translation", "translate", 2)
    | {
        "translate_with_prefix": ({"text": TEXT, "prefix": TEXT}, {"translation": TEXT, "score": NUMBER}),
        "score": ({"source": TEXT, "target": TEXT}, {"score": NUMBER, "token_count": COUNT}),
    },
    "generator": signatures_of("completion", "generate", 1)
    | {"score": ({"text": TEXT}, {"score": NUMBER, "token_count": COUNT})},
}


def translator() -> ks.Translator:
    """Return one whose tokens are bytes, so that what it says need be no text."""
    tokenizer = ks.text.Bytes()
    model = ks.models.transformer_seq2seq(
        tokenizer.vocabulary_size, num_layers=1, model_dim=8, num_heads=1, tie_embeddings=False
    )
    randomize(model, 0.8, seed=4)
    return ks.Translator(model, tokenizer, strategy=ks.search.Beam(2), max_length=12, min_length=2)


@pytest.fixture(scope="module", params=["translator", "generator"])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """An export and the signatures that it must have."""
    served = translator() if request.param == "translator" else killed_export.generator()
    base = tmp_path_factory.mktemp("contract") / "base"
    return Path(served.export(base, samples=killed_export.LINES[:1])), CONTRACT[request.param]


def read(path: Path) -> dict[str, Any]:
    """Read the signatures as TensorFlow Serving does."""
    saved = saved_model_pb2.SavedModel.FromString((path / "saved_model.pb").read_bytes())

    def plain(tensors: Any) -> dict[str, Any]:
        return {
            name: (tf.as_dtype(each.dtype).name, tf.TensorShape(each.tensor_shape).as_list())
            for name, each in tensors.items()
        }

    found = saved.meta_graphs[0].signature_def
    return {
        name: (plain(each.inputs), plain(each.outputs))
        for name, each in found.items()
        if not name.startswith("__")
    }


def test_signatures_have_the_names_dtypes_and_shapes_of_the_contract(case: Any) -> None:
    path, expected = case
    assert read(path) == expected
    outputs = {name: shape for _, given in expected.values() for name, (_, shape) in given.items()}
    assert all(shape[0] is None for shape in outputs.values()), "each output has a batch axis"
    assert not [name for name in outputs if name.endswith("_bytes")]
    card = json.loads((path / "assets.extra" / "model.json").read_text())["signatures"]
    told = {
        name: tuple(
            {key: (each["dtype"], each["shape"]) for key, each in signature[side].items()}
            for side in ("inputs", "outputs")
        )
        for name, signature in card.items()
    }
    assert told == expected


def test_every_name_of_a_signature_is_documented() -> None:
    documented = set(re.findall(r"`(\w+)`", saved_model.export.__doc__ or ""))
    for signatures in CONTRACT.values():
        for name, (inputs, outputs) in signatures.items():
            assert {name, *inputs, *outputs} <= documented


def test_every_signature_takes_0_1_2_and_7_rows_and_copies_change_nothing(case: Any) -> None:
    path, signatures = case
    texts = ["the sea", "", "of the shore", "\u2603", "sea", "<s> </s>", "the shore"]
    columns: dict[str, list[Any]] = {
        "text": texts, "source": texts, "target": texts[::-1], "prefix": ["", "\u4f60", *[""] * 5],
        "seed": [3, -1, 2**63 - 1, -(2**63), 0, 3, 7],
    }  # fmt: skip
    # Rows of the seven; copies are what a server fills batches up with.
    batches = [[], [0], [4, 2], [0, 1, 2, 3, 4, 5, 6], [2, *[0] * 7], [6, 0, 6, 0]]
    requests = [
        (name, {key: [columns[key][row] for row in rows] for key in inputs})
        for name, (inputs, _) in signatures.items()
        for rows in batches
    ]
    answers = iter(c_loader.run_signatures(path, requests))
    for name, (_, outputs) in signatures.items():
        by_batch = [next(answers) for _ in batches]
        whole = by_batch[3]
        for rows, answer in zip(batches, by_batch, strict=True):
            assert set(answer) == set(outputs)
            json.dumps(answer, ensure_ascii=False).encode()  # bytes that are no text would not pass
            for key, (dtype, _) in outputs.items():
                expected = [whole[key][row] for row in rows]
                if dtype == "float32":
                    assert np.allclose(answer[key], expected, atol=1e-4), (name, rows, key)
                else:
                    assert answer[key] == expected, (name, rows, key)


def test_no_file_of_an_export_names_a_place_of_this_machine(case: Any) -> None:
    path, _ = case
    places = {
        sys.prefix,
        os.getcwd(),
        os.path.dirname(saved_model.__file__),
        tempfile.gettempdir(),
        str(path),
    }
    patterns = [re.escape(os.fsencode(each)) + rb"/" for each in places if len(each) > 1]
    patterns += [rb"(?<![\w.])/(?:usr|home|root|var|opt|etc|Users)/", rb"site-packages", rb"[A-Z]:\\Users"]
    for file in path.rglob("*"):
        if file.is_file():
            assert not re.search(b"|".join(patterns), file.read_bytes()), file
