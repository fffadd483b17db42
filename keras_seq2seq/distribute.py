"""Strategies of `tf.distribute` that work with Keras 3's `fit`.

Make the strategy first, and build and compile the model inside `strategy.scope()`; `fit` is as always:

    >>> strategy = ks.distribute.strategy("one_device")
    >>> with strategy.scope():
    ...     model = ks.models.rnn_seq2seq(100, units=16)
    ...     optimizer = ks.training.GlobalBatch(keras.optimizers.Adam(0.001, global_clipnorm=1.0))
    ...     model.compile(optimizer, loss=ks.training.SmoothedCrossentropy())

Batches are global: each replica takes its share of the rows. Their weights sum to 1 over the global batch, so
that losses and updates are those of one device, however uneven the lengths and the last batch are. A batch
needs at least one row for each replica.

Clip through `GlobalBatch`, which clips the gradient of the whole batch. Without it Keras clips those of each
replica before it adds them, which the models of this library refuse. In float16 they leave a batch out in all
replicas if it overflows in one.
"""

import itertools
import json
import os
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

__all__ = ["NAMES", "MirroredStrategy", "MultiWorkerMirroredStrategy", "strategy"]

NAMES = ("auto", "one_device", "mirrored", "multi_worker", "tpu")


class _CopiesBatches:
    """Batches that are cut for the replicas are copies, which a step may overwrite.

    TensorFlow takes over the memory of a NumPy array that a generator or `tf.numpy_function` gives, if it
    starts at a multiple of 64 bytes. It never writes into such an array, but it does into a part of one: an
    operation that needs a replica's part for the last time puts its result there. An array that is given
    again in the next epoch, such as those of a `keras.utils.PyDataset`, would come back changed.
    """

    def experimental_distribute_dataset(self, dataset: tf.data.Dataset, options: Any = None) -> Any:
        """Distribute a dataset as TensorFlow does, with batches of its own."""
        distribute: Any = super()  # of TensorFlow's strategy
        return distribute.experimental_distribute_dataset(dataset.map(_copy), options)


def _copy(*batch: Any) -> Any:
    """Copy the tensors of a batch, also those inside ragged and sparse ones."""
    copy = tf.nest.map_structure(lambda x: tf.raw_ops.DeepCopy(x=x), batch, expand_composites=True)
    return copy if len(copy) > 1 else copy[0]


class MirroredStrategy(_CopiesBatches, tf.distribute.MirroredStrategy):
    """TensorFlow's strategy for several devices of one machine, which leaves the arrays of the data alone.

    There may be several in a process. TensorFlow numbers the sums over the devices of each from the same
    start, so that those of two strategies meet.
    """

    _made = itertools.count()

    def __init__(self, devices: Sequence[str] | None = None):
        self._collective_key_base = 100_000 * next(self._made)  # as TensorFlow's own tests do
        super().__init__(devices)


class MultiWorkerMirroredStrategy(_CopiesBatches, tf.distribute.MultiWorkerMirroredStrategy):
    """TensorFlow's strategy for several workers, such that Keras 3's `fit` runs under it.

    Keras reduces a whole batch, in order to learn its shapes, and scalars along an axis that they do not have
    (https://github.com/keras-team/keras/issues/20585). Everything else is TensorFlow's. Each worker runs the
    same program with its own `TF_CONFIG` and the same batches in the same order, of which it takes its rows.
    """

    def reduce(self, reduce_op: Any, value: Any, axis: Any) -> Any:
        """Reduce as TensorFlow does; of a structure give this worker's part, of scalars the result."""
        if tf.nest.is_nested(value):
            return tf.nest.map_structure(lambda leaf: self.experimental_local_results(leaf)[0], value)
        parts = self.experimental_local_results(value)
        scalar = all(tf.convert_to_tensor(part).shape.rank == 0 for part in parts)
        return super().reduce(reduce_op, value, axis=None if scalar else axis)


def strategy(name: str = "auto") -> tf.distribute.Strategy:
    """Return a strategy.

    Args:
        name: "one_device" for the first GPU, or the CPU; "mirrored" for all GPUs of this machine, or all
            logical CPU devices where there is no GPU; "multi_worker" for all workers in `TF_CONFIG`; "tpu"
            for the TPU that `TPU_NAME` or the machine names; "auto" for the first that fits: a TPU if
            `TPU_NAME` is set, several workers in `TF_CONFIG`, several GPUs, else one device.

    Raises:
        ValueError: another name, `TF_CONFIG` that is missing or names parameter servers, or no TPU.
    """
    if name == "parameter_server":
        raise ValueError(
            'name "parameter_server" cannot be used: Keras 3 does not train under ParameterServerStrategy; '
            'use "mirrored" or "multi_worker".'
        )
    if name not in NAMES:
        raise ValueError(f"name must be one of {', '.join(map(repr, NAMES))}, received {name!r}.")
    if name == "auto":
        name = _fitting()
    if name == "multi_worker":
        _check_workers()
        return MultiWorkerMirroredStrategy()
    if name == "tpu":
        return _tpu()
    gpus = tf.config.list_logical_devices("GPU")
    devices = [device.name for device in gpus or tf.config.list_logical_devices("CPU")]
    if name == "mirrored":
        return MirroredStrategy(devices)
    return tf.distribute.OneDeviceStrategy(devices[0])


def _fitting() -> str:
    if os.environ.get("TPU_NAME"):
        return "tpu"
    if sum(map(len, _cluster().values())) > 1:
        return "multi_worker"
    return "mirrored" if len(tf.config.list_logical_devices("GPU")) > 1 else "one_device"


def _cluster() -> dict[str, list[str]]:
    """Read the tasks of `TF_CONFIG`, by their kind."""
    text = os.environ.get("TF_CONFIG", "{}")
    try:
        cluster = json.loads(text).get("cluster", {})
        return {str(kind): list(tasks) for kind, tasks in cluster.items()}
    except (ValueError, AttributeError, TypeError) as error:
        raise ValueError(f"TF_CONFIG must be JSON with a cluster of workers, received {text!r}.") from error


def _check_workers() -> None:
    cluster = _cluster()
    if "ps" in cluster:
        raise ValueError(
            "TF_CONFIG must name workers only, received parameter servers (ps): Keras 3 does not train under "
            "ParameterServerStrategy."
        )
    if not cluster.get("worker"):
        raise ValueError('"multi_worker" needs the environment variable TF_CONFIG with a list of workers.')


def _tpu() -> tf.distribute.Strategy:
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=os.environ.get("TPU_NAME", ""))
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, tf.errors.OpError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f'"tpu" needs a TPU, none was found: {reason:.200}') from error
    return tf.distribute.TPUStrategy(resolver)
