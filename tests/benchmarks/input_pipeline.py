"""How fast batches are made, and with how much memory: target tokens a second, pads not counted.

    python tests/benchmarks/input_pipeline.py [--pairs 200000] [--tokens 500000]

The pairs are random words in files of a temporary directory. Each way of reading is measured on one epoch,
or on the first batches of it that hold this many tokens.
"""

import argparse
import pathlib
import tempfile
import time
from collections.abc import Iterable, Iterator

import numpy as np
import psutil

from keras_seq2seq.data import ParallelText, Records, write_records
from keras_seq2seq.text import SentencePiece, Tokenizer, Words


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


def measure(name: str, corpus: ParallelText | Records, tokens: int, *tokenizers: Tokenizer) -> None:
    """Print tokens a second, and how much resident memory grew meanwhile."""
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


def main() -> None:
    """Measure text and records, each with two kinds of tokenizer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=200_000)
    parser.add_argument("--tokens", type=int, default=500_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        base = pathlib.Path(directory)
        source = write(base / "source", lines(options.pairs, 1))
        text = ParallelText(source, write(base / "target", lines(options.pairs, 2)))
        some = list(lines(20_000, 1))
        for tokenizer in (SentencePiece.train(some, vocabulary_size=8000), Words.train(some)):
            kind = type(tokenizer).__name__
            measure(f"text, {kind}", text, options.tokens, tokenizer)
            write_records(base / kind, text, tokenizer)
            measure(f"records of ids, {kind}", Records(base / kind, tokenizer), options.tokens)


if __name__ == "__main__":
    main()
