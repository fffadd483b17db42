"""Proof that an export does what its translator does, before anybody can see it."""

from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from keras_seq2seq.serving.graph_ops import refused_ops

__all__ = ["SAMPLES", "verify"]

SAMPLES = (
    "",
    "Hello!",
    "How are you today?",
    "The quick brown fox jumps over the lazy dog, and then it runs home.",
    "\u6570\u636e \u043f\u0440\u0438\u0432\u0435\u0442 \u0645\u0631\u062d\u0628\u0627",
    "caf\u00e9 \u2615 \U0001f600 \ufffd",
)


def verify(path: str, translator: Any, n_best: int, samples: Sequence[str]) -> None:
    """Load the SavedModel at `path` and compare what its signatures say with what `translator` says.

    Texts go one at a time: in batches of different make-up, rounding could let two hypotheses that are
    equally good change places. Below float32 it can do so anyway; only scores are compared there.

    Raises:
        RuntimeError: an operation that stock TF Serving cannot run, or a result that differs.
    """
    refused = refused_ops(path)
    if refused:
        raise RuntimeError(f"the export needs {', '.join(refused)}, which stock TF Serving cannot run.")
    signatures = tf.saved_model.load(path).signatures
    exact = translator.model.compute_dtype == "float32"
    for text in samples:
        for name, inputs, texts, scores, length in _expected(translator, n_best, text):
            tensors = {key: tf.constant([value]) for key, value in inputs.items()}
            found = _read(signatures[name](**tensors))
            tolerance = (1e-5 if exact else 2e-2) * max(length, 1)
            near = len(found[1]) == len(scores) and all(
                abs(a - b) <= tolerance for a, b in zip(found[1], scores, strict=True)
            )
            if not near or (exact and found[0] != texts):
                raise RuntimeError(
                    f"signature {name!r} of the export gives {found} for {inputs}, "
                    f"the translator {(texts, scores)}."
                )


def _expected(
    translator: Any, n_best: int, text: str
) -> Iterator[tuple[str, dict[str, str], list[str], list[float], int]]:
    """Yield signatures, their inputs, and what the translator says: texts, scores, and tokens of the best."""
    (hypotheses,) = translator.translate([text], n_best)
    ((after,),) = translator.translate([text], prefixes=[""])
    texts, scores = [each.text for each in hypotheses], [each.score for each in hypotheses]
    length = len(hypotheses[0].tokens)
    yield "serving_default", {"text": text}, texts[:1], scores[:1], length
    yield "translate_n_best", {"text": text}, texts, scores, length
    yield (
        "translate_with_prefix",
        {"text": text, "prefix": ""},
        [after.text],
        [after.score],
        len(after.tokens),
    )
    yield "score", {"source": text, "target": texts[0]}, [], list(translator.score(text, texts[0])), length


def _read(outputs: dict[str, Any]) -> tuple[list[str], list[float]]:
    """Return the texts and the numbers of a batch of one."""
    values = [value for name in sorted(outputs) for value in outputs[name].numpy().reshape(-1).tolist()]
    texts = [value.decode() for value in values if isinstance(value, bytes)]
    return texts, [value for value in values if not isinstance(value, bytes)]
