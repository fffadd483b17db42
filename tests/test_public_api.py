"""The public names and their parameters are those of `public_api.txt`; a change of them is made there too.

python tests/test_public_api.py > tests/public_api.txt
"""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras_seq2seq as ks

LISTED = Path(__file__).with_name("public_api.txt")
ROOMS = (
    "layers",
    "models",
    "search",
    "training",
    "text",
    "data",
    "serving",
    "distribute",
    "evaluate",
    "plots",
)


def methods(thing: type) -> list[str]:
    """List what the library's classes define, less what they take over from those of Keras and TensorFlow."""
    own = [each for each in thing.__mro__ if each.__module__.startswith("keras_seq2seq")]
    others = [each for each in thing.__mro__ if each not in own]
    names = {name for each in own for name in vars(each)} - {name for each in others for name in dir(each)}
    return sorted(name for name in names if not name.startswith("_"))


def parameters(function: Any) -> str:
    """Return names and defaults, not types."""
    signature = inspect.signature(function)
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    shown = str(inspect.Signature(plain))
    return (
        shown.replace("(/, *args, **kwargs)", "(...)")
        .replace("(self, ", "(")
        .replace("(self)", "()")
        .replace("(cls, ", "(")
        .replace("(cls)", "()")
    )


def lines() -> Iterator[str]:
    """List every public name with its parameters, and the public methods of each class."""
    for room in ROOMS:
        for name in sorted(getattr(ks, room).__all__):
            thing, path = getattr(getattr(ks, room), name), f"{room}.{name}"
            if hasattr(thing, "_fields"):
                yield f"{path}: {', '.join(thing._fields)}"
            elif isinstance(thing, type):
                yield path + parameters(thing)
                for method in methods(thing):
                    found = getattr(thing, method)
                    yield f"{path}.{method}" + (parameters(found) if callable(found) else "")
            else:
                yield path + (parameters(thing) if callable(thing) else f" = {thing!r}")


def test_the_public_api_changes_only_on_purpose() -> None:
    assert list(lines()) == LISTED.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    print("\n".join(lines()))
