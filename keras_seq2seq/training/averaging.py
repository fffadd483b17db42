"""The average of several checkpoints, as a checkpoint."""

import os
import secrets
import tempfile
import zipfile
from contextlib import ExitStack

import h5py
import numpy as np

from keras_seq2seq.training.files import written_aside

__all__ = ["average_checkpoints"]

_ENDINGS = (".weights.h5", ".keras")
_INSIDE = "model.weights.h5"  # of a .keras file, which is a zip archive
_LAST_ONLY = ("optimizer/", "training_state/")


def average_checkpoints(paths, out):
    """Write the mean of checkpoints of one model, variable by variable (Vaswani et al. 2017, section 6.1).

    Float variables of the model become their element-wise mean. Integers, and the optimizer's state, are
    those of the last path: a mean of them means nothing.

    Args:
        paths: files that `save_weights` (`.weights.h5`) or `save` (`.keras`) wrote, all of one kind.
        out: the file to write, of the same kind; it appears whole or not at all, and may be one of `paths`.

    Returns:
        `out`, as a string.

    Raises:
        ValueError: no paths, unlike kinds, or files that differ in their variables: the first that differs
            is named.
        OSError: a file that cannot be read or written.
    """
    paths, out = [os.fspath(path) for path in paths], os.fspath(out)
    if not paths:
        raise ValueError("paths must name at least one checkpoint, received none.")
    kind = next((ending for ending in _ENDINGS if out.endswith(ending)), None)
    for path in [out, *paths]:
        if kind is None or not path.endswith(kind):
            expected = f"like the output {out!r}" if kind else "in .weights.h5 or .keras"
            raise ValueError(f"every checkpoint must end {expected}, received {path!r}.")
    with written_aside(out) as target, tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        weights = [_weights(path, folder) for path in paths]
        files = [stack.enter_context(h5py.File(each, "r")) for each in weights]
        mean = target if kind != ".keras" else os.path.join(folder, "mean.h5")
        with h5py.File(mean, "w") as file:
            _write_mean(files, paths, file)
        if kind == ".keras":
            _replace_weights(paths[-1], mean, target)
    return out


def _weights(path, folder):
    """Return the path of the h5 file: the file itself, or what is taken out of an archive."""
    if not path.endswith(".keras"):
        return path
    taken = os.path.join(folder, secrets.token_hex(8))
    with zipfile.ZipFile(path) as archive, open(taken, "wb") as file:
        file.write(archive.read(_INSIDE))
    return taken


def _replace_weights(archive, weights, target):
    """Copy an archive, with other weights in it."""
    with zipfile.ZipFile(archive) as source, zipfile.ZipFile(target, "w") as copy:
        for entry in source.infolist():
            if entry.filename == _INSIDE:
                copy.write(weights, _INSIDE)
            else:
                copy.writestr(entry, source.read(entry))


def _write_mean(files, paths, out):
    """Write the mean of open h5 files to another."""
    names = _datasets(files[0])
    for file, path in zip(files, paths, strict=True):
        odd = sorted(set(_datasets(file)) ^ set(names))
        if odd:
            where = path if odd[0] in _datasets(file) else paths[0]
            raise ValueError(f"checkpoints must hold the same variables, only {where!r} has {odd[0]!r}.")
    for name in names:
        entries = [file[name] for file in files]
        for entry, path in zip(entries, paths, strict=True):
            _check_alike(name, entries[0], paths[0], entry, path)
        last = entries[-1]
        if name.startswith(_LAST_ONLY[0]) or not _is_float(last):
            out.copy(last, out.require_group(os.path.dirname(name) or "/"), os.path.basename(name))
            continue
        total = np.zeros(last.shape, "float64")
        for entry in entries:
            total += _values(entry)
        entry = out.create_dataset(name, data=(total / len(entries)).astype(_type(last)))
        for key, value in last.attrs.items():
            entry.attrs[key] = value
    _copy_group_attributes(files[-1], out)


def _datasets(file):
    """List the names of what a file holds, but for the state of its training."""
    names = []
    file.visititems(lambda name, entry: names.append(name) if isinstance(entry, h5py.Dataset) else None)
    return [name for name in names if not name.startswith(_LAST_ONLY[1])]


def _copy_group_attributes(source, out):
    """Keep what Keras notes beside its variables, and groups that hold none."""

    def copy(name, entry):
        if isinstance(entry, h5py.Group) and not f"{name}/".startswith(_LAST_ONLY[1]):
            group = out.require_group(name)
            for key, value in entry.attrs.items():
                group.attrs[key] = value

    source.visititems(copy)
    for key, value in source.attrs.items():
        out.attrs[key] = value


def _check_alike(name, one, one_path, other, other_path):
    for what, a, b in (("shape", one.shape, other.shape), ("type", _type(one), _type(other))):
        if a != b:
            raise ValueError(
                f"checkpoints must agree in every variable, received {name!r} with {what} {a} in "
                f"{one_path!r} and {b} in {other_path!r}."
            )
    if name.split("/")[-1] == "weight_count" and one[()] != other[()]:
        raise ValueError(
            f"checkpoints must be of one model, received {name!r} = {one[()]} in {one_path!r} and "
            f"{other[()]} in {other_path!r}."
        )


def _type(entry):
    """Return the type of a variable; Keras stores bfloat16 as another one, with a note."""
    return np.dtype(entry.attrs.get("dtype", entry.dtype))


def _is_float(entry):
    return _type(entry).kind == "f" or _type(entry).name == "bfloat16"


def _values(entry):
    return np.array(entry, _type(entry)).astype("float64")
