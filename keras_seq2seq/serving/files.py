"""Work that appears whole or not at all: done aside, then renamed into place."""

import contextlib
import os
import secrets
import shutil
import socket
import time
from collections.abc import Iterator

__all__ = ["aside", "explained", "sync", "sync_entry"]

_MARK = ".keras_seq2seq-"
_ABANDONED = 24 * 3600  # seconds after which what another machine left behind counts as abandoned


@contextlib.contextmanager
def aside(parent: str) -> Iterator[str]:
    """Make a directory inside `parent`, which is made if need be, and remove what is left of it at the end.

    What killed processes left behind goes first: their directories on this machine, and those of other
    machines that are a day old.
    """
    os.makedirs(parent, exist_ok=True)
    for entry in list(os.scandir(parent)):
        if entry.name.startswith(_MARK) and _is_abandoned(entry):
            shutil.rmtree(entry.path, ignore_errors=True)
    path = os.path.join(parent, f"{_MARK}{_host()}-{os.getpid()}-{secrets.token_hex(4)}")
    os.mkdir(path)  # unlike tempfile's, with the permissions that the user's umask gives
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def explained(directory: str) -> Iterator[None]:
    """Turn what the file system refuses into one sentence about `directory`."""
    try:
        yield
    except OSError as error:
        raise type(error)(f"{directory!r} cannot be written: {error.strerror or error}.") from error


def sync(path: str) -> None:
    """Make a file, or a directory and all that is in it, safe from a power cut."""
    if os.path.isdir(path):
        for name in os.listdir(path):
            sync(os.path.join(path, name))
    sync_entry(path)


def sync_entry(path: str) -> None:
    """Make a file, or the names in a directory, safe from a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _host() -> str:
    return "".join(letter for letter in socket.gethostname() if letter.isalnum())


def _is_abandoned(entry: os.DirEntry[str]) -> bool:
    host, pid, *_ = (*entry.name.removeprefix(_MARK).split("-"), "", "")
    if host == _host() and pid.isdigit() and not _runs(int(pid)):
        return True
    with contextlib.suppress(FileNotFoundError):
        return time.time() - entry.stat(follow_symlinks=False).st_mtime > _ABANDONED
    return False


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
