"""A translator or a generator on disk.

```
DIRECTORY/
  translator.json          names the directory below; strategy, settings, versions, fingerprint
  content-<random>/
    model.keras            loads with `keras.saving.load_model`, too
    source_tokenizer/
    target_tokenizer/      unless it is the same
```

Of a generator it is `generator.json` and `tokenizer/`. A save writes everything aside, moves the content in
under a new name and replaces the card last: at every moment the directory holds what was there before, or
the new one. Other files in it are left alone.
"""

import contextlib
import dataclasses
import inspect
import json
import os
import re
import secrets
import shutil
from typing import Any

import keras

from keras_seq2seq import text
from keras_seq2seq.serving.files import aside, explained, sync
from keras_seq2seq.serving.metadata import fingerprint, strategy_config, strategy_from_config, versions
from keras_seq2seq.serving.served import Served, tokenizers

__all__ = ["load", "save"]

_FORMAT = 1
_CARDS = {"Translator": "translator.json", "Generator": "generator.json"}


def save(served: Served, directory: str | os.PathLike[str]) -> None:
    """Write a translator or a generator into `directory`, which is made if need be.

    Raises:
        ValueError: a strategy that is not of `keras_seq2seq.search`.
        OSError: a directory that cannot be written.
    """
    directory, name = os.fspath(directory), _CARDS[served.KIND]
    sides, content = tokenizers(served), f"content-{secrets.token_hex(4)}"
    card = {
        "kind": served.KIND,
        "format": _FORMAT,
        "content": content,
        "strategy": strategy_config(served.strategy),
        "settings": dataclasses.asdict(served.settings),
        "versions": versions(),
        "fingerprint": fingerprint(served.model, list(sides.values())),
    }
    with explained(directory), aside(directory) as work:
        os.mkdir(os.path.join(work, content))
        _bare(served.model).save(os.path.join(work, content, "model.keras"))
        for side, tokenizer in sides.items():
            tokenizer.save(os.path.join(work, content, side))
        with open(os.path.join(work, name), "w", encoding="utf-8") as file:
            file.write(json.dumps(card, indent=2) + "\n")
        sync(work)
        os.replace(os.path.join(work, content), os.path.join(directory, content))
        os.replace(os.path.join(work, name), os.path.join(directory, name))
        _remove_others(directory, name, content)


def load(cls: type[Served], directory: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what `save` wrote, as arguments for `cls`, a `Translator` or a `Generator`.

    Raises:
        FileNotFoundError: a directory that holds no such thing.
        ValueError: one that is damaged, or that this version cannot read.
    """
    directory = os.fspath(directory)
    card = _read_card(directory, cls.KIND)
    content = os.path.join(directory, card["content"])
    model = _read_model(os.path.join(content, "model.keras"))
    sides = {
        side: text.load(os.path.join(content, side))
        for side in cls.SIDES.values()
        if os.path.isdir(os.path.join(content, side))
    }
    if fingerprint(model, list(sides.values())) != card["fingerprint"]:
        raise ValueError(
            f"{directory!r} is damaged: its files do not have the fingerprint in {_CARDS[cls.KIND]}."
        )
    strategy = strategy_from_config(card["strategy"])
    unknown = set(card["settings"]) - set(inspect.signature(cls).parameters)
    if unknown:
        raise ValueError(
            f"this version of keras_seq2seq does not know the settings {', '.join(sorted(unknown))}."
        )
    return {**card["settings"], "model": model, **sides, "strategy": strategy}


def _read_card(directory: str, kind: str) -> dict[str, Any]:
    name = _CARDS[kind]
    path = os.path.join(directory, name)
    if not os.path.isfile(path):
        missing = f"{name} is missing" if os.path.isdir(directory) else "there is no such directory"
        raise FileNotFoundError(f"{directory!r} holds no {kind.lower()}: {missing}.")
    try:
        with open(path, encoding="utf-8") as file:
            card = json.load(file)
        number, found = card["format"], card["kind"]
        complete = (
            re.fullmatch("content-[0-9a-f]+", card["content"])
            and isinstance(card["strategy"], dict)
            and isinstance(card["settings"], dict)
            and isinstance(card["fingerprint"], str)
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path!r} does not describe a {kind.lower()}.") from error
    if found != kind or not complete:
        raise ValueError(f"{path!r} does not describe a {kind.lower()}.")
    if number != _FORMAT:
        raise ValueError(f"{path!r} has format {number}, this version of keras_seq2seq reads {_FORMAT}.")
    return card


def _read_model(path: str) -> Any:
    if not os.path.isfile(path):
        raise ValueError(f"{path!r} is missing.")
    try:
        return keras.saving.load_model(path, compile=False)
    except Exception as error:  # Keras raises whatever went wrong inside
        reason = " ".join(str(error).split())
        raise ValueError(f"{path!r} cannot be loaded: {reason:.400}") from error


def _bare(model: Any) -> Any:
    """Return a model without optimizer, whose slots would make the file three times as large."""
    if not model.compiled:
        return model
    copy = type(model).from_config(model.get_config())
    copy.set_weights(model.get_weights())
    return copy


def _remove_others(directory: str, card: str, content: str) -> None:
    """Remove what was in the directory before: the card of the other kind first, then the content."""
    for other in set(_CARDS.values()) - {card}:
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(directory, other))
    for entry in list(os.scandir(directory)):
        if re.fullmatch("content-[0-9a-f]{8}", entry.name) and entry.name != content:
            shutil.rmtree(entry.path, ignore_errors=True)
