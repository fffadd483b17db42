"""The command `keras-seq2seq`: train, translate, evaluate, score, export, inspect, prepare, plot.

Bad input gives one line on standard error and exit status 2. What a command needs is imported when it runs.
"""

import argparse
import contextlib
import itertools
import json
import logging
import os
import shutil
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from keras_seq2seq.commands import inspect, plot, recipe
from keras_seq2seq.commands.export import add_export, export
from keras_seq2seq.commands.prepare import add_prepare, prepare
from keras_seq2seq.commands.score import add_score, score
from keras_seq2seq.commands.threads import add_threads, limit_threads

__all__ = ["main"]

_SIZES = ("tiny", "small", "base", "big")
_XLA_FROM = 1_000_000  # tokens to train on, after which compiling a small model for each shape has paid off
_CHUNK = 16  # batches that are read before any is written
_LARGEST = 2**31 - 1  # what every library underneath takes for a number


class InputError(Exception):
    """What the user gave cannot be used; the message is one sentence."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 0, 2 for bad input, 130 when it was interrupted."""
    _open_closed_streams()
    options = _parser().parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("always", category=UserWarning, module="keras_seq2seq")
            warnings.showwarning = _show_warning
            with _bad_input():
                limit_threads(options)
            options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (InputError, OSError) as error:
        _say(" ".join(str(error).split()))
        return 2
    except KeyboardInterrupt:
        _say("interrupted.")
        return 130
    return 0


def _open_closed_streams() -> None:
    """Let a stream that the shell has closed be empty, and take its number from the next file to open."""
    for name, mode in (("stdin", os.O_RDONLY), ("stdout", os.O_WRONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, mode)
            setattr(sys, name, os.fdopen(number, "r" if mode == os.O_RDONLY else "w"))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one line."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="keras-seq2seq",
        description="Train, use and export models from text to text.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_train(commands)
    _add_translate(commands)
    _add_evaluate(commands)
    scoring = add_score(commands)
    _add_model(scoring)
    scoring.set_defaults(run=_score)
    add_export(commands, _positive).set_defaults(run=_export)
    _add_inspect(commands)
    _add_plot(commands)
    add_prepare(commands, _positive).set_defaults(run=_prepare)
    return parser


def _add_train(commands: Any) -> None:
    parser = commands.add_parser(
        "train",
        help="train a Transformer on pairs of lines",
        description="Train a Transformer on pairs of lines, keep the epoch with the best validation loss, "
        "and write it to a directory for the other commands. Files are plain text or .gz, UTF-8, one "
        "sentence a line: a source and a target file, or one file with two columns separated by a tab.",
    )
    add = parser.add_argument
    add("--train", nargs="+", required=True, metavar="FILE", help="SOURCE TARGET, or one file with tabs")
    add("--valid", nargs="+", required=True, metavar="FILE", help="the same, to choose the best epoch by")
    add(
        "--output",
        required=True,
        metavar="DIR",
        help="where to write; an earlier model is replaced at the end",
    )
    add("--size", choices=_SIZES, default="tiny", help="of the Transformer (default: tiny)")
    add("--epochs", type=_positive, default=10, metavar="N", help="passes over the data (default: 10)")
    add("--tokens-per-batch", type=_positive, default=4096, metavar="N", help="pads included (default: 4096)")
    add("--vocabulary-size", type=_positive, default=8000, metavar="N", help="at most (default: 8000)")
    add("--separate-vocabularies", action="store_true", help="one for each language (default: a joint one)")
    add("--seed", type=_seed, default=1, metavar="N", help="of weights, dropout and order (default: 1)")
    recipe.add_options(add, _positive)
    add_threads(parser, _positive)
    parser.set_defaults(run=_train)


def _add_translate(commands: Any) -> None:
    parser = commands.add_parser(
        "translate",
        help="translate standard input, line by line",
        description="Translate standard input to standard output, one line for each line, blank for blank.",
    )
    _add_model(parser)
    parser.set_defaults(run=_translate)


def _add_evaluate(commands: Any) -> None:
    parser = commands.add_parser(
        "evaluate",
        help="translate a file and compare with references",
        description="Translate a file, compare with references, and print BLEU and chrF.",
    )
    _add_model(parser)
    parser.add_argument("--source", required=True, metavar="FILE", help="the lines to translate")
    parser.add_argument("--reference", required=True, metavar="FILE", help="what they should become")
    parser.add_argument(
        "--tokenize", default="13a", help='how BLEU splits words, such as "zh" for Chinese (default: 13a)'
    )
    parser.set_defaults(run=_evaluate)


def _add_inspect(commands: Any) -> None:
    parser = commands.add_parser(
        "inspect",
        help="say what an export is",
        description="Print the signatures, sizes, settings and versions of an export, from its files.",
    )
    parser.add_argument("export", metavar="BASE", help="the directory of all versions, or one version")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_inspect)


def _add_plot(commands: Any) -> None:
    parser = commands.add_parser(
        "plot",
        help="draw the curves of a training run",
        description="Draw what the epochs of a training run logged into curves.png, and print its path.",
    )
    parser.add_argument("model", metavar="DIR", help="what train wrote")
    parser.set_defaults(run=_plot)


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="DIR", help="what train wrote")
    parser.add_argument(
        "--batch-size", type=_positive, default=64, metavar="N", help="lines at a time (default: 64)"
    )
    add_threads(parser, _positive)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected an integer of at least 1, received {text!r}")
    if int(text) > _LARGEST:
        raise argparse.ArgumentTypeError(f"expected an integer of at most {_LARGEST}, received {text!r}")
    return int(text)


def _seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"expected an integer from 0 to {2**32 - 1}, received {text!r}")
    return int(text)


def _train(options: argparse.Namespace) -> None:
    _refuse_foreign(options.output)
    from keras_seq2seq.serving import Translator
    from keras_seq2seq.serving.files import aside, explained

    _log_to_stderr()
    made = not os.path.isdir(options.output)
    try:
        with explained(options.output), aside(options.output) as work:
            model, tokenizers, logs = _best_model(options, work)
            Translator(model, *tokenizers).save(options.output)
            recipe.write_run(options, logs)
    except BaseException:
        if made:
            with contextlib.suppress(OSError):
                os.rmdir(options.output)  # only if nothing is in it
        raise
    losses = [each["val_loss"] for each in logs]
    best = min(loss for loss in losses if loss == loss)
    kept = (
        f"average of the last {options.average} of"
        if options.average
        else f"epoch {1 + losses.index(best)} of"
    )
    print(f"Wrote {options.output}: {kept} {len(losses)}, validation loss {best:.4f}.")


def _best_model(options: argparse.Namespace, work: str) -> tuple[Any, list[Any], list[dict[str, float]]]:
    """Train, and return the model with the weights to keep, tokenizers, and what the epochs logged."""
    import keras

    from keras_seq2seq import models
    from keras_seq2seq.serving import Translator
    from keras_seq2seq.training import TranslationQuality

    with _bad_input():
        train, valid = _parallel("--train", options.train), _parallel("--valid", options.valid)
        tokenizers = _tokenizers(train, options)
        batching: dict[str, Any] = {"tokens_per_batch": options.tokens_per_batch, "seed": options.seed}
    with _bad_input("--train: "):
        batches = train.batches(*tokenizers, **batching)
        tokens = options.epochs * len(batches) * options.tokens_per_batch
        xla = options.size in ("tiny", "small") and tokens >= _XLA_FROM
        if xla:
            batches = train.batches(*tokenizers, **batching, fixed_shapes=True)
    with _bad_input("--valid: "):
        held_out = valid.batches(*tokenizers, **batching, fixed_shapes=xla, shuffle=False)
    keras.utils.set_random_seed(options.seed)
    with _bad_input(), recipe.placement(options):
        sizes = (each.vocabulary_size for each in tokenizers)
        model = models.transformer_seq2seq(*sizes, size=options.size)
        recipe.compile_model(model, options, steps=options.epochs * len(batches), xla=xla)
    quality = None
    if options.bleu:
        pairs = list(zip(*valid.pairs(), strict=True))
        quality = TranslationQuality(Translator(model, *tokenizers), *pairs)
    folder = options.checkpoints or os.path.join(work, "checkpoints")
    with _bad_input():
        logs = recipe.fit(model, batches, held_out, folder, options, quality)
    if all(each["val_loss"] != each["val_loss"] for each in logs):
        raise InputError("the validation loss was never a number, nothing was written.")
    recipe.choose(model, folder, options, work)
    return model, tokenizers, logs


def _refuse_foreign(directory: str) -> None:
    """Refuse to write among files that are not ours."""
    if os.path.isdir(directory):
        names = [name for name in os.listdir(directory) if not name.startswith(".")]
        if names and "translator.json" not in names:
            raise InputError(
                f"--output {directory!r} holds other files and no model, choose another directory."
            )
    elif os.path.lexists(directory):
        raise InputError(f"--output {directory!r} is not a directory.")


def _parallel(name: str, files: list[str]) -> Any:
    from keras_seq2seq.data import ParallelText

    if len(files) > 2:
        raise InputError(f"{name} takes a source and a target file, or one with tabs, received {len(files)}.")
    return ParallelText(*files) if len(files) == 2 else ParallelText.from_tsv(files[0])


def _tokenizers(train: Any, options: argparse.Namespace) -> list[Any]:
    """Learn one tokenizer for both sides, or one for each."""
    from keras_seq2seq.text import SentencePiece

    sides: list[tuple[Any, ...]] = [(train.sources(), train.targets())]
    if options.separate_vocabularies:
        sides = [(train.sources(),), (train.targets(),)]
    return [SentencePiece.train(*lines, vocabulary_size=options.vocabulary_size) for lines in sides]


def _translate(options: argparse.Namespace) -> None:
    translator = _load(options)
    from keras_seq2seq.data import read_lines

    lines = read_lines(sys.stdin.buffer)
    size = 1 if sys.stdin.isatty() else _CHUNK * options.batch_size
    done = 0  # lines: a sampled translation depends on the line's number
    while chunk := list(itertools.islice(lines, size)):
        for text in translator(chunk, offset=done):
            # A line is a line, whatever the model says.
            sys.stdout.buffer.write(text.replace("\n", " ").replace("\r", " ").encode() + b"\n")
        sys.stdout.buffer.flush()
        done += len(chunk)


def _evaluate(options: argparse.Namespace) -> None:
    from keras_seq2seq import evaluate
    from keras_seq2seq.data import ParallelText

    with _bad_input():
        try:
            evaluate.scores(["a"], ["a"], tokenize=options.tokenize)  # sooner than after an hour
        except RuntimeError as error:  # of sacrebleu: what to install for this language
            raise InputError(f"--tokenize {options.tokenize}: {error}") from error
        pairs = list(ParallelText(options.source, options.reference).pairs())
    hypotheses = _load(options)([source for source, _ in pairs])
    print(evaluate.scores(hypotheses, [reference for _, reference in pairs], tokenize=options.tokenize))


def _score(options: argparse.Namespace) -> None:
    from keras_seq2seq.data import ParallelText

    with _bad_input():
        pairs = list(ParallelText(options.source, options.target).pairs())
    score(_load(options), pairs, options)


def _export(options: argparse.Namespace) -> None:
    with _bad_input():
        export(lambda: _load(options), options)


def _inspect(options: argparse.Namespace) -> None:
    with _bad_input():
        found = inspect.read_export(options.export)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    print(json.dumps(found, indent=2) if options.json else inspect.describe(found, width))


def _prepare(options: argparse.Namespace) -> None:
    _log_to_stderr()
    with _bad_input():
        prepare(_parallel("--data", options.data), options)


def _plot(options: argparse.Namespace) -> None:
    with _bad_input():
        print(plot.plot_run(options.model))


def _load(options: argparse.Namespace) -> Any:
    from keras_seq2seq.serving import Translator

    settings = {"batch_size": options.batch_size} if "batch_size" in options else {}
    with _bad_input():
        return Translator.load(options.model, **settings)


@contextlib.contextmanager
def _bad_input(where: str = "") -> Iterator[None]:
    """Take a ValueError, and what the file system says, for the user's: the text says what was expected."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise InputError(f"{where}{error}") from error


def _log_to_stderr() -> None:
    """Show what the library notes, such as the number of pairs that are too long."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("keras-seq2seq: %(message)s"))
    logger = logging.getLogger("keras_seq2seq")
    logger.handlers = [handler]
    logger.propagate = False


def _show_warning(message: Any, *details: Any, **more: Any) -> None:
    _say(str(message))


def _say(text: str) -> None:
    print(f"keras-seq2seq: {text}", file=sys.stderr)
