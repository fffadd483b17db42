"""The examples in docstrings are run as they stand, and show what comes out.

An example is a doctest: lines that begin with `>>>`, and their output. Before its first line stand

    import keras, keras_seq2seq as ks, numpy as np, tensorflow as tf

and the working directory has the files train.en and train.de.
"""

import ast
import doctest
import random
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_seq2seq as ks

PACKAGE = Path(__file__).parents[1] / "keras_seq2seq"
PURE = {"layers", "models", "search", "training"}  # rooms that know nothing of TensorFlow
# What newcomers meet first, and find an example of.
SHOWN = {
    "AddNorm", "BahdanauAttention", "LuongAttention", "MultiHeadSelfAttention", "PositionalEmbedding",
    "rnn_seq2seq", "transformer_encoder", "transformer_lm", "transformer_seq2seq",
    "Translator", "SentencePiece", "ParallelText", "Checkpoints", "SmoothedCrossentropy", "WarmupInverseSqrt",
    "Beam", "Greedy", "Sampling", "bleu",
}  # fmt: skip


class Docstring(NamedTuple):
    """A docstring, of what (a file's own has the file's name), and where."""

    name: str
    text: str
    path: Path
    line: int


def docstrings(source: str, path: Path) -> Iterator[Docstring]:
    """Yield all docstrings of a file, those of private things and methods among them."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield Docstring(getattr(node, "name", path.stem), text, path, node.body[0].lineno)


def code_that_is_not_run(text: str) -> list[str]:
    """Return the Python in a docstring that is no doctest: fenced, or indented behind `::`."""
    fenced = re.findall(r"^( *)```\w*\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL)
    literal = re.findall(r"::\n\n((?:(?: +.*)?\n)+)", text + "\n")
    return [block for block in [*(inner for _, inner in fenced), *literal] if is_python(block)]


def is_python(block: str) -> bool:
    """Say whether a block is code, and no formula and no list of files."""
    try:
        ast.parse(textwrap.dedent(block))
    except SyntaxError:
        return False
    return ">>> " not in block


ALL = [each for path in sorted(PACKAGE.rglob("*.py")) for each in docstrings(path.read_text("utf-8"), path)]
EXAMPLES = [each for each in ALL if ">>>" in each.text]


@pytest.fixture
def names(tmp_path: Path, monkeypatch) -> dict[str, Any]:
    """What examples find when they begin."""
    pairs = [
        (f"{number} dogs and {number + 1} cats", f"{number} Hunde, {number + 1} Katzen")
        for number in range(20)
    ]
    for side, language in enumerate(("en", "de")):
        (tmp_path / f"train.{language}").write_text("".join(pair[side] + "\n" for pair in pairs))
    monkeypatch.chdir(tmp_path)
    random.seed(0)  # where Keras gets the seeds of layers from
    return {"keras": keras, "ks": ks, "np": np, "tf": tf}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.name)
def test_an_example_does_what_it_shows(example: Docstring, names: dict[str, Any]) -> None:
    if example.path.relative_to(PACKAGE).parts[0] in PURE:
        assert "tf." not in example.text
    told: list[str] = []
    test = doctest.DocTestParser().get_doctest(
        example.text, names, example.name, str(example.path), example.line - 1
    )
    doctest.DocTestRunner(verbose=False).run(test, out=told.append, clear_globs=True)
    assert not told, "".join(told)


def test_newcomers_find_examples() -> None:
    assert not SHOWN - {each.name for each in EXAMPLES}


def test_code_in_docstrings_is_run() -> None:
    found = {f"{each.path.name}:{each.name}": code_that_is_not_run(each.text) for each in ALL}
    assert not {name: blocks for name, blocks in found.items() if blocks}, "write it as a doctest, with >>>"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Do.\n\n```\nx = f(1)\n```\n\nMore.", 1),
        ("Do.\n\n    ```python\n    with x:\n        f()\n    ```", 1),
        ("Do so::\n\n    x = f(1)\n    y = 2\n\nMore.", 1),
        ("Do.\n\n```\nrate = sum over items of edits\n```", 0),
        ("Do.\n\n```\n>>> f(1)\n2\n```", 0),
        ("Do `x = f(1)`.", 0),
    ],
)
def test_code_is_told_from_other_blocks(text: str, count: int) -> None:
    assert len(code_that_is_not_run(text)) == count
