"""Who may import whom, and how long a file and a function may be: the house rules, checked."""

import ast
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = "keras_seq2seq"
ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / PACKAGE).rglob("*.py"))
OTHER_FILES = sorted(file for folder in ("examples", "tests") for file in (ROOT / folder).rglob("*.py"))
MAX_LINES, MAX_MEDIAN, MAX_FUNCTION = 400, 200, 40

# room or file -> (what it may import of the package besides itself, what it may import from outside).
# The longest matching name decides; "_version" and the standard library are open to all.
TEXT = {"tensorflow", "tensorflow_text", "keras_nlp", "keras_hub", "sentencepiece", "keras", "numpy"}
ALL_ROOMS = {"layers", "models", "search", "training", "text", "data"} | {
    "serving", "distribute", "plots", "evaluate"
}  # fmt: skip
ARROWS: dict[str, tuple[set[str], set[str]]] = {
    "": (ALL_ROOMS, set()),
    "_version": (set(), set()),
    "layers": (set(), {"keras", "numpy"}),
    "models": ({"layers"}, {"keras", "numpy"}),
    "search": ({"models.protocol"}, {"keras", "numpy"}),
    "training": (set(), {"keras", "numpy"}),
    "training.averaging": (set(), {"keras", "numpy", "h5py"}),
    "training.checkpoint_files": (set(), {"keras", "numpy", "h5py"}),
    "training.global_batch": (set(), {"keras", "tensorflow"}),
    "training.callbacks": ({"serving", "evaluate"}, {"keras", "numpy", "tensorflow"}),
    "text": (set(), TEXT),
    "data": ({"text"}, {"tensorflow", "numpy"}),
    "distribute": (set(), {"tensorflow", "keras"}),
    "serving": ({"layers", "models", "search", "text", "data"}, TEXT),
    "serving.server_files": (set(), set()),
    "serving.warmup": ({"text"}, {"tensorflow", "tensorflow_serving", "numpy"}),
    "plots": (set(), {"matplotlib", "numpy"}),
    "evaluate": (set(), {"sacrebleu", "numpy"}),
    "commands.inspect": (set(), {"google", "numpy", "tensorflow"}),
    "commands": (ALL_ROOMS, TEXT | {"rich", "matplotlib"}),
    "cli": (ALL_ROOMS | {"commands"}, TEXT | {"rich"}),
    "__main__": ({"cli"}, set()),
}


def module_name(path: Path) -> str:
    """Name a file of the package without the package: `layers`, `layers.masks`, "" for the top."""
    parts = path.relative_to(ROOT / PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports(tree: ast.Module, module: str, is_package: bool) -> Iterator[str]:
    """Yield the full dotted name of everything that a module imports, wherever the statement stands."""
    here = [PACKAGE, *module.split(".")] if module else [PACKAGE]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            up = node.level - is_package
            base = here[: len(here) - up] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            yield from (".".join([*base, alias.name]) for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            yield from (str(value.value) for value in node.args[:1] if isinstance(value, ast.Constant))


def within(name: str, rooms: set[str]) -> bool:
    """Say whether a dotted name lies in one of the rooms."""
    return any(name == room or name.startswith(room + ".") for room in rooms)


def forbidden_imports(source: str, module: str, is_package: bool = False) -> list[str]:
    """List the imports that the rules do not allow this module."""
    room = max((room for room in ARROWS if within(module, {room})), key=len, default=None)
    if room is None:
        return [f"{module} has no place in the table of rooms"]
    rooms, libraries = ARROWS[room]
    own = {module.split(".")[0]} - {""}
    found = []
    for name in imports(ast.parse(source), module, is_package):
        top, _, rest = name.partition(".")
        inside = top == PACKAGE and within(rest, rooms | own | {"_version"})
        if not (inside or top in libraries or top in sys.stdlib_module_names):
            found.append(name)
    return found


def function_lengths(source: str) -> dict[str, int]:
    """Count the lines of each function's body, its docstring left out."""
    lengths = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node, clean=False) is not None
            first = node.body[0]
            skipped = (first.end_lineno or 0) - first.lineno + 1 if docstring else 0
            lengths[f"{node.name}:{node.lineno}"] = (node.end_lineno or 0) - first.lineno + 1 - skipped
    return lengths


def line_count(path: Path) -> int:
    """Count the lines of a file."""
    return len(path.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_imports_follow_the_arrows(path):
    found = forbidden_imports(path.read_text("utf-8"), module_name(path), path.name == "__init__.py")
    assert not found, f"{path.relative_to(ROOT)} may not import {', '.join(found)}"


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_functions_are_short(path):
    lengths = function_lengths(path.read_text("utf-8"))
    assert not {name: n for name, n in lengths.items() if n > MAX_FUNCTION}


def test_files_are_short():
    lengths = {str(path.relative_to(ROOT)): line_count(path) for path in FILES + OTHER_FILES}
    assert not {name: n for name, n in lengths.items() if n > MAX_LINES}
    bodies = [n for name, n in lengths.items() if name.startswith(PACKAGE) and "__init__" not in name]
    assert statistics.median(bodies) <= MAX_MEDIAN


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("layers.masks", "import tensorflow as tf"),
        ("layers.masks", "from tensorflow.keras import layers"),
        ("layers.masks", "def f():\n    import tensorflow"),
        ("layers.masks", "from importlib import import_module\nimport_module('tensorflow')"),
        ("layers.masks", "from ..models import protocol"),
        ("layers.masks", "from .. import models"),
        ("layers.masks", "import keras_seq2seq as ks"),
        ("layers.masks", "import keras_seq2seq.models.protocol"),
        ("layers.masks", "import matplotlib.pyplot as plt"),
        ("models.seq2seq", "from ..search.loop import search"),
        ("search.loop", "from ..models.seq2seq import Seq2Seq"),
        ("search.loop", "from ..models import Seq2Seq"),
        ("search.loop", "import tensorflow"),
        ("training.losses", "import tensorflow"),
        ("training.losses", "from ..evaluate import bleu"),
        ("training.callbacks", "from ..data import ParallelText"),
        ("data.batching", "from ..serving import Translator"),
        ("serving.translator", "from ..training import SmoothedCrossentropy"),
        ("evaluate", "import tensorflow"),
        ("cupboard.things", "import os"),
    ],
)
def test_a_forbidden_import_is_found(module, source):
    assert forbidden_imports(source, module)


@pytest.mark.parametrize(
    ("module", "source", "is_package"),
    [
        ("layers.masks", "import math\nimport keras\nfrom keras import ops\nfrom .positions import a", False),
        ("layers", "from .masks import padding_mask\nfrom . import masks", True),
        ("models.seq2seq", "from ..layers import AddNorm\nfrom .protocol import DecodeState", False),
        ("search.loop", "from ..models.protocol import DecodeState\nfrom ..models import protocol", False),
        ("training.callbacks", "import tensorflow\nfrom ..serving import Translator", False),
        ("serving.translator", "from .._version import __version__\nfrom ..text import load", False),
        ("", "from . import layers\nfrom ._version import __version__", True),
    ],
)
def test_an_allowed_import_passes(module, source, is_package):
    assert not forbidden_imports(source, module, is_package)


def test_a_long_function_is_measured_without_its_docstring():
    source = "def f():\n    '''One.\n\n    Two.\n    '''\n    x = 1\n    return x\n"
    assert function_lengths(source) == {"f:1": 2}
    assert function_lengths("class A:\n    async def g(self):\n" + "        x = 1\n" * 50) == {"g:2": 50}
