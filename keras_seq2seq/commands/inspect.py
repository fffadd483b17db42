"""`keras-seq2seq inspect`: what an export is, read from its files; no model is loaded."""

import json
import os
from collections.abc import Iterator
from typing import Any

__all__ = ["describe", "read_export"]

_WARMUP = os.path.join("assets.extra", "tf_serving_warmup_requests")


def read_export(path: str) -> dict[str, Any]:
    """Read what an export says of itself, with its sizes.

    Args:
        path: of a version, or of the directory of all versions, whose newest is read.

    Returns:
        The content of `assets.extra/model.json` with `path`, `version`, `bytes` (graph, variables, all) and
        `warmup_requests` (None where there is no file of them).

    Raises:
        ValueError: a directory that holds no export of this library.
    """
    if not os.path.isdir(path):
        raise ValueError(f"{path!r} is no directory.")
    versions = [int(name) for name in os.listdir(path) if name.isdecimal()]
    own = os.path.join(path, str(max(versions))) if versions else path
    if not os.path.isfile(os.path.join(own, "saved_model.pb")):
        raise ValueError(f"{own!r} holds no SavedModel: saved_model.pb is missing.")
    card = os.path.join(own, "assets.extra", "model.json")
    try:
        with open(card, encoding="utf-8") as file:
            found = json.load(file)
        if not isinstance(found["signatures"], dict):
            raise ValueError("signatures")
    except FileNotFoundError as error:
        raise ValueError(f"{own!r} is no export of keras_seq2seq: {card!r} is missing.") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{card!r} does not describe an export of keras_seq2seq.") from error
    name = os.path.basename(os.path.abspath(own))
    sizes = {
        "graph": os.path.getsize(os.path.join(own, "saved_model.pb")),
        "variables": _size(os.path.join(own, "variables")),
        "all": _size(own),
    }
    version = int(name) if name.isdecimal() else None
    return {"path": own, "version": version, **found, "bytes": sizes, "warmup_requests": _records(own)}


def describe(export: dict[str, Any]) -> str:
    """Write down what `read_export` found, for a reader."""
    lines = [f"{label:<14}{value}" for label, value in _facts(export)]
    rows = [("signature", "inputs", "outputs")]
    for name, parts in export["signatures"].items():
        rows.append((name, _specs(parts["inputs"]), _specs(parts["outputs"])))
    widths = [max(len(row[column]) for row in rows) + 2 for column in (0, 1)]
    table = [f"{name:<{widths[0]}}{inputs:<{widths[1]}}{outputs}" for name, inputs, outputs in rows]
    return "\n".join([*lines, "", *table])


def _facts(export: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield labels and values."""
    sizes, xla, requests = export["bytes"], export.get("xla"), export["warmup_requests"]
    yield "kind", export.get("kind", "unknown")
    yield "path", export["path"]
    yield "made", f"{export.get('created', 'unknown')} with {_pairs(export.get('versions', {}), ' ')}"
    parts = ", ".join(f"{name} {size / 1e6:,.1f} MB" for name, size in sizes.items() if name != "all")
    yield "size", f"{sizes['all'] / 1e6:,.1f} MB: {parts}"
    strategy = dict(export.get("strategy", {}))
    yield "search", f"{strategy.pop('kind', 'unknown')}({_pairs(strategy, '=')})"
    yield "settings", _pairs(export.get("settings", {}), "=")
    yield "vocabularies", _pairs(export.get("vocabulary_sizes", {}), " ")
    yield "beyond core", ", ".join(export.get("custom_ops", [])) or "no operations"
    needs = "; needs --xla_cpu_compilation_enabled=true"
    yield "XLA", "no" if xla is None else _pairs(xla, " ") + needs
    yield "warm-up", "no requests" if requests is None else f"{requests} requests"
    yield "fingerprint", export.get("fingerprint", "unknown")


def _pairs(values: dict[str, Any], between: str) -> str:
    return ", ".join(f"{name}{between}{value}" for name, value in values.items())


def _specs(specs: dict[str, Any]) -> str:
    return ", ".join(f"{name} {spec['dtype']} {spec['shape']}" for name, spec in specs.items())


def _size(path: str) -> int:
    """Return the bytes of all files below a directory."""
    files = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
    return sum(map(os.path.getsize, files))


def _records(path: str) -> int | None:
    """Count the records of the file that TF Serving warms up with: length, checksum, content, checksum."""
    try:
        with open(os.path.join(path, _WARMUP), "rb") as file:
            count = 0
            while header := file.read(12):
                file.seek(int.from_bytes(header[:8], "little") + 4, os.SEEK_CUR)
                count += 1
            return count
    except FileNotFoundError:
        return None
