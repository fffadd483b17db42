"""`keras-seq2seq prepare`: a corpus as TFRecord files, cleaned and tokenized if asked to."""

import argparse
from collections.abc import Callable
from typing import Any


def add_prepare(commands: Any, count: Callable[[str], int]) -> argparse.ArgumentParser:
    """Describe the command; `count` reads an integer of at least 1."""
    parser = commands.add_parser(
        "prepare",
        help="write a corpus as TFRecord files, to read it many times",
        description="Write pairs of lines as TFRecord files, for ks.data.Records. Files are those of train.",
    )
    add = parser.add_argument
    add("--data", nargs="+", required=True, metavar="FILE", help="SOURCE TARGET, or one file with tabs")
    add("--output", required=True, metavar="DIR", help="where to write; it must not exist")
    add(
        "--tokenizer",
        nargs="+",
        metavar="DIR",
        help="saved tokenizer of both sides, or SOURCE TARGET; without it, text is written",
    )
    add("--files", type=count, default=8, metavar="N", help="how many to write (default: 8)")
    add("--clean", action="store_true", help="drop duplicates and pairs with identical sides")
    add("--min-length", type=count, default=1, metavar="N", help="with --clean: characters, at least")
    add("--max-length", type=count, metavar="N", help="with --clean: characters, at most")
    add("--max-ratio", type=float, metavar="X", help="with --clean: of the lengths of the sides, at most")
    return parser


def prepare(text: Any, options: argparse.Namespace) -> None:
    """Write the pairs of a `ParallelText`, and say how many they are.

    Raises:
        ValueError: if an option does not fit.
        OSError: if a tokenizer is missing, or the output exists.
    """
    from keras_seq2seq.data import write_records
    from keras_seq2seq.text import load

    limits = {name: getattr(options, name) for name in ("min_length", "max_length", "max_ratio")}
    if not options.clean and limits != {"min_length": 1, "max_length": None, "max_ratio": None}:
        raise ValueError("--min-length, --max-length and --max-ratio need --clean.")
    directories = options.tokenizer or []
    if len(directories) > 2:
        raise ValueError(f"--tokenizer takes one directory, or two, received {len(directories)}.")
    tokenizers = [load(directory) for directory in directories]
    if options.clean:
        text = text.clean(**limits)
    write_records(options.output, text, *tokenizers, files=options.files)
    print(f"Wrote {options.output}: {len(text)} pairs.")
