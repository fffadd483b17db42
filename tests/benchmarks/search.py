"""What the search costs: `python tests/benchmarks/search.py [--json FILE] [--quick]`.

Three tables: the choice of the best tokens among the logits; a step of the search by batch size; and what
rows cost that have finished before the others. Variants alternate, and the median of all rounds is shown, so
that another process on the machine hits all of them alike. No test runs this.

Legend: B sources, V vocabulary.
"""

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import numpy as np
import tensorflow as tf
from keras import ops
from report import Row, arguments, in_turn, report

from keras_seq2seq.models import transformer_seq2seq
from keras_seq2seq.search import Beam, Greedy, search
from keras_seq2seq.search.top_k import top_k

BOS, EOS = 2, 3


def milliseconds(variants: Mapping[Any, Callable[[], Any]], rounds: int) -> dict[Any, float]:
    """Run all variants in turn, and return each one's median."""
    return {name: round(1e3 * seconds, 3) for name, seconds in in_turn(variants, rounds).items()}


def choice_of_tokens(rounds: int, quick: bool) -> list[Row]:
    """Compare ways to find the best tokens of 160 rows: 32 sources with a beam of 5."""

    def smallest_place(x: tf.Tensor) -> tf.Tensor:
        size = x.shape[-1]
        best = ops.max(x, axis=-1, keepdims=True)
        return ops.min(ops.where(x >= best, ops.arange(size, dtype="int32"), size), axis=-1)

    ways: dict[str, Callable[[tf.Tensor], Any]] = {
        "ops.top_k, 10": lambda x: ops.top_k(x, 10),
        "blocks, 10": lambda x: top_k(x, 10),
        "ops.argmax": lambda x: ops.argmax(x, axis=-1),
        "smallest place": smallest_place,
        "blocks, 1": lambda x: top_k(x, 1),
    }
    rows = []
    for vocabulary in (4000, 32000) if quick else (4000, 10000, 32000):
        logits = tf.constant(np.random.default_rng(0).normal(size=(160, vocabulary)), tf.float32)
        for xla in (False, True):
            signature = [tf.TensorSpec([160 if xla else None, vocabulary])]
            compiled = {
                name: tf.function(way, signature, autograph=False, jit_compile=xla)
                for name, way in ways.items()
            }
            runs = {name: partial(_run, function, logits) for name, function in compiled.items()}
            times = milliseconds(runs, rounds)
            rows.append({"V": vocabulary, "mode": "XLA" if xla else "graph", **times})
    return rows


def _run(function: Callable[..., Any], *given: tf.Tensor) -> None:
    """Call, and wait for what comes."""
    for part in tf.nest.flatten(function(*given)):
        part.numpy()


class Decoder:
    """A Transformer of the size "tiny" that never ends by itself, and its compiled searches."""

    def __init__(self, vocabulary: int) -> None:
        self.model = transformer_seq2seq(vocabulary, size="tiny", dropout=0.0)
        self._compiled: dict[Any, Any] = {}

    def steps(
        self, strategy: Any, limits: np.ndarray, xla: bool = False, compact: bool = False
    ) -> Callable[[], None]:
        """Return a function that generates `limits[b]` tokens for row b, at most 32."""
        shape = (len(limits) if xla else None,)
        key = strategy, xla, compact, shape
        if key not in self._compiled:

            def run(source: tf.Tensor, limit: tf.Tensor) -> tf.Tensor:
                options = {"max_length": 32, "min_length": 32, "row_limit": limit, "compact": compact}
                return search(self.model, {"source": source}, strategy, **options).scores

            signature = [tf.TensorSpec([*shape, 20], tf.int32), tf.TensorSpec(shape, tf.int32)]
            function = tf.function(run, signature, autograph=False, jit_compile=xla)
            self._compiled[key] = function.get_concrete_function()
        function = self._compiled[key]
        source = np.random.default_rng(1).integers(EOS + 1, 1000, (len(limits), 20))
        given = tf.constant(source, tf.int32), tf.constant(limits, tf.int32)
        return partial(_run, function, *given)


STRATEGIES = {"greedy": Greedy(), "beam 5": Beam(5)}


def steps(rounds: int, quick: bool) -> list[Row]:
    """Time one step of 32 by the number of sources in a batch."""
    decoder, rows = Decoder(8000), []
    for name, strategy in STRATEGIES.items():
        for xla in (False, True):
            sizes = (1, 32) if quick or xla else (1, 8, 16, 32, 64)
            runs = {f"B={b}": decoder.steps(strategy, np.full(b, 32), xla) for b in sizes}
            times = milliseconds(runs, rounds)
            row = {size: round(times[size] / 32, 2) for size in runs}
            rows.append({"search": name, "mode": "XLA" if xla else "graph", **row})
    return rows


def finished_rows(rounds: int, quick: bool) -> list[Row]:
    """Time 32 sources of unlike lengths, with and without leaving out those that are done."""
    decoder, rows = Decoder(8000), []
    for name, strategy in STRATEGIES.items():
        cases = {
            "all of 32 tokens": np.full(32, 32),
            "of 17 to 32": 17 + np.arange(32) // 2,
            "of 1 to 32": 1 + np.arange(32),
            "one of 32, others of 8": np.where(np.arange(32) < 1, 32, 8),
            "all of 8": np.full(32, 8),
        }
        runs = {
            (case, compact): decoder.steps(strategy, limits, compact=compact)
            for case, limits in cases.items()
            for compact in (False, True)
        }
        times = milliseconds(runs, rounds)
        for compact in (False, True):
            row = {case: times[case, compact] for case in cases}
            rows.append({"search": name, "done": "left out" if compact else "carried on", **row})
    return rows


TABLES = {
    "choice of tokens, ms for 160 rows": choice_of_tokens,
    "a step, ms": steps,
    "finished rows, ms for a batch": finished_rows,
}


def main() -> None:
    """Measure, print and write."""
    options = arguments("Measure what the search costs.")
    rounds = 3 if options.quick else 11
    report({title: measure(rounds, options.quick) for title, measure in TABLES.items()}, options.json)


if __name__ == "__main__":
    main()
