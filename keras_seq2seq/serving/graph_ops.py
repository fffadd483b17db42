"""Which operations a SavedModel needs."""

import os

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

__all__ = ["custom_ops", "refused_ops"]


def graph_ops(path: str) -> set[str]:
    """Return the names of all operations in the SavedModel at `path`."""
    saved = saved_model_pb2.SavedModel()
    with open(os.path.join(path, "saved_model.pb"), "rb") as file:
        saved.ParseFromString(file.read())
    names = set()
    for graph in (meta.graph_def for meta in saved.meta_graphs):
        names |= {node.op for node in graph.node}
        names |= {node.op for function in graph.library.function for node in function.node_def}
    return names


def custom_ops(path: str) -> list[str]:
    """Return the operations that are not of core TensorFlow, such as those of TensorFlow Text."""
    return sorted(name for name in graph_ops(path) if not hasattr(tf.raw_ops, name))


def refused_ops(path: str) -> list[str]:
    """Return the operations that stock TF Serving cannot run: Python functions, and those of XLA."""
    return sorted(name for name in graph_ops(path) if "PyFunc" in name or name.startswith("Xla"))
