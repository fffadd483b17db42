"""What the benchmarks share: variants in turn, the limit of the machine, tables and files of results."""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import tensorflow as tf
from rich.console import Console
from rich.table import Table

__all__ = ["Row", "arguments", "in_turn", "matrix_limit", "peak_memory", "report"]

Row = dict[str, Any]


def arguments(description: str, **options: Any) -> argparse.Namespace:
    """Read the command line: `--json FILE`, `--quick`, and options by name with their defaults."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", type=Path, help="also write the tables to this file")
    parser.add_argument("--quick", action="store_true", help="fewer sizes and rounds")
    for name, default in options.items():
        parser.add_argument(f"--{name}", type=type(default), default=default, help="(default: %(default)s)")
    return parser.parse_args()


def in_turn(variants: Mapping[Any, Callable[[], Any]], rounds: int) -> dict[Any, float]:
    """Run all variants once, then `rounds` times in turn; return each one's median of seconds.

    Another process on the machine hits all of them alike.
    """
    for run in variants.values():
        run()  # traced and compiled
    seen: dict[Any, list[float]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, run in variants.items():
            start = time.perf_counter()
            run()
            seen[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in seen.items()}


def matrix_limit() -> float:
    """Return how many thousand million float32 operations a second a product of matrices reaches."""
    size = 2048
    matrix = tf.random.normal((size, size))
    product = tf.function(lambda x: x @ x)
    seconds = in_turn({"": lambda: product(matrix).numpy()}, 5)[""]
    return 2 * size**3 / seconds / 1e9


def peak_memory() -> float:
    """Return the most memory that this process has held so far, in GB."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024 / 1e9
    return float("nan")


def report(tables: Mapping[str, list[Row]], path: Path | None) -> None:
    """Print tables with all their columns, and write them as JSON if there is a path."""
    console = Console(width=120)
    for title, rows in tables.items():
        columns = list(dict.fromkeys(name for row in rows for name in row))
        table = Table(title=title)
        for column in columns:
            table.add_column(column, justify="right")
        for row in rows:
            table.add_row(*(str(row.get(column, "")) for column in columns))
        console.print(table)
    if path is not None:
        aside = path.with_name(path.name + ".part")
        aside.write_text(json.dumps(dict(tables), indent=2) + "\n", encoding="utf-8")
        aside.replace(path)
