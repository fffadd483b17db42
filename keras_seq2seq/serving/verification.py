"""Proof that an export does what its translator does, before anybody can see it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_seq2seq.serving.graph_ops import refused_ops

__all__ = ["SAMPLES", "verify"]

SAMPLES = (
    "",
    "Hello!",
    "How are you today?",
    "The quick brown fox jumps over the lazy dog, and then it runs home.",
    "数据 здравствуйте مرحبا",
    "caf\u00e9 \u2615 \U0001f600 \ufffd",
)
_TOLERANCE = 1e-5  # of a score, for each token


def verify(path: str, translator: Any, n_best: int, samples: Sequence[str]) -> None:
    """Load the SavedModel at `path` and compare every signature with `translator`.

    Raises:
        RuntimeError: an operation that stock TF Serving cannot run, or a result that differs.
    """
    refused = refused_ops(path)
    if refused:
        raise RuntimeError(f"the export needs {', '.join(refused)}, which stock TF Serving cannot run.")
    signatures = tf.saved_model.load(path).signatures
    texts, expected = list(samples), translator.translate(samples, n_best)
    given = tf.constant(texts, tf.string)
    n_best_out = signatures["translate_n_best"](text=given)
    _compare("translate_n_best", n_best_out["translations"], n_best_out["scores"], texts, expected)
    best = [hypotheses[:1] for hypotheses in expected]
    for name, inputs in (
        ("serving_default", {}),
        ("translate", {}),
        ("translate_with_prefix", {"prefix": tf.zeros_like(given)}),
    ):
        out = signatures[name](text=given, **inputs)
        _compare(name, out["translation"][:, None], out["score"][:, None], texts, best)
    _compare_scores(signatures["score"], translator, texts, [row[0].text for row in best])


def _compare(name: str, found: Any, scores: Any, texts: list[str], expected: list[list[Any]]) -> None:
    for text, row, row_scores, hypotheses in zip(texts, found.numpy(), scores.numpy(), expected, strict=True):
        for value, score, hypothesis in zip(row, row_scores, hypotheses, strict=True):
            near = abs(score - hypothesis.score) <= _TOLERANCE * max(len(hypothesis.tokens), 1)
            if value.decode() != hypothesis.text or not near:
                raise RuntimeError(
                    f"signature {name!r} of the export gives {value.decode()!r} with score {score:.6f} for "
                    f"{text!r}, the translator {hypothesis.text!r} with {hypothesis.score:.6f}."
                )


def _compare_scores(signature: Any, translator: Any, texts: list[str], targets: list[str]) -> None:
    out = signature(source=tf.constant(texts), target=tf.constant(targets))
    expected = np.array(translator.score(texts, targets), np.float64).reshape(-1, 2)
    count = out["token_count"].numpy()
    near = np.abs(out["score"].numpy() - expected[:, 0]) <= _TOLERANCE * count
    if not (near & (count == expected[:, 1])).all():
        wrong = texts[int(np.argmin(near & (count == expected[:, 1])))]
        raise RuntimeError(f"signature 'score' of the export differs from the translator for {wrong!r}.")
