"""The option `--threads` of the commands that compute."""

import argparse
from collections.abc import Callable

__all__ = ["add_threads", "limit_threads"]


def add_threads(parser: argparse.ArgumentParser, count: Callable[[str], int]) -> None:
    """Add the option; `count` reads an integer of at least 1."""
    parser.add_argument("--threads", type=count, metavar="N", help="for TensorFlow (default: one a core)")


def limit_threads(options: argparse.Namespace) -> None:
    """Let TensorFlow compute with as many threads as `--threads` says, inside operations and between them.

    Raises:
        ValueError: if TensorFlow has run an operation in this process, as it takes no other number then.
    """
    count = getattr(options, "threads", None)
    if count is None:
        return
    import tensorflow as tf

    try:
        tf.config.threading.set_intra_op_parallelism_threads(count)
        tf.config.threading.set_inter_op_parallelism_threads(count)
    except RuntimeError as error:
        raise ValueError("--threads must come before TensorFlow's first operation in a process.") from error
