"""Files that appear whole or not at all."""

import contextlib
import os
import secrets

__all__ = ["ASIDE", "written_aside"]

ASIDE = ".unfinished-"  # begins the name of a file that is not whole yet


@contextlib.contextmanager
def written_aside(path):
    """Give the path of a file to write instead, in the same directory and with the same ending.

    At the end it takes the place of `path` in one step, safe from a power cut; after an error it is removed.
    """
    directory, name = os.path.split(os.path.abspath(path))
    unfinished = os.path.join(directory, f"{ASIDE}{os.getpid()}-{secrets.token_hex(4)}-{name}")
    try:
        yield unfinished
        _sync(unfinished)
        os.replace(unfinished, path)
        _sync(directory)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(unfinished)


def _sync(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
