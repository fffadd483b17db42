"""`keras-seq2seq plot`: the curves of a training run, as a picture."""

import json
import os

__all__ = ["plot_run"]


def plot_run(directory: str) -> str:
    """Draw what the epochs of a run logged into `curves.png`, and return its path.

    Raises:
        ValueError: a directory without a run, or one without a complete epoch.
    """
    path = os.path.join(directory, "run.json")
    try:
        with open(path, encoding="utf-8") as file:
            epochs = json.load(file)["epochs"]
        history = {name: [logs[name] for logs in epochs] for name in epochs[0]}
    except FileNotFoundError as error:
        raise ValueError(f"{directory!r} holds no training run: run.json is missing.") from error
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise ValueError(f"{path!r} does not describe the epochs of a training run.") from error
    from keras_seq2seq import plots

    names = [name for name in history if not (name.startswith("val_") and name[4:] in history)]
    figure = _figure(len(names))
    for name, axes in zip(names, figure.subplots(len(names), squeeze=False)[:, 0], strict=True):
        plots.training_curves(history, [name], ax=axes)
        axes.set_ylabel(name.replace("_", " "))
    out = os.path.join(directory, "curves.png")
    unfinished = os.path.join(directory, f".curves-{os.getpid()}.png")
    figure.savefig(unfinished)
    os.replace(unfinished, out)
    return out


def _figure(rows: int):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.0 * rows), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    return figure
