"""Pairs of known lengths, and batches of them read back."""

from typing import Any

import numpy as np
import tensorflow as tf

from keras_seq2seq.data import ParallelText
from keras_seq2seq.text import EOS_ID, Tokenizer

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Letters(Tokenizer):
    """One id for each letter, so that lengths are known."""

    vocabulary_size = 4 + 128

    def _encode(self, strings):
        return tf.cast(tf.strings.unicode_decode(strings, "UTF-8"), tf.int32) + 4


def some_pairs(count: int, longest: int = 30) -> list[tuple[str, str]]:
    """Make pairs that are all different, of many lengths."""
    rng = np.random.default_rng(1)
    pairs = []
    for number in range(count):
        sizes = rng.integers(4, longest, 2)
        source, target = ("".join(rng.choice(list(LETTERS), size - 4)) for size in sizes)
        pairs.append((f"{number:04}{source}", f"{number:04}{target}"[: sizes[1]]))
    return pairs


def arrays(dataset: tf.data.Dataset) -> list[tuple[np.ndarray, ...]]:
    return [
        (inputs["source"].numpy(), inputs["target"].numpy(), labels.numpy(), weights.numpy())
        for inputs, labels, weights in dataset
    ]


def pairs_of(batches: list[tuple[np.ndarray, ...]]) -> list[tuple[str, str]]:
    """Read the pairs back out of batches, in order."""
    found = []
    for source, _, labels, weights in batches:
        for row in np.flatnonzero(weights.any(axis=1)):
            first, second = (side[side > EOS_ID] - 4 for side in (source[row], labels[row]))
            found.append(("".join(map(chr, first)), "".join(map(chr, second))))
    return found


def batches(pairs: list[tuple[str, str]], **options: Any) -> tf.data.Dataset:
    return ParallelText.from_pairs(pairs).batches(
        Letters(), **{"tokens_per_batch": 256, "seed": 7, **options}
    )
