"""A run that was killed goes on as if nothing had happened, and never leaves a broken checkpoint."""

import multiprocessing
import os
import random
import signal
import time

import h5py
import killed_training
import numpy as np
import pytest

from keras_seq2seq.training import checkpoints

SERVER = multiprocessing.get_context("forkserver")  # imports TensorFlow once, for all processes
SERVER.set_forkserver_preload(["keras_seq2seq.serving", "keras_seq2seq.training"])


def start(*arguments):
    process = SERVER.Process(target=killed_training.train, args=arguments)
    process.start()
    return process


def finish(*arguments):
    process = start(*arguments)
    process.join(120)
    assert process.exitcode == 0
    with np.load(f"{arguments[0]}/end.npz") as values:
        return dict(values)


def check_equal(one, other):
    assert sorted(one) == sorted(other)
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def test_five_and_five_steps_are_ten(tmp_path):
    """In the middle of an epoch, and from its last batch into the next."""
    for first, second in ((5, 10), (25, 30)):
        cut, whole = tmp_path / f"cut{second}", tmp_path / f"whole{second}"
        straight = finish(str(whole), second, 5)
        finish(str(cut), first, 5)
        resumed = finish(str(cut), second, 5)
        check_equal(resumed, straight)
        assert resumed["optimizer3"] > 8.0  # the loss scale has moved
        assert [each.step for each in checkpoints(cut)] == [each.step for each in checkpoints(whole)]


def kill_at_random(directory, least, inside, most):
    """Kill and restart a run so many times at least, and until so many kills fell into a save.

    Print how many there were of both, and give the last step.
    """
    shared = SERVER.RawArray("q", 2)  # without a lock, which would die with its holder
    hits = kills = 0
    generator = random.Random(0)
    while kills < least or hits < inside:
        assert kills < most
        process = start(directory, 10**6, 1, shared)
        before = time.monotonic()
        while shared[1] == _last(directory) and time.monotonic() < before + 120:
            time.sleep(0.002)  # until it has saved for the first time
        time.sleep(generator.uniform(0.0, 0.3))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        kills, hits = kills + 1, hits + (shared[0] == 1)
        shared[0] = 0
        _check_directory(directory, shared[1])
        shared[1] = _last(directory)
    print(f"\n{kills} kills, {hits} of them inside a save")
    return _last(directory)


def _last(directory):
    return max((each.step for each in checkpoints(directory)), default=0)


def _check_directory(directory, saved):
    """Every checkpoint is whole, and none but the steps since the last complete save is lost."""
    found = checkpoints(directory)
    assert found[-1].step in (saved, saved + 1)
    for each in found:
        with h5py.File(each.path) as file:
            file.visititems(lambda name, entry: entry[()] if isinstance(entry, h5py.Dataset) else None)
            assert int(file["optimizer/inner_optimizer/vars/0"][()]) == each.step


def check_kills(tmp_path, **counts):
    directory = str(tmp_path / "killed")
    last = kill_at_random(directory, **counts)
    resumed = finish(directory, last + 3)
    straight = finish(str(tmp_path / "straight"), last + 3)
    check_equal(resumed, straight)
    names = os.listdir(directory)
    assert not [name for name in names if name.startswith(".")], "what killed saves left behind is removed"


@pytest.mark.timeout(900)
def test_a_run_survives_kills_inside_saves(tmp_path):
    check_kills(tmp_path, least=5, inside=3, most=40)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_run_survives_many_kills(tmp_path):
    check_kills(tmp_path, least=100, inside=10, most=300)
