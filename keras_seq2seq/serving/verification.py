"""Proof that an export does what the translator or generator in memory does, before anybody can see it."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from keras_seq2seq.serving.graph_ops import refused_ops
from keras_seq2seq.serving.served import Functions, Served

__all__ = ["SAMPLES", "verify"]

SAMPLES = (
    "",
    "Hello!",
    "How are you today?",
    "The quick brown fox jumps over the lazy dog, and then it runs home.",
    "\u6570\u636e \u043f\u0440\u0438\u0432\u0435\u0442 \u0645\u0631\u062d\u0628\u0627",
    "caf\u00e9 \u2615 \U0001f600 \ufffd",
)


def verify(path: str, served: Served, functions: Functions, samples: Sequence[str]) -> None:
    """Load the SavedModel at `path` and compare what its signatures say with what `served` says.

    Texts go one at a time: in batches of different make-up, rounding could let two hypotheses that are
    equally good change places. Below float32 it can do so anyway; only scores are compared there.

    Raises:
        RuntimeError: an operation that stock TF Serving cannot run, or a result that differs.
    """
    refused = refused_ops(path)
    if refused:
        raise RuntimeError(f"the export needs {', '.join(refused)}, which stock TF Serving cannot run.")
    signatures = tf.saved_model.load(path).signatures
    exact = served.model.compute_dtype == "float32"
    for text in samples:
        for each in functions.expected(text):
            signature = signatures[each.signature]
            specs = signature.structured_input_signature[1]
            tensors = {key: tf.constant([value], specs[key].dtype) for key, value in each.inputs.items()}
            texts, scores = _read(signature(**tensors))
            tolerance = (1e-5 if exact else 2e-2) * max(each.length, 1)
            near = len(scores) == len(each.scores) and all(
                abs(a - b) <= tolerance for a, b in zip(scores, each.scores, strict=True)
            )
            if not near or (exact and texts != each.texts):
                raise RuntimeError(
                    f"signature {each.signature!r} of the export gives {(texts, scores)} for {each.inputs}, "
                    f"the {served.KIND.lower()} {(each.texts, each.scores)}."
                )


def _read(outputs: dict[str, Any]) -> tuple[list[str], list[float]]:
    """Return the texts and the numbers of a batch of one."""
    values = [value for name in sorted(outputs) for value in outputs[name].numpy().reshape(-1).tolist()]
    texts = [value.decode() for value in values if isinstance(value, bytes)]
    return texts, [value for value in values if not isinstance(value, bytes)]
