"""Lines of text files: the one rule for training, vocabularies, translating files and evaluation.

A line ends at LF, or at CR LF, and at nothing else: lone CR, U+0085, U+2028, VT and NUL are ordinary
text. A byte order mark at the start of a file is dropped. Invalid UTF-8 becomes U+FFFD. A last line
without LF counts.
"""

import contextlib
import glob
import gzip
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

_GZIP_MAGIC = b"\x1f\x8b"
_BOM = "\ufeff"
_BLOCK = 1 << 20

Path = str | os.PathLike[str]
Paths = Path | Sequence[Path]


def expand(paths: Paths) -> list[Path]:
    """List the files that are meant: paths as they are, and what patterns with *, ? or [ find, sorted.

    A file that has such a name is that file.

    Raises:
        FileNotFoundError: if a pattern finds no file.
        TypeError: if something is no path.
        ValueError: if there is none, or one is a pipe or the like, which can be read only once.
    """
    found: list[Path] = []
    for path in paths if isinstance(paths, Iterable) and not isinstance(paths, (str, bytes)) else [paths]:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"paths must be strings or path objects, got {path!r}.")
        name = os.fspath(path)
        if glob.escape(name) == name or os.path.exists(name):
            found.append(path)
            continue
        names = sorted(glob.glob(name, recursive=True))
        if not names:
            raise FileNotFoundError(f"{name!r} finds no file.")
        found += names
    if not found:
        raise ValueError("paths must name at least one file, got none.")
    for path in found:
        if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
            raise ValueError(f"{os.fspath(path)!r} is no regular file, expected one that can be read again.")
    return found


def read_lines(source: Path | Iterable[bytes]) -> Iterator[str]:
    """Read the lines of a file, one at a time, without their ends.

    Args:
        source: path of a file, gzip if it ends in .gz (of any number of members), or an open binary
            file such as `sys.stdin.buffer`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file is damaged, or its name and its content disagree about gzip.
    """
    return (line.removesuffix("\n") for line in read_text(source))


def read_text(source: Path | Iterable[bytes]) -> Iterator[str]:
    """Read a file line by line, each with its end, which is LF; the last may have none.

    Takes and raises what `read_lines` does.
    """
    if not isinstance(source, (str, os.PathLike)):
        yield from _decoded(source)
        return
    with open_bytes(source) as file:
        yield from _decoded(file)


def read_texts(paths: Sequence[Path]) -> Iterator[str]:
    """Read several files as one text: `read_text` of each, with an LF after each but the last."""
    for number, path in enumerate(paths, start=1):
        for line in read_text(path):
            yield line if line.endswith("\n") or number == len(paths) else line + "\n"


def cut(lines: Iterator[str], start: int, stop: int) -> Iterator[str]:
    """Give the characters of a text from number `start` up to number `stop`, line by line."""
    place = 0
    for line in lines:
        part = line[max(0, start - place) : max(0, stop - place)]
        if part:
            yield part
        place += len(line)
        if place >= stop:
            return


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
        is_gzip = raw.peek(2)[:2] == _GZIP_MAGIC  # which a pipe can do, too
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
        if line.endswith(b"\r\n"):
            line = line[:-2] + b"\n"
        text = line.decode("utf-8", "replace")
        yield text.removeprefix(_BOM) if first else text
        first = False
