"""`keras-seq2seq inspect`: what an export is, read from its files; no model is loaded."""

import json
import os
import textwrap
from collections.abc import Iterator
from typing import Any

__all__ = ["describe", "read_export"]

_WARMUP = os.path.join("assets.extra", "tf_serving_warmup_requests")


def read_export(path: str) -> dict[str, Any]:
    """Read what an export says of itself, with its sizes.

    Args:
        path: of a version, or of the directory of all versions, whose newest is read.

    Returns:
        The content of `assets.extra/model.json` with `path`, `version`, `bytes` (graph, variables, all),
        `weights` (how many numbers they are) and `warmup_requests` (None where there is no file
        of them).

    Raises:
        ValueError: a directory that holds no export of this library, or a damaged one.
        OSError: files that cannot be read.
    """
    if not os.path.isdir(path):
        raise ValueError(f"{path!r} is no directory.")
    versions = [name for name in os.listdir(path) if name.isdecimal()]
    own = os.path.join(path, max(versions, key=int)) if versions else path
    graph = os.path.join(own, "saved_model.pb")
    if not os.path.isfile(graph):
        raise ValueError(f"{own!r} holds no SavedModel: saved_model.pb is missing.")
    foreign = _read_graph(graph)
    card = os.path.join(own, "assets.extra", "model.json")
    if not os.path.isfile(card):
        raise ValueError(f"{own!r} is no export of keras_seq2seq, but {foreign}: {card!r} is missing.")
    found = _read_card(card)
    name = os.path.basename(os.path.abspath(own))
    sizes = {
        "graph": os.path.getsize(graph),
        "variables": _size(os.path.join(own, "variables")),
        "all": _size(own),
    }
    return {
        "path": own,
        "version": int(name) if name.isdecimal() else None,
        **found,
        "bytes": sizes,
        "weights": _weights(os.path.join(own, "variables")),
        "warmup_requests": _records(os.path.join(own, _WARMUP)),
    }


def describe(export: dict[str, Any], width: int | None = None) -> str:
    """Write down what `read_export` found, for a reader.

    Args:
        export: what was found.
        width: of a terminal, in columns; None leaves every fact on one line, for a program to read.
    """
    lines = []
    # A path or a fingerprint stays whole, wherever it has a hyphen: it can be copied.
    wrapper = textwrap.TextWrapper(max((width or 0) - 14, 20), break_long_words=False, break_on_hyphens=False)
    for label, value in _facts(export):
        parts = wrapper.wrap(value) if width else [value]
        lines += [f"{name:<14}{part}" for name, part in zip([label] + [""] * len(parts), parts, strict=False)]
    return "\n".join([*lines, "", *_table(export["signatures"], width)])


def _table(signatures: dict[str, Any], width: int | None) -> list[str]:
    """Return a row for each signature; where that is too wide, lines below one another."""
    rows = [("signature", "inputs", "outputs")]
    rows += [(name, _specs(each["inputs"]), _specs(each["outputs"])) for name, each in signatures.items()]
    widths = [max(len(row[column]) for row in rows) + 2 for column in (0, 1)]
    table = [f"{name:<{widths[0]}}{inputs:<{widths[1]}}{outputs}" for name, inputs, outputs in rows]
    if width is None or max(map(len, table)) <= width:
        return table
    return [line for name, *sides in rows[1:] for line in (name, f"  {sides[0]}", f"    -> {sides[1]}")]


def _facts(export: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield labels and values."""
    sizes, xla, requests = export["bytes"], export.get("xla"), export["warmup_requests"]
    yield "kind", str(export.get("kind", "unknown"))
    yield "version", "unknown" if export["version"] is None else str(export["version"])
    yield "path", export["path"]
    yield "created", str(export.get("created", "unknown"))
    yield "packages", _pairs(export["versions"], " ")
    parts = ", ".join(f"{name} {size / 1e6:,.1f} MB" for name, size in sizes.items() if name != "all")
    yield "size", f"{sizes['all'] / 1e6:,.1f} MB: {parts}; {export['weights']:,} weights"
    strategy = dict(export["strategy"])
    yield "search", f"{strategy.pop('kind', 'unknown')}({_pairs(strategy, '=')})"
    yield "settings", _pairs(export["settings"], "=")
    yield "vocabularies", _pairs(export["vocabulary_sizes"], " ")
    yield "beyond core", ", ".join(map(str, export["custom_ops"])) or "no operations"
    needs = "; needs --xla_cpu_compilation_enabled=true"
    yield "XLA", "no" if xla is None else _pairs(xla, " ") + needs
    yield "warm-up", "no requests" if requests is None else f"{requests} requests"
    yield "fingerprint", str(export.get("fingerprint", "unknown"))


def _read_graph(path: str) -> str:
    """Make sure that a saved_model.pb is whole, and say whose it is."""
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf import saved_model_pb2

    with open(path, "rb") as file:
        try:
            graphs = saved_model_pb2.SavedModel.FromString(file.read()).meta_graphs
        except DecodeError as error:
            raise ValueError(f"{path!r} is damaged: it is no whole SavedModel.") from error
    if not graphs:
        raise ValueError(f"{path!r} is damaged: it holds no graph.")
    names = sorted(name for name in graphs[0].signature_def if not name.startswith("__"))
    version = graphs[0].meta_info_def.tensorflow_version or "unknown"
    return f"a SavedModel of TensorFlow {version} with the signatures {', '.join(names) or '(none)'}"


def _read_card(path: str) -> dict[str, Any]:
    """Read a model.json, and make sure that all that is printed of it has its form."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        found = {"versions": {}, "strategy": {}, "settings": {}, "vocabulary_sizes": {}, **found}
        found.setdefault("custom_ops", [])
        for parts in found["signatures"].values():
            _specs(parts["inputs"]), _specs(parts["outputs"])
        names = ("versions", "strategy", "settings", "vocabulary_sizes")
        dicts = [*(found[name] for name in names), found.get("xla") or {}]
        if not all(isinstance(each, dict) for each in dicts) or not isinstance(found["custom_ops"], list):
            raise TypeError("a part of another kind")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path!r} does not describe an export of keras_seq2seq.") from error
    return found


def _weights(path: str) -> int:
    """Count the weights by the index of the variables, and make sure that the files beside it hold all."""
    import numpy as np
    import tensorflow as tf

    try:
        index = tf.train.load_checkpoint(os.path.join(path, "variables"))
        shapes, dtypes = index.get_variable_to_shape_map(), index.get_variable_to_dtype_map()
        strings = [index.get_tensor(name) for name in shapes if dtypes[name] == tf.string]
    except (tf.errors.OpError, RuntimeError, ValueError, LookupError) as error:
        raise ValueError(
            f"{path!r} is damaged: variables.index or what it points to is not whole."
        ) from error
    counts = {name: int(np.prod(shape)) for name, shape in shapes.items() if dtypes[name] != tf.string}
    needed = sum(count * dtypes[name].size for name, count in counts.items())
    needed += sum(len(text) for array in strings for text in np.ravel(array))
    held = _size(path) - os.path.getsize(os.path.join(path, "variables.index"))
    if held < needed:
        raise ValueError(f"{path!r} is damaged: the variables take {needed} bytes, the files have {held}.")
    # The rest are states of random generators.
    return sum(count for name, count in counts.items() if dtypes[name].is_floating)


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
    if not os.path.isfile(path):
        return None
    size, count, place = os.path.getsize(path), 0, 0
    with open(path, "rb") as file:
        while place < size:
            file.seek(place)
            place += 12 + int.from_bytes(file.read(8), "little") + 4
            count += 1
    if place != size:
        raise ValueError(f"{path!r} is damaged: its last request is not whole.")
    return count
