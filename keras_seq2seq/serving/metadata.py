"""What a saved or an exported translator says about itself."""

import dataclasses
import hashlib
import os
import platform
import tempfile
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from keras_seq2seq import search
from keras_seq2seq._version import __version__
from keras_seq2seq.text import Tokenizer

__all__ = ["fingerprint", "strategy_config", "strategy_from_config", "versions"]

_PACKAGES = ("tensorflow", "keras", "keras_nlp", "tensorflow_text", "numpy")


def versions() -> dict[str, str]:
    """Return the versions of the library, of Python and of the packages that decide what a model does."""
    found = {"keras_seq2seq": __version__, "python": platform.python_version()}
    return found | {name: import_module(name).__version__ for name in _PACKAGES}


def fingerprint(model: Any, tokenizers: Sequence[Tokenizer]) -> str:
    """Return the SHA-256 of the weights and the tokenizers: equal for a model, its copies and its exports."""
    digest = hashlib.sha256()
    for weight in model.weights:
        value = np.ascontiguousarray(weight.numpy())
        digest.update(f"{value.dtype}{value.shape}".encode())
        digest.update(value.tobytes())
    for tokenizer in tokenizers:
        with tempfile.TemporaryDirectory() as directory:
            tokenizer.save(directory)
            for name in sorted(os.listdir(directory)):
                with open(os.path.join(directory, name), "rb") as file:
                    digest.update(name.encode() + file.read())
    return digest.hexdigest()


def strategy_config(strategy: Any) -> dict[str, Any]:
    """Return a strategy of `keras_seq2seq.search` as plain values.

    Raises:
        ValueError: a strategy of another kind.
    """
    kind = type(strategy).__name__
    if getattr(search, kind, None) is not type(strategy):
        raise ValueError(f"strategy must be one of keras_seq2seq.search, received {strategy!r}.")
    return {"kind": kind, **dataclasses.asdict(strategy)}


def strategy_from_config(config: dict[str, Any]) -> Any:
    """Rebuild the strategy that `strategy_config` described.

    Raises:
        ValueError: a kind or an argument that this version does not know.
    """
    config = dict(config)
    kind = config.pop("kind", None)
    if (
        not isinstance(kind, str)
        or kind not in search.__all__
        or not dataclasses.is_dataclass(getattr(search, kind))
    ):
        raise ValueError(f"this version of keras_seq2seq has no search strategy {kind!r}.")
    try:
        return getattr(search, kind)(**config)
    except TypeError as error:
        raise ValueError(
            f"this version of keras_seq2seq cannot read the strategy {kind}: {error}."
        ) from error
