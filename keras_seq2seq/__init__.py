"""Sequence-to-sequence models in Keras: from two text files to a served model.

The rooms that Keras needs in order to load a saved model (`layers`, `models`,
`training`) are imported at once; they are pure Keras and run on every backend.
The rest is loaded on first use, so that `import keras_seq2seq` brings in
TensorFlow only if Keras itself does.
"""

from importlib import import_module
from typing import Any

from . import layers, models, training
from ._version import __version__

_ROOMS = ("data", "distribute", "evaluate", "plots", "search", "serving", "text")
_CLASSES = {"Generator": "serving", "Translator": "serving"}

__all__ = [
    "Generator",
    "Translator",
    "__version__",
    "data",
    "distribute",
    "evaluate",
    "layers",
    "models",
    "plots",
    "search",
    "serving",
    "text",
    "training",
]


def __getattr__(name: str) -> Any:
    """Load a room, or a class that lives in one, when it is first asked for."""
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    if name in _CLASSES:
        return getattr(import_module(f"{__name__}.{_CLASSES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
