"""`keras-seq2seq export`: a model as a SavedModel, with XLA and a warm-up if asked to."""

import argparse
from collections.abc import Callable
from typing import Any

__all__ = ["add_export", "export"]

_SIZES = {"xla": (("batch_sizes", "1 8 32"), ("lengths", "16 32 64"))}
_SIZES["warmup"] = (("batch_sizes", "1 8 32"), ("lengths", "8 32"))


def add_export(commands: Any, count: Callable[[str], int]) -> argparse.ArgumentParser:
    """Describe the command; `count` reads an integer of at least 1."""
    parser = commands.add_parser(
        "export",
        help="write a SavedModel for TensorFlow Serving",
        description="Write a SavedModel from text to text under the next version number, and print its path.",
    )
    add = parser.add_argument
    add("model", metavar="DIR", help="what train wrote")
    add("--output", required=True, metavar="BASE", help="the directory of all versions")
    add("--xla", action="store_true", help="compile by XLA, which a server must be told to allow")
    add(
        "--warmup", action="store_true", help="add requests that TF Serving runs before it serves the version"
    )
    about = "write models.config and batching_parameters.txt for a server that calls the model NAME"
    add("--server-files", metavar="NAME", help=about)
    for option, sizes in _SIZES.items():
        for name, default in sizes:
            about = f"rising {name.replace('_', ' ')}; implies --{option} (default: {default})"
            flag = f"--{option}-{name.replace('_', '-')}"
            add(flag, type=count, nargs="+", metavar="N", help=about)
    return parser


def export(load: Callable[[], Any], options: argparse.Namespace) -> None:
    """Export what `load` reads, and print the path.

    Raises:
        ValueError: if an option does not fit, or a package is missing.
        OSError: if the output cannot be written.
    """
    from keras_seq2seq.serving import Warmup, XLABuckets, write_server_files
    from keras_seq2seq.serving.server_files import check_name

    chosen = {"xla": _chosen("xla", XLABuckets, options), "warmup": _chosen("warmup", Warmup, options)}
    if options.server_files is not None:
        try:
            check_name(options.server_files)
        except ValueError as error:
            raise ValueError(f"--server-files: {error}") from error
    try:
        print(load().export(options.output, **chosen))
    except ImportError as error:
        raise ValueError(str(error)) from error
    if options.server_files is not None:
        sizes = options.warmup_batch_sizes or options.xla_batch_sizes
        given = {"batch_sizes": sizes} if sizes else {}
        write_server_files(options.output, name=options.server_files, **given)


def _chosen(option: str, kind: Callable[..., Any], options: argparse.Namespace) -> Any:
    """Return False, or the sizes that were asked for; to give some is to ask."""
    given = {name: getattr(options, f"{option}_{name}") for name, _ in _SIZES[option]}
    given = {name: sizes for name, sizes in given.items() if sizes}
    if not given and not getattr(options, option):
        return False
    try:
        return kind(**given)
    except ValueError as error:
        raise ValueError(f"--{option}: {error}") from error
