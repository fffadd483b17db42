"""An export that is killed at any moment leaves no half version, and the next one clears up after it."""

import json
import multiprocessing
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import c_loader
import killed_export
import pytest

SERVER = multiprocessing.get_context("forkserver")  # imports TensorFlow once, for all processes
SERVER.set_forkserver_preload(["keras_seq2seq.serving", "keras_seq2seq.training"])


def start(base: Path) -> Any:
    """Return a process that exports until it is killed, and has begun to."""
    started = SERVER.Event()
    process = SERVER.Process(target=killed_export.export, args=(str(base), started))
    process.start()
    assert started.wait(120)
    return process


def finish(base: Path) -> None:
    process = SERVER.Process(target=killed_export.export, args=(str(base),))
    process.start()
    process.join(120)
    assert process.exitcode == 0


def first_version(base: Path) -> float:
    """Export, and return how many seconds it took until there was a version."""
    process, began = start(base), time.monotonic()
    while not (base.is_dir() and versions(base)) and time.monotonic() < began + 120:
        time.sleep(0.01)
    seconds = time.monotonic() - began
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    return seconds


def versions(base: Path) -> list[int]:
    return sorted(int(name) for name in os.listdir(base) if name.isdecimal())


def files(version: Path) -> dict[str, int]:
    """Return the size of every file of a version, but for those that tell the time or an id."""
    sizes = {
        str(path.relative_to(version)): path.stat().st_size for path in version.rglob("*") if path.is_file()
    }
    return {name: size for name, size in sizes.items() if not name.endswith((".pb", ".json"))} | {
        name: 0 for name in sizes if name.endswith((".pb", ".json"))
    }


def card(version: Path) -> dict[str, Any]:
    return json.loads((version / "assets.extra" / "model.json").read_text())


def check_kills(base: Path, kills: int) -> None:
    """Kill exports at moments spread evenly over the time that one takes; print what they left."""
    seconds = first_version(base)
    whole, fingerprint = files(base / "1"), card(base / "1")["fingerprint"]
    generator, moments = random.Random(1), []
    for i in range(kills):
        # One in each part of the whole, so that few kills, too, fall into early and late ones.
        moment = (i + generator.random()) / kills
        process, began = start(base), time.monotonic()
        time.sleep(max(began + moment * seconds - time.monotonic(), 0.0))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        left = [name for name in os.listdir(base) if not name.isdecimal()]
        moments.append((round(moment, 2), len(versions(base)), len(left)))
        assert len(left) <= 1, "each export removes what an earlier one left"
        assert versions(base) == list(range(1, len(versions(base)) + 1))
        for version in versions(base):
            assert files(base / str(version)) == whole
            assert card(base / str(version))["fingerprint"] == fingerprint
    print(f"\nof {seconds:.1f} s, (share, versions, left aside):", *moments)
    assert any(left for *_, left in moments), "none was killed in its midst"
    last = len(versions(base))
    finish(base)
    assert sorted(os.listdir(base)) == sorted(str(number) for number in range(1, last + 2))
    requests: list = [("serving_default", {"text": killed_export.LINES})]
    answers = [c_loader.run_signatures(base / str(number), requests) for number in (last, last + 1)]
    assert answers[0] == answers[1]


@pytest.mark.timeout(600)
def test_kills_leave_whole_versions_or_none(tmp_path: Path) -> None:
    check_kills(tmp_path / "base", kills=3)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_kills_leave_whole_versions_or_none(tmp_path: Path) -> None:
    check_kills(tmp_path / "base", kills=30)
