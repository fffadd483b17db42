"""How `keras-seq2seq train` trains: its options, and what they become.

What a function needs is imported when it runs.
"""

import argparse
import contextlib
import hashlib
import importlib.metadata
import json
import math
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["add_options", "choose", "compile_model", "fit", "placement", "write_run"]

RUN = "run.json"
_SCHEDULES = ("inverse_sqrt", "cosine", "linear")
_PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")
_STRATEGIES = ("auto", "one_device", "mirrored", "multi_worker", "tpu")
_PACKAGES = ("keras_seq2seq", "keras", "tensorflow", "tensorflow-text", "numpy", "sentencepiece")


def add_options(add: Callable[..., Any], positive: Callable[[str], int]) -> None:
    """Add the options of the recipe to the command."""
    add(
        "--schedule",
        choices=_SCHEDULES,
        default="inverse_sqrt",
        help="fall of the learning rate after warm-up",
    )
    add(
        "--precision",
        choices=_PRECISIONS,
        default="float32",
        help="of the computation (default: float32; mixed_float16 is slow on a CPU)",
    )
    add("--strategy", choices=_STRATEGIES, help="of tf.distribute (default: none, one device)")
    add("--accumulate", type=positive, default=1, metavar="N", help="batches to an update (default: 1)")
    add("--clip-norm", type=_share, metavar="X", help="the largest norm of the whole gradient")
    add("--weight-decay", type=_share, metavar="X", help="of matrices, not of norms and biases")
    add(
        "--average",
        type=positive,
        metavar="N",
        help="keep the average of the last N epochs, not the best one",
    )
    add("--patience", type=positive, metavar="N", help="stop after N epochs without a better validation loss")
    add(
        "--bleu",
        action="store_true",
        help="translate the validation text after each epoch, and log BLEU, chrF",
    )
    add("--checkpoints", metavar="DIR", help="keep checkpoints there, and go on from them if there are any")
    add("--save-every", type=positive, metavar="N", help="save every N batches, too (with --checkpoints)")


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number above 0, received {text!r}")
    return value


@contextlib.contextmanager
def placement(options: argparse.Namespace) -> Any:
    """Build what is built inside under the precision and the strategy of the options."""
    import keras

    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(options.precision)
    try:
        if options.strategy is None:
            yield
        else:
            from keras_seq2seq import distribute

            with distribute.strategy(options.strategy).scope():
                yield
    finally:
        keras.config.set_dtype_policy(before)


def compile_model(model: Any, options: argparse.Namespace, *, steps: int, xla: bool) -> None:
    """Compile a model for `steps` batches; the rate's peak is that of Vaswani et al. 2017."""
    import keras

    from keras_seq2seq import training

    steps = max(2, steps // options.accumulate)
    warmup = min(4000, max(1, steps // 10))
    peak = (model.encoder.embedding.model_dim * max(warmup, 400)) ** -0.5
    rate: Any = training.WarmupInverseSqrt(peak, warmup)
    if options.schedule != "inverse_sqrt":
        kind = training.WarmupCosine if options.schedule == "cosine" else training.WarmupLinear
        rate = kind(peak, warmup, steps)
    optimizer: Any = keras.optimizers.Adam(rate, beta_2=0.98, global_clipnorm=options.clip_norm)
    if options.weight_decay is not None:
        optimizer = keras.optimizers.AdamW(
            rate, beta_2=0.98, weight_decay=options.weight_decay, global_clipnorm=options.clip_norm
        )
        training.decay_matrices_only(optimizer, model)
    if options.accumulate > 1 or (options.strategy is not None and options.clip_norm is not None):
        optimizer = training.GlobalBatch(optimizer, options.accumulate)
    model.compile(
        optimizer,
        loss=training.SmoothedCrossentropy(0.1),
        weighted_metrics=[training.TokenAccuracy()],
        jit_compile=xla,
    )


def fit(
    model: Any, train: Any, held_out: Any, folder: str, options: argparse.Namespace, quality: Any = None
) -> list[dict[str, float]]:
    """Train with checkpoints in `folder`, from the last of them on; return what each epoch logged.

    Raises:
        ValueError: checkpoints of another model or recipe.
    """
    from keras_seq2seq.training import Checkpoints

    checkpoints = Checkpoints(
        folder,
        options.save_every or "epoch",
        keep=options.average or 1,
        batches=train,
        monitor="val_loss",
        patience=options.patience,
    )
    model.fit(
        train,
        validation_data=held_out,
        epochs=options.epochs,
        callbacks=[*([quality] if quality is not None else []), checkpoints],
        verbose=1 if sys.stdout.isatty() else 2,
    )
    return checkpoints.state.logs


def choose(model: Any, folder: str, options: argparse.Namespace, work: str) -> None:
    """Load the best weights, or the average of the last ones, into the model."""
    from keras_seq2seq import training

    (path,) = training.best_checkpoints(folder, 1)
    if options.average:
        count = min(options.average, len(training.checkpoints(folder)))
        last = training.last_checkpoints(folder, count)
        path = training.average_checkpoints(last, os.path.join(work, "average.weights.h5"))
    model.load_weights(path)


def write_run(options: argparse.Namespace, logs: list[dict[str, float]]) -> None:
    """Write beside the model how it came about: versions, arguments, data, seed and what was logged."""
    arguments = {name: value for name, value in vars(options).items() if not callable(value)}
    run = {
        "versions": {"python": sys.version.split()[0], **_versions(_PACKAGES)},
        "arguments": arguments,
        "seed": options.seed,
        "data": {path: _fingerprint(path) for path in [*options.train, *options.valid]},
        "epochs": logs,
    }
    path = os.path.join(options.output, RUN)
    unfinished = os.path.join(options.output, f".{RUN}-{os.getpid()}")
    with open(unfinished, "w", encoding="utf-8") as file:
        json.dump(run, file, indent=2)
        file.write("\n")
    os.replace(unfinished, path)


def _versions(packages: Iterable[str]) -> dict[str, str]:
    found = {}
    for name in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _fingerprint(path: str) -> str:
    with open(path, "rb") as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
