"""Checkpoints of a training run that can be killed at any moment, and go on from there.

A checkpoint is one file, `step-00001000.weights.h5`, that `load_weights` reads like any other. Beside the
weights and the optimizer's state it holds, in the group `training_state`, what Keras leaves out: random
streams, metrics in the middle of an epoch, the position in the data and what was logged so far.
"""

import glob
import json
import os
from dataclasses import asdict, dataclass, field, replace

import h5py
import keras
import numpy as np

from keras_seq2seq.training.files import ASIDE, written_aside

__all__ = ["Checkpoint", "best_checkpoints", "checkpoints", "last_checkpoints", "restore", "save"]

_STATE = "training_state"


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint says of itself.

    Args:
        path: of the file.
        step: batches trained on in all.
        epoch: epochs that were complete.
        batch: batches trained on in the epoch that was not.
        logs: what each complete epoch logged, in order.
    """

    path: str = ""
    step: int = 0
    epoch: int = 0
    batch: int = 0
    logs: list[dict[str, float]] = field(default_factory=list)

    def value(self, monitor):
        """Return what was logged under this name at the end of the epoch, or None in its middle."""
        return self.logs[-1].get(monitor) if self.logs and not self.batch else None


def checkpoints(directory):
    """List the checkpoints of a directory, oldest first; none if it does not exist."""
    found = []
    for path in glob.glob(os.path.join(glob.escape(os.fspath(directory)), "step-*.weights.h5")):
        try:
            found.append(_read(path))
        except OSError:  # HDF5 has several for a file that the run which writes them removed meanwhile
            if os.path.exists(path):
                raise
    return sorted(found, key=lambda each: each.step)


def last_checkpoints(directory, count):
    """Return the paths of the last checkpoints, oldest first.

    Raises:
        ValueError: fewer than `count` in the directory.
    """
    return [each.path for each in _enough(directory, count, checkpoints(directory), "in all")]


def best_checkpoints(directory, count, monitor="val_loss", mode="min"):
    """Return the paths of the checkpoints with the best value of a metric, best first.

    Raises:
        ValueError: fewer than `count` in the directory that have such a value.
    """
    found = ranked(checkpoints(directory), monitor, mode)
    return [each.path for each in reversed(_enough(directory, count, found[::-1], f"with {monitor!r}"))]


def ranked(found, monitor, mode):
    """Sort the checkpoints that have a value of a metric, best first, earlier ones first among equals."""
    if mode not in ("min", "max"):
        raise ValueError(f'mode must be "min" or "max", received {mode!r}.')
    sign = 1 if mode == "min" else -1
    valued = [each for each in found if (value := each.value(monitor)) is not None and value == value]
    return sorted(valued, key=lambda each: (sign * each.value(monitor), each.step))


def save(model, directory, checkpoint):
    """Write a checkpoint; it is there whole or not at all, whatever happens meanwhile.

    Args:
        model: a compiled model.
        directory: is made if need be.
        checkpoint: `Checkpoint`; its path is ignored.

    Returns:
        The path of the file.
    """
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, f"step-{checkpoint.step:08d}.weights.h5")
    notes = asdict(replace(checkpoint, path=""))
    with written_aside(path) as unfinished:
        model.save_weights(unfinished)
        with h5py.File(unfinished, "a") as file:
            state = file.create_group(_STATE)
            state["notes"] = np.frombuffer(json.dumps(notes).encode(), "uint8")
            for kind, variables in _more_variables(model).items():
                group = state.create_group(kind)
                for number, variable in enumerate(variables):
                    group[str(number)] = keras.ops.convert_to_numpy(variable)
    return path


def restore(model, path):
    """Put a model, its optimizer and its random streams into the state that a checkpoint holds.

    Args:
        model: compiled as it was when the checkpoint was written.
        path: of the checkpoint.

    Returns:
        `Checkpoint`, and the values of the metrics as arrays.

    Raises:
        ValueError: another model, or one with another optimizer.
    """
    optimizer = model.optimizer
    if optimizer is not None and not optimizer.built:
        optimizer.build(model.trainable_variables)
    _check_optimizer(optimizer, path)
    model.load_weights(path)
    with h5py.File(path, "r") as file:
        stored = {kind: list(_in_order(file[_STATE][kind])) for kind in ("random", "metrics")}
    streams = _more_variables(model)["random"]
    if len(streams) != len(stored["random"]):
        raise ValueError(
            f"the model has {len(streams)} random streams, {path!r} has {len(stored['random'])}: "
            "it was written by another model."
        )
    for variable, value in zip(streams, stored["random"], strict=True):
        variable.assign(value)
    return _read(path), stored["metrics"]


def remove_unfinished(directory):
    """Remove what killed saves left behind in a directory that nobody else writes to."""
    for path in glob.glob(os.path.join(glob.escape(os.fspath(directory)), f"{ASIDE}*")):
        os.remove(path)


def _check_optimizer(optimizer, path):
    """Refuse another optimizer's state, which Keras passes over with a warning."""
    expected = [tuple(v.shape) for v in getattr(optimizer, "variables", [])]
    with h5py.File(path, "r") as file:
        shapes = [value.shape for value in _in_order(file["optimizer/vars"])] if "optimizer" in file else []
    if shapes != expected:
        raise ValueError(
            f"the optimizer has {len(expected)} variables, {path!r} has {len(shapes)} or others: "
            "it was written with another optimizer."
        )


def _more_variables(model):
    streams = [v for v in model.non_trainable_variables if v.path.endswith("seed_generator_state")]
    return {"random": streams, "metrics": model.metrics_variables}


def _in_order(group):
    return (group[name][()] for name in sorted(group, key=int))


def _read(path):
    with h5py.File(path, "r") as file:
        if _STATE not in file:
            raise ValueError(f"{path!r} is no checkpoint of a training run: it holds weights alone.")
        notes = json.loads(file[_STATE]["notes"][()].tobytes())
    return Checkpoint(**{**notes, "path": path})


def _enough(directory, count, found, kind):
    if count < 1:
        raise ValueError(f"count must be at least 1, received {count}.")
    if len(found) < count:
        raise ValueError(f"{os.fspath(directory)!r} has {len(found)} checkpoints {kind}, {count} are needed.")
    return found[-count:]
