"""Strategies: losses and weights of one device, on two replicas and on two workers."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from distributed_training import OPTIMIZERS, train, uneven_batches
from token_batches import as_dataset, small_model

import keras_seq2seq as ks

TESTS = Path(__file__).parent


@pytest.fixture(scope="module")
def one_device():
    strategy = ks.distribute.strategy("one_device")
    assert strategy.num_replicas_in_sync == 1
    return {name: train(strategy, name) for name in OPTIMIZERS}


def check_equal(found, expected):
    (logs, weights), (expected_logs, expected_weights) = found, expected
    assert sorted(logs) == sorted(expected_logs)
    for name, values in expected_logs.items():
        np.testing.assert_allclose(logs[name], values, atol=1e-5, err_msg=name)
    for ours, theirs in zip(weights, expected_weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_two_replicas_are_one_device(one_device, two_replicas, name):
    check_equal(train(two_replicas, name), one_device[name])


def test_an_overflow_is_left_out(one_device):
    """The scale begins at 16, is halved for the first of three batches, and doubled after two good ones."""
    assert one_device["scaled"][0] == {"scale": 16.0, "updates": 4}


@pytest.mark.parametrize("clip", ["clipnorm", "global_clipnorm", "clipvalue"])
def test_clipping_of_each_replica_by_itself_is_refused(two_replicas, clip):
    with two_replicas.scope():
        model = small_model()
    message = f"{clip}=0.5 must be that of an optimizer in GlobalBatch: .* each of the 2 replicas by itself"
    optimizer = keras.optimizers.SGD(0.5, **{clip: 0.5})
    for wrapped in (optimizer, keras.optimizers.LossScaleOptimizer(optimizer)):
        with pytest.raises(ValueError, match=message):
            model.compile(wrapped, "mse")
    model.compile(ks.training.GlobalBatch(optimizer), "mse")


def test_strategies_of_one_process_do_not_meet():
    """TensorFlow numbers the sums of each strategy from the same start; another shape would be an error."""
    for size in (3, 5):
        strategy = ks.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

        @tf.function
        def add(strategy=strategy, size=size):
            def replica():
                return tf.distribute.get_replica_context().all_reduce("SUM", tf.ones([size]))

            return strategy.experimental_local_results(strategy.run(replica))

        for total in add():
            np.testing.assert_array_equal(total, np.full(size, 2.0))


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def from_numpy_function(batches):
    """Give the batches by `tf.numpy_function`."""
    spec = as_dataset(batches).element_spec
    types = [each.dtype for each in tf.nest.flatten(spec)]

    def read(index):
        flat = tf.numpy_function(lambda i: tf.nest.flatten(batches[i]), [index], types)
        return tf.nest.pack_sequence_as(spec, [tf.ensure_shape(x, [None, None]) for x in flat])

    return tf.data.Dataset.range(len(batches)).map(read)


@pytest.mark.parametrize("source", [as_dataset, from_numpy_function])
def test_arrays_of_the_data_are_left_alone(two_replicas, source):
    """TensorFlow takes over the memory of an array, and may write into the parts of it that replicas get."""
    batches = uneven_batches()
    iterator = iter(two_replicas.experimental_distribute_dataset(source(batches)))

    @tf.function
    def step():
        return two_replicas.run(lambda *batch: tf.nest.map_structure(lambda x: x + 1, batch), next(iterator))

    for _ in batches:
        step()
    for ours, theirs in zip(tf.nest.flatten(batches), tf.nest.flatten(uneven_batches()), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory):
    """Train in two processes, and give for each optimizer what each of them found."""
    folder = tmp_path_factory.mktemp("workers")
    cluster = {"worker": [f"127.0.0.1:{port}" for port in free_ports(2)]}
    processes = []
    for index in range(2):
        config = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})
        environment = {**os.environ, "TF_CONFIG": config, "PYTHONPATH": f"{TESTS}:{TESTS.parent}"}
        command = [sys.executable, TESTS / "distributed_training.py", "auto", folder / str(index)]
        with open(folder / f"{index}.log", "w") as log:
            processes.append(subprocess.Popen(command, env=environment, stderr=log))
    try:
        codes = [process.wait(timeout=400) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert codes == [0, 0], [(folder / f"{index}.log").read_text() for index in range(2)]
    return {name: [read(folder / f"{index}-{name}.npz") for index in range(2)] for name in OPTIMIZERS}


def read(path):
    with np.load(path) as file:
        values = dict(file)
    weights = [values.pop(f"weight{i}") for i in range(sum(name.startswith("weight") for name in values))]
    return values, weights


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_two_workers_are_one_device(one_device, two_workers, name):
    for found in two_workers[name]:
        check_equal(found, one_device[name])


def test_mirrored_takes_all_devices_and_auto_one(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.delenv("TPU_NAME", raising=False)
    monkeypatch.setattr(ks.distribute, "MirroredStrategy", lambda devices: devices)
    assert len(ks.distribute.strategy("mirrored")) == 2
    if not tf.config.list_logical_devices("GPU"):
        assert isinstance(ks.distribute.strategy(), tf.distribute.OneDeviceStrategy)


@pytest.mark.parametrize(
    ("name", "config", "message"),
    [
        ("parameter_server", None, "Keras 3 does not train under ParameterServerStrategy; use"),
        ("both", None, "name must be one of 'auto', 'one_device', .*, received 'both'"),
        ("multi_worker", None, "needs the environment variable TF_CONFIG"),
        ("multi_worker", "{", "TF_CONFIG must be JSON with a cluster of workers, received '{'"),
        ("auto", "[]", r"TF_CONFIG must be JSON with a cluster of workers, received '\[\]'"),
        ("auto", '{"cluster": {"worker": ["a:1"], "ps": ["b:1"]}}', "must name workers only, received param"),
    ],
)
def test_what_cannot_be_is_refused(monkeypatch, name, config, message):
    monkeypatch.delenv("TPU_NAME", raising=False)
    monkeypatch.delenv("TF_CONFIG", raising=False)
    if config is not None:
        monkeypatch.setenv("TF_CONFIG", config)
    with pytest.raises(ValueError, match=message):
        ks.distribute.strategy(name)
