"""The two files that TensorFlow Serving is started with: what it serves, and how it joins requests."""

import os
import re
from typing import Any

from keras_seq2seq.serving.buckets import rising
from keras_seq2seq.serving.files import explained

__all__ = ["check_name", "write_server_files"]

_MODELS = """\
# --model_config_file of TensorFlow Serving.
model_config_list {{
  config {{
    name: "{name}"
    base_path: "{base_path}"
    model_platform: "tensorflow"
    # The newest versions stay loaded, so that clients may go back to the one before. A new one is found by
    # itself, and takes traffic when it has been loaded and warmed up.
    model_version_policy {{ latest {{ num_versions: {versions} }} }}
  }}
}}
"""
_BATCHING = """\
# --batching_parameters_file of TensorFlow Serving, read with --enable_batching=true.
max_batch_size {{ value: {largest} }}
# A batch is filled up to the next of these sizes with copies of a row, so that few shapes occur. The last one
# is max_batch_size. An export compiled by XLA, and a warm-up, should have the same sizes.
{allowed}
# How long the first request of a batch waits for others: short beside a search, which takes tens of
# milliseconds, and long enough that requests of the same moment meet.
batch_timeout_micros {{ value: {timeout} }}
# Batches that are searched at a time. A search keeps the cores busy: about as many as there are cores.
num_batch_threads {{ value: {threads} }}
# Batches that may wait before a request is refused (UNAVAILABLE): a queue that no client would wait for.
max_enqueued_batches {{ value: {waiting} }}
"""


def write_server_files(
    base_dir: str | os.PathLike[str],
    *,
    name: str = "seq2seq",
    base_path: str | None = None,
    versions: int = 2,
    batch_sizes: tuple[int, ...] = (1, 8, 32),
    timeout_micros: int = 2000,
    threads: int | None = None,
) -> tuple[str, str]:
    """Write `models.config` and `batching_parameters.txt` beside an export's directory of versions.

    TensorFlow Serving takes every entry of `base_dir` for a version if it is a number, and no other, so that
    the files do not disturb it.

    Args:
        base_dir: the directory of all versions, which exists.
        name: of the model in requests: letters, digits, "_", "-" and ".".
        base_path: where the server sees `base_dir`; default: `/models/<name>`, as in its Docker image.
        versions: how many of the newest versions are served at a time.
        batch_sizes: rising; the sizes of the batches that the server makes.
        timeout_micros: how long a request waits for others, in microseconds; 0 or more.
        threads: batches at a time; default: one for each core of this machine.

    Returns:
        The paths of the two files. Files of these names are replaced.

    Raises:
        ValueError: an argument that does not fit.
        OSError: a directory that does not exist or cannot be written.
    """
    sizes = rising("batch_sizes", batch_sizes)
    check_name(name)
    seen = f"/models/{name}" if base_path is None else base_path
    if not isinstance(seen, str) or re.search(r'["\\\x00-\x1f]', seen) or not seen.startswith("/"):
        raise ValueError(f"base_path must be an absolute path without quotes, received {base_path!r}.")
    threads = (os.cpu_count() or 1) if threads is None else threads
    counts = {"versions": (versions, 1), "timeout_micros": (timeout_micros, 0), "threads": (threads, 1)}
    for argument, (count, least) in counts.items():
        _check_count(argument, count, least)
    allowed = "\n".join(f"allowed_batch_sizes: {size}" for size in sizes)
    batching = _BATCHING.format(
        largest=sizes[-1], allowed=allowed, timeout=timeout_micros, threads=threads, waiting=10 * threads
    )
    models = _MODELS.format(name=name, base_path=seen, versions=versions)
    base = os.fspath(base_dir)
    with explained(base):
        return _write(base, "models.config", models), _write(base, "batching_parameters.txt", batching)


def check_name(name: Any) -> None:
    """Raise a ValueError for a name that a URL or a path would not take as it is."""
    if not isinstance(name, str) or not re.fullmatch(r"[\w.-]+", name, re.ASCII):
        raise ValueError(f"name must be letters, digits, '_', '-' and '.', received {name!r}.")


def _check_count(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, received {value!r}.")


def _write(base: str, name: str, content: str) -> str:
    path = os.path.join(base, name)
    unfinished = os.path.join(base, f".{name}-{os.getpid()}")
    with open(unfinished, "w", encoding="utf-8") as file:
        file.write(content)
    os.replace(unfinished, path)
    return path
