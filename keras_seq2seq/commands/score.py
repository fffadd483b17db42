"""`keras-seq2seq score`: how probable given translations are."""

import argparse
import itertools
from typing import Any

__all__ = ["add_score", "score"]

_CHUNK = 16  # batches that are scored before any is written


def add_score(commands: Any) -> argparse.ArgumentParser:
    """Describe the command."""
    parser = commands.add_parser(
        "score",
        help="say how probable given translations are",
        description="Print a line for each pair: log P(target | source), a tab, and the number of tokens of "
        "the target, EOS counted.",
    )
    parser.add_argument("--source", required=True, metavar="FILE", help="a text a line")
    parser.add_argument("--target", required=True, metavar="FILE", help="a translation of each line")
    return parser


def score(translator: Any, pairs: Any, options: argparse.Namespace) -> None:
    """Print the score of each pair."""
    remaining = iter(pairs)
    while chunk := list(itertools.islice(remaining, _CHUNK * options.batch_size)):
        for each in translator.score([pair[0] for pair in chunk], [pair[1] for pair in chunk]):
            print(f"{each.score:.6f}\t{each.token_count}")
