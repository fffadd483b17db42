"""Lines of text files: the one rule for training, vocabularies, translating files and evaluation.

A line ends at LF, or at CR LF, and at nothing else: lone CR, U+0085, U+2028, VT and NUL are ordinary
text. A byte order mark at the start of a file is dropped. Invalid UTF-8 becomes U+FFFD. A last line
without LF counts.
"""

import contextlib
import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from typing import IO

_GZIP_MAGIC = b"\x1f\x8b"
_BOM = "\ufeff"
_BLOCK = 1 << 20

Path = str | os.PathLike[str]


def read_lines(source: Path | Iterable[bytes]) -> Iterator[str]:
    """Read the lines of a file, one at a time, without their ends.

    Args:
        source: path of a file, gzip if it ends in .gz (of any number of members), or an open binary
            file such as `sys.stdin.buffer`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file is damaged, or its name and its content disagree about gzip.
    """
    if not isinstance(source, (str, os.PathLike)):
        yield from _decoded(source)
        return
    with open_bytes(source) as file:
        yield from _decoded(file)


def count_lines(path: Path) -> int:
    """Count the lines that `read_lines` gives; raises what `read_lines` raises."""
    count, last = 0, b"\n"
    with open_bytes(path) as file:
        while block := file.read(_BLOCK):
            count += block.count(b"\n")
            last = block[-1:]
    return count + (last != b"\n")


@contextlib.contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a plain or gzip file for reading, and turn what goes wrong into one sentence."""
    name = os.fspath(path)
    if not os.path.exists(name):
        raise FileNotFoundError(f"{name!r} does not exist.")
    if os.path.isdir(name):
        raise IsADirectoryError(f"{name!r} is a directory, expected a text file.")
    with open(name, "rb") as raw:
        is_gzip = raw.read(2) == _GZIP_MAGIC
        raw.seek(0)
        if is_gzip != name.endswith(".gz"):
            said = "ends in .gz but is no gzip file" if name.endswith(".gz") else "is a gzip file without .gz"
            raise ValueError(f"{name!r} {said}.")
        if not is_gzip:
            yield raw
            return
        try:
            with gzip.GzipFile(fileobj=raw) as file:
                yield file  # type: ignore[misc]
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{name!r} is a damaged gzip file: {error}.") from error


def _decoded(file: Iterable[bytes]) -> Iterator[str]:
    first = True
    for line in file:
        if line.endswith(b"\n"):
            line = line[:-2] if line.endswith(b"\r\n") else line[:-1]
        text = line.decode("utf-8", "replace")
        yield text.removeprefix(_BOM) if first else text
        first = False
