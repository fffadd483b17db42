"""How fast batches are made, against how fast training takes them: target tokens a second, pads not counted.

    python tests/benchmarks/input_pipeline.py [--pairs 200000] [--tokens 500000]

The pairs are random words in files of a temporary directory. Each way of reading is measured on one epoch,
or on the first batches of it that hold this many tokens. Then the tiny Transformer is trained on some batches
that are in memory already. Run it on as many cores as training is to have (`taskset -c 0,1 python ...`).
"""

import argparse
import functools
import pathlib
import tempfile
import time
from collections.abc import Iterable, Iterator

import keras
import numpy as np
import psutil
import tensorflow as tf

from keras_seq2seq.data import ParallelText, Records, write_records
from keras_seq2seq.models import transformer_seq2seq
from keras_seq2seq.text import SentencePiece, Tokenizer, Words
from keras_seq2seq.training import SmoothedCrossentropy


def lines(count: int, seed: int) -> Iterator[str]:
    """Make sentences of 4 to 28 words, whose words are as unequal in frequency as those of a language."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlu"))
    words = np.array(["".join(rng.choice(letters, rng.integers(2, 9))) for _ in range(20_000)])
    for _ in range(count):
        ranks = rng.pareto(0.8, rng.integers(4, 29)) * 10
        yield " ".join(words[np.minimum(ranks, len(words) - 1).astype(int)])


def write(path: pathlib.Path, content: Iterable[str]) -> pathlib.Path:
    """Write lines to a file."""
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in content)
    return path


def measure(name: str, corpus: ParallelText | Records, tokens: int, *tokenizers: Tokenizer) -> float:
    """Print and give tokens a second; print how much resident memory grew meanwhile."""
    process = psutil.Process()
    before = process.memory_info().rss
    batches = corpus.batches(
        *tokenizers, tokens_per_batch=4096, shuffle_buffer=10_000, seed=1, count=False, fixed_shapes=True
    )
    seen, start = 0, 0.0
    for number, (_, labels, _) in enumerate(batches):
        if number == 20:  # warm
            start, seen = time.perf_counter(), 0
        seen += int(np.count_nonzero(labels.numpy()))
        if number > 20 and seen >= tokens:
            break
    seconds = time.perf_counter() - start
    growth = (process.memory_info().rss - before) / 1e6
    print(f"{name:32} {seen / seconds / 1000:8.1f} k tokens/s   memory +{growth:.0f} MB", flush=True)
    return seen / seconds


def measure_training(text: ParallelText, tokenizer: Tokenizer) -> float:
    """Train the tiny Transformer, print and give tokens a second from the second step on."""
    # One width, so that one step is compiled.
    batches = text.batches(
        tokenizer, tokens_per_batch=4096, max_buckets=1, fixed_shapes=True, count=False, shuffle_buffer=10_000
    )
    some = list(batches.take(6))
    tokens = sum(int(np.count_nonzero(labels)) for _, labels, _ in some[2:])
    model = transformer_seq2seq(tokenizer.vocabulary_size, size="tiny")
    model.compile(keras.optimizers.Adam(1e-3), loss=SmoothedCrossentropy(0.1))
    ends: list[float] = []
    clock = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: ends.append(time.perf_counter())
    )
    parts = [tf.data.Dataset.from_tensors(batch) for batch in some]
    model.fit(functools.reduce(tf.data.Dataset.concatenate, parts), verbose=0, callbacks=[clock])
    seconds = ends[-1] - ends[1]
    print(f"{'training, tiny Transformer':32} {tokens / seconds / 1000:8.1f} k tokens/s", flush=True)
    return tokens / seconds


def main() -> None:
    """Measure text and records, each with two kinds of tokenizer, and training with one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=200_000)
    parser.add_argument("--tokens", type=int, default=500_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        base = pathlib.Path(directory)
        source = write(base / "source", lines(options.pairs, 1))
        text = ParallelText(source, write(base / "target", lines(options.pairs, 2)))
        some = list(lines(20_000, 1))
        pieces = SentencePiece.train(some, vocabulary_size=8000)
        made = {}
        for tokenizer in (pieces, Words.train(some)):
            kind = type(tokenizer).__name__
            made[f"text, {kind}"] = measure(f"text, {kind}", text, options.tokens, tokenizer)
            write_records(base / kind, text, tokenizer)
            name = f"records of ids, {kind}"
            made[name] = measure(name, Records(base / kind, tokenizer), options.tokens)
        taken = measure_training(text, pieces)
        slowest = min(made, key=made.__getitem__)
        print(f"The slowest way, {slowest}, makes {made[slowest] / taken:.0f} times what training takes.")


if __name__ == "__main__":
    main()
