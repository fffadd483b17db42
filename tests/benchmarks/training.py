"""What training a Transformer costs: `python tests/benchmarks/training.py [--json FILE] [--quick]`.

The tiny Transformer of Multi30k, the base one, and a language model of characters, each with and without XLA,
beside the same model of KerasHub's layers. Sentences have the lengths of captions, words are drawn at
random. All variants of a table alternate, and the median of all rounds is shown. No test runs this.

Legend: B rows, V vocabulary, D model, F feed-forward, H heads, N blocks.
"""

import os
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras
import keras_hub
import numpy as np
import tensorflow as tf
from keras import layers, ops
from report import Row, arguments, in_turn, matrix_limit, peak_memory, report

import keras_seq2seq as ks

Batch = tuple[Any, Any, Any]


class Setting(NamedTuple):
    """The sizes of a model and of its batches."""

    vocabulary: int
    dim: int
    inner: int
    heads: int
    blocks: int
    dropout: float
    width: int
    tokens: int


SETTINGS = {
    "tiny": Setting(10_000, 128, 256, 4, 4, 0.3, 20, 4096),
    "base": Setting(10_000, 512, 2048, 8, 6, 0.1, 20, 4096),
    "characters": Setting(65, 128, 512, 4, 4, 0.0, 64, 768),
}


def make_batch(setting: Setting, pairs: bool) -> Batch:
    """Draw one batch: of pairs of sentences of 16 to 20 words, or of stretches of text."""
    rng = np.random.default_rng(0)
    width, rows = setting.width, setting.tokens // setting.width
    ids = rng.integers(4, setting.vocabulary, (2, rows, width)).astype("int32")
    lengths = rng.integers(width - 4, width + 1, (2, rows)) if pairs else np.full((2, rows), width)
    source, labels = np.where(np.arange(width) < lengths[..., None], ids, 0)
    target = np.concatenate([np.full((rows, 1), 2, "int32"), labels[:, :-1]], axis=1)
    weights = (labels != 0).astype("float32")
    inputs = {"source": source, "target": target} if pairs else {"target": target}
    return tf.nest.map_structure(tf.constant, (inputs, labels, weights / weights.sum()))


def ours(setting: Setting, pairs: bool) -> keras.Model:
    """Build the library's model."""
    sizes: dict[str, Any] = {
        "model_dim": setting.dim,
        "feed_forward_dim": setting.inner,
        "num_heads": setting.heads,
        "num_layers": setting.blocks,
        "dropout": setting.dropout,
    }
    if pairs:
        return ks.models.transformer_seq2seq(setting.vocabulary, placement="post", **sizes)
    options = {"preset": "gpt2", "positions": "learned", "max_length": setting.width}
    return ks.models.transformer_lm(setting.vocabulary, **options, **sizes)


def hub(setting: Setting, pairs: bool) -> keras.Model:
    """Build the same of KerasHub's layers, as its users do."""
    v, d, f, h, n, dropout, width, _ = setting
    embed = keras_hub.layers.TokenAndPositionEmbedding(v, width, d, mask_zero=pairs, tie_weights=True)
    drop, inputs = layers.Dropout(dropout), {}
    target = inputs["target"] = keras.Input((None,), dtype="int32", name="target")
    y = drop(embed(target))
    if pairs:
        source = inputs["source"] = keras.Input((None,), dtype="int32", name="source")
        memory = drop(embed(source))
        for _ in range(n):
            memory = keras_hub.layers.TransformerEncoder(f, h, dropout=dropout)(memory)
        for _ in range(n):
            y = keras_hub.layers.TransformerDecoder(f, h, dropout=dropout)(y, memory)
    else:
        for _ in range(n):
            block = keras_hub.layers.TransformerDecoder
            y = block(f, h, dropout=dropout, activation="gelu", normalize_first=True)(y)
        y = layers.LayerNormalization()(y)
    return keras.Model(inputs, embed.token_embedding(y, reverse=True))


def plain_loss(labels: Any, logits: Any) -> Any:
    """Smooth labels as a user of Keras writes it who wants no one-hot."""
    labels = ops.cast(labels, "int32")
    normalizer = ops.logsumexp(logits, axis=-1)
    right = ops.squeeze(ops.take_along_axis(logits, labels[..., None], axis=-1), -1)
    return normalizer - 0.9 * right - 0.1 * ops.mean(logits, axis=-1)


KINDS: dict[str, tuple[Callable[..., keras.Model], Any]] = {
    "KerasHub": (hub, plain_loss),
    "ours": (ours, ks.training.SmoothedCrossentropy(0.1)),
}


def trainer(kind: str, setting: Setting, pairs: bool, xla: bool, steps: int) -> Callable[[], None]:
    """Return a function that trains for some steps."""
    build, loss = KINDS[kind]
    keras.utils.set_random_seed(0)
    model = build(setting, pairs)
    model.compile(keras.optimizers.Adam(1e-3, beta_2=0.98), loss, jit_compile=xla)
    batches = [make_batch(setting, pairs)] * steps

    def run() -> None:
        # `fit` without its callbacks and its iterator, which cost all alike.
        model.reset_metrics()
        for batch in batches:
            logs = model.train_function(iter([batch]))
        float(logs["loss"])

    model.make_train_function()
    return run


def measure(name: str, rounds: int) -> list[Row]:
    """Train all variants of one setting in turn."""
    setting, pairs = SETTINGS[name], name != "characters"
    steps = {"tiny": 2, "base": 1, "characters": 20}[name]
    compiled = (False,) if name == "base" else (False, True)  # XLA loses there, and takes twice the memory
    runs = {(kind, xla): trainer(kind, setting, pairs, xla, steps) for xla in compiled for kind in KINDS}
    times = in_turn(runs, rounds)
    real = int((make_batch(setting, pairs)[2].numpy() > 0).sum()) * steps
    best = real / min(seconds for (kind, _), seconds in times.items() if kind == "KerasHub")
    return [
        {
            "model": kind,
            "XLA": "yes" if xla else "no",
            "target tokens/s": round(real / seconds),
            "to the best of KerasHub": round(real / seconds / best, 2),
        }
        for (kind, xla), seconds in times.items()
    ]


def main() -> None:
    """Measure, print and write."""
    options = arguments("Measure what training a Transformer costs.", only=",".join(SETTINGS))
    warnings.filterwarnings("ignore", message=".*does not support masking")
    limit = matrix_limit()
    measured = {name: partial(measure, name, 3 if options.quick else 7) for name in options.only.split(",")}
    tables = {f"training, {name}": run() for name, run in measured.items()}
    machine = {"matrix limit, GFLOP/s": round(limit), "most memory, GB": round(peak_memory(), 1)}
    report({**tables, "machine": [machine]}, options.json)


if __name__ == "__main__":
    main()
