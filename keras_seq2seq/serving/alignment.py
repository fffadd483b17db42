"""Where the tokens of a translation looked in the source: which layer, which heads, and the tokens as text.

Legend: B rows, H heads, T target length, S source length.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_seq2seq.serving.batching import Rows, pad_rows
from keras_seq2seq.text import BOS_ID, EOS_ID, Tokenizer

__all__ = ["Look", "mean_over_heads", "pieces", "weights_of"]

_END, _SPACE = "</s>", "\u2581"  # what EOS and white space are shown as: they have no text to see


class Look(NamedTuple):
    """Which attention is asked for.

    Attributes:
        layer: of the decoder, counted from 0, or from the end if negative.
        heads: their numbers, or None for all.
    """

    layer: int
    heads: tuple[int, ...] | None

    @classmethod
    def checked(cls, layer: Any, heads: Any) -> "Look":
        """Take what a caller gives.

        Raises:
            ValueError: no integers, or no head at all.
        """
        if isinstance(layer, bool) or not isinstance(layer, int):
            raise ValueError(f"alignment_layer must be an integer, received {layer!r}.")
        if heads is None:
            return cls(layer, None)
        several = (heads,) if isinstance(heads, int) else tuple(heads) if isinstance(heads, Sequence) else ()
        if not several or any(isinstance(head, bool) or not isinstance(head, int) for head in several):
            raise ValueError(
                f"alignment_heads must be None, an integer or a list of integers, received {heads!r}."
            )
        return cls(layer, several)


def mean_over_heads(weights: Any, heads: tuple[int, ...] | None) -> Any:
    """Return the mean of `[B, H, T, S]` over some heads, or all: float32 `[B, T, S]`.

    Raises:
        ValueError: there is no such head.
    """
    count = weights.shape[1]
    if heads is not None:
        if not all(-count <= head < count for head in heads):
            raise ValueError(f"alignment_heads must name some of {count} heads, received {list(heads)}.")
        weights = tf.gather(weights, [head % count for head in heads], axis=1)
    return tf.reduce_mean(tf.cast(weights, tf.float32), axis=1)


def weights_of(decoding: Any, look: Look, sources: Rows, ids: list[list[list[int]]]) -> list[list[Any]]:
    """Return the weights of each hypothesis, float32 `[tokens, source tokens]`, by one pass over all of them.

    Args:
        decoding: has `align`.
        look: what is asked for.
        sources: the ids of each source, EOS in.
        ids: the ids of the hypotheses of each source, EOS in where they are finished.
    """
    flat = [(source, row) for source, rows in zip(sources, ids, strict=True) for row in rows]
    target = pad_rows([[BOS_ID, *row[:-1]] for _, row in flat])  # what is read to predict each token
    weights = np.asarray(decoding.align(look, pad_rows([source for source, _ in flat]), target))
    cut = iter([weights[i, : len(row), : len(source)].copy() for i, (source, row) in enumerate(flat)])
    return [[next(cut) for _ in rows] for rows in ids]


def pieces(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """Return the text of each token by itself, such as stands beside a picture."""
    known = sorted({int(number) for number in ids})
    texts = tokenizer.detokenize([[number] for number in known]).numpy() if known else []
    shown = {
        number: text.decode() if text.decode().strip() else _SPACE
        for number, text in zip(known, texts, strict=True)
    }
    return [_END if number == EOS_ID else shown[int(number)] for number in ids]
