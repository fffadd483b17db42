"""What translating costs: `python tests/benchmarks/decoding.py [--json FILE] [--quick]`.

The tiny Transformer of Multi30k with random weights and 10,000 words translates sentences of 20 words to 30
tokens each: greedily and with a beam of 5, 32 sentences at a time and one; in Python and through an export,
each with and without XLA. Where `ctranslate2` is installed, it does the same with weights of its own. All
variants of a table alternate, and the median of all rounds is shown. No test runs this.
"""

import importlib.util
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import numpy as np
import tensorflow as tf
from report import Row, arguments, in_turn, matrix_limit, peak_memory, report

import keras_seq2seq as ks

VOCABULARY, WORDS, NEW = 10_000, 20, 30
BUCKETS = ks.serving.XLABuckets(batch_sizes=(1, 32), lengths=(24,))
STRATEGIES: dict[str, Any] = {"greedy": ks.search.Greedy(), "beam 5": ks.search.Beam(5)}


def sentences(count: int) -> list[str]:
    """Draw sentences."""
    ids = np.random.default_rng(0).integers(0, VOCABULARY - 4, (count, WORDS))
    return [" ".join(f"w{i}" for i in row) for row in ids]


def translators() -> dict[tuple[str, bool], ks.Translator]:
    """Make one model, and a translator for each search, with and without XLA."""
    words = ks.text.Words.build([f"w{i}" for i in range(VOCABULARY - 4)])
    model = ks.models.transformer_seq2seq(VOCABULARY, size="tiny", placement="post", dropout=0.0)
    limits: dict[str, Any] = {"min_length": NEW, "max_length": NEW}
    return {
        (name, xla): ks.Translator(model, words, strategy=strategy, jit_compile=xla, **limits)
        for name, strategy in STRATEGIES.items()
        for xla in (False, True)
    }


def exported(translator: ks.Translator, base: Path, xla: bool) -> Callable[[list[str]], Any]:
    """Export, load, and return a function of sentences."""
    path = translator.export(base, xla=BUCKETS if xla else False, samples=[""])
    loaded = tf.saved_model.load(path)
    function = loaded.signatures["serving_default"]

    def run(texts: list[str], held: Any = loaded) -> Any:
        return function(text=tf.constant(texts))["translation"].numpy()

    return run


def ctranslate2(beam: int, workers: int, folder: Path) -> Callable[[list[str]], Any]:
    """Return CTranslate2's search with a model of the same size and random weights."""
    from peers import ctranslate2_tiny

    translator = ctranslate2_tiny(folder, VOCABULARY, workers)
    options = {"beam_size": beam, "max_decoding_length": NEW, "min_decoding_length": NEW}

    def run(texts: list[str]) -> Any:
        size = -(-len(texts) // workers)
        return translator.translate_batch([text.split() for text in texts], max_batch_size=size, **options)

    return run


def measure(rounds: int, folder: Path) -> dict[str, list[Row]]:
    """Translate 32 sentences at a time, and one."""
    made = translators()
    ways: dict[str, dict[str, Callable[[list[str]], Any]]] = {name: {} for name in STRATEGIES}
    for (name, xla), translator in made.items():
        how = "XLA" if xla else "graph"
        ways[name][f"Python, {how}"] = translator
        ways[name][f"export, {how}"] = exported(translator, folder / f"{name}-{how}", xla)
        if not xla and importlib.util.find_spec("ctranslate2") is not None:
            for workers, how in ((1, "two threads"), (2, "two workers")):
                place, width = folder / f"{name}-{workers}", translator.strategy.width
                ways[name][f"CTranslate2, {how}"] = ctranslate2(width, workers, place)
    tables: dict[str, list[Row]] = {}
    for batch in (32, 1):
        texts = sentences(batch)
        for name, variants in ways.items():
            runs = {way: _bound(run, texts) for way, run in variants.items()}
            times = in_turn(runs, rounds)
            tables[f"{name}, {batch} at a time"] = [
                {"way": way, "tokens/s": round(batch * NEW / seconds), "ms": round(1e3 * seconds, 1)}
                for way, seconds in times.items()
            ]
    return tables


def _bound(run: Callable[[list[str]], Any], texts: list[str]) -> Callable[[], Any]:
    return lambda: run(texts)


def main() -> None:
    """Measure, print and write."""
    options = arguments("Measure what translating costs.")
    limit = matrix_limit()
    with tempfile.TemporaryDirectory() as folder:
        tables = measure(3 if options.quick else 11, Path(folder))
    machine = {"matrix limit, GFLOP/s": round(limit), "most memory, GB": round(peak_memory(), 1)}
    report({**tables, "machine": [machine]}, options.json)


if __name__ == "__main__":
    main()
