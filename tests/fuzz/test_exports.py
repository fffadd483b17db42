"""An export asked by an attacker: any bytes, any number of rows, columns that do not fit."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from benchmarks.soak import Answer, Export, Question
from fuzz.strange import BYTES, PARTS
from hypothesis import strategies as st
from references import randomize
from tokenizer_kinds import LINES, MAKE

import keras_seq2seq as ks

LIMIT = 30.0  # MB
ROWS = st.lists(st.tuples(BYTES, BYTES, st.integers(-(2**63), 2**63 - 1)), max_size=8)
SIGNATURES = ["translate", "translate_n_best", "translate_with_prefix", "sample", "score"]
# Long texts are cut, which Python says and an export cannot.
pytestmark = pytest.mark.filterwarnings("ignore:.* had more than")


class Case(NamedTuple):
    """An export and what it was made of."""

    export: Export
    translator: ks.Translator


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """One that reads pieces and writes bytes, so that what it says need be no text."""
    source, target = MAKE["sentence_piece"](LINES), ks.text.Bytes()
    model = ks.models.transformer_seq2seq(
        source.vocabulary_size,
        target.vocabulary_size,
        num_layers=1,
        model_dim=8,
        num_heads=1,
        tie_embeddings=False,
    )
    randomize(model, 0.8, seed=4)
    limits = {"max_length": 12, "max_source_length": 40, "min_length": 2}
    translator = ks.Translator(model, source, target, ks.search.Beam(2), **limits)
    base: Path = tmp_path_factory.mktemp("fuzzed") / "base"
    return Case(Export(translator.export(base, samples=LINES[:1])), translator)


def question(export: Export, name: str, row: tuple[bytes, bytes, int]) -> Question:
    """Take what a signature asks for from a row of two texts and a seed."""
    text, other, seed = row
    columns: dict[str, bytes | int] = {
        "text": text,
        "source": text,
        "prefix": other,
        "target": other,
        "seed": seed,
    }
    return Question(name, tuple(columns[column] for column in export.inputs[name]))


def valid(text: bytes) -> str:
    """Say what text bytes are: invalid UTF-8 is U+FFFD."""
    return text.decode("utf-8", "replace")


@pytest.mark.parametrize("name", SIGNATURES)
def test_rows_get_valid_answers_that_do_not_depend_on_their_batch(fuzz, case, name):
    export = case.export

    @fuzz(10, rows=ROWS)
    def check(rows: list[tuple[bytes, bytes, int]]) -> None:
        questions = [question(export, name, row) for row in rows]
        if not rows:
            inputs = {key: tf.constant([], spec.dtype) for key, spec in export.inputs[name].items()}
            assert all(value.shape[0] == 0 for value in export.signatures[name](**inputs).values())
            return
        answers = export.ask(questions)  # in which texts are decoded strictly
        assert len(answers) == len(rows)
        for row, asked, answer in zip(rows, questions, answers, strict=True):
            assert np.isfinite(answer.numbers).all()
            assert answer.same(export.ask([asked])[0])
            as_text = (valid(row[0]).encode(), valid(row[1]).encode(), row[2])
            assert answer.same(export.ask([question(export, name, as_text)])[0])
            if name != "score" and not valid(row[0]).strip():
                assert answer == Answer(("",) * len(answer.texts), (0.0,) * len(answer.numbers))


def test_answers_are_those_of_the_translator_in_memory(fuzz, case):
    @fuzz(15, texts=st.lists(BYTES, min_size=1, max_size=8))
    def check(texts: list[bytes]) -> None:
        found = case.export.ask([Question("translate_n_best", (text,)) for text in texts])
        for answer, row in zip(found, case.translator.translate(list(map(valid, texts)), 2), strict=True):
            expected = Answer(tuple(each.text for each in row), tuple(each.score for each in row))
            assert answer.same(expected)


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [("translate_with_prefix", "text", "prefix"), ("sample", "text", "seed"), ("score", "source", "target")],
)
def test_columns_of_unequal_length_are_an_error_that_says_so(fuzz, case, name, first, second):
    dtype = case.export.inputs[name][second].dtype

    @fuzz(10, texts=st.lists(BYTES, max_size=8), count=st.integers(0, 8))
    def check(texts: list[bytes], count: int) -> None:
        count += count >= len(texts)  # any number but the right one
        others: list[Any] = [0 if dtype == tf.int64 else b"a"] * count
        columns = {first: tf.constant(texts, tf.string), second: tf.constant(others, dtype)}
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=f"{second} must have one entry for each text"
        ):
            case.export.signatures[name](**columns)


def test_memory_does_not_grow(times, memory, case, rng):
    """Batches of every size, with rows of up to two thousand random bytes or parts."""

    def text() -> bytes:
        if rng.random() < 0.5:
            return rng.bytes(rng.integers(2000))
        return b"".join(PARTS[place] for place in rng.integers(len(PARTS), size=rng.integers(200)))

    def work(rounds: int) -> None:
        for turn in range(rounds):
            name = SIGNATURES[turn % len(SIGNATURES)]
            rows = [(text(), text(), int(rng.integers(2**62))) for _ in range(rng.integers(1, 9))]
            case.export.ask([question(case.export, name, row) for row in rows])

    work(40)
    watched = memory()
    work(40 * times)
    assert watched.growth < LIMIT
