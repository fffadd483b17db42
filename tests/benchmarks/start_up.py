"""What the first time costs: `python tests/benchmarks/start_up.py [--json FILE] [--quick]`.

Importing, the first step of training, the first translation, and the first request to an export, with and
without its warm-up having been run; each in processes of their own, of which the median is shown. The model
is the tiny Transformer of Multi30k with random weights. No test runs this.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

VOCABULARY = 10_000
TEXT = " ".join(f"w{i}" for i in range(20))


def import_frameworks() -> dict[str, float]:
    """Time TensorFlow, Keras and what tokenizers need."""
    return {"": seconds(lambda: [__import__(name) for name in ("tensorflow", "keras", "tensorflow_text")])}


def import_library() -> dict[str, float]:
    """Time the library with all that it needs."""

    def run() -> None:
        import keras_seq2seq as ks

        for part in (ks.Translator, ks.models.Seq2Seq, ks.training.Checkpoints, ks.data.ParallelText):
            assert part.__module__.startswith("keras_seq2seq")

    return {"": seconds(run)}


def train(xla: bool) -> dict[str, float]:
    """Time the first step and the second."""
    import keras
    import numpy as np

    import keras_seq2seq as ks

    model = make_model()
    model.compile(keras.optimizers.Adam(), loss=ks.training.SmoothedCrossentropy(0.1), jit_compile=xla)
    ids = np.random.default_rng(0).integers(4, VOCABULARY, (200, 20)).astype("int32")
    batch = {"source": ids, "target": ids}, ids, np.full((200, 20), 1 / 4000, "float32")
    return first_and_next(lambda: model.train_on_batch(*batch))


def translate(xla: bool) -> dict[str, float]:
    """Time the first text and the second."""
    translator = make_translator(xla)
    return first_and_next(lambda: translator(TEXT))


def serve(path: str, warm: bool) -> dict[str, float]:
    """Time loading, and the first request and the next, after the warm-up or without."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401

    found = {}
    start = time.perf_counter()
    loaded = tf.saved_model.load(path)
    function = loaded.signatures["serving_default"]
    found["load"] = time.perf_counter() - start
    if warm:
        found["warm-up"] = seconds(lambda: replay(path, loaded.signatures))
    return {**found, **first_and_next(lambda: function(text=tf.constant([TEXT])))}


def replay(path: str, signatures: Any) -> None:
    """Run the requests of the warm-up, as TensorFlow Serving does."""
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2

    file = os.path.join(path, "assets.extra", "tf_serving_warmup_requests")
    for record in tf.data.TFRecordDataset(file).as_numpy_iterator():
        request = prediction_log_pb2.PredictionLog.FromString(record).predict_log.request
        inputs = {name: tf.constant(tf.make_ndarray(proto)) for name, proto in request.inputs.items()}
        signatures[request.model_spec.signature_name](**inputs)


def make_model() -> Any:
    """Build the model."""
    import keras_seq2seq as ks

    return ks.models.transformer_seq2seq(VOCABULARY, size="tiny", placement="post")


def make_translator(xla: bool = False) -> Any:
    """Build a translator with a beam of 5."""
    import keras_seq2seq as ks

    words = ks.text.Words.build([f"w{i}" for i in range(VOCABULARY - 4)])
    options: dict[str, Any] = {"min_length": 30, "max_length": 30, "jit_compile": xla}
    return ks.Translator(make_model(), words, strategy=ks.search.Beam(5), **options)


def export(folder: str) -> dict[str, str]:
    """Export with and without XLA, each with a warm-up for one text."""
    import keras_seq2seq as ks

    buckets = ks.serving.XLABuckets(batch_sizes=(1,), lengths=(24,))
    warmup = ks.serving.Warmup(batch_sizes=(1,), lengths=(21,), signatures=("serving_default",))
    translator = make_translator()
    return {
        name: translator.export(os.path.join(folder, name), xla=xla, warmup=warmup, samples=[""])
        for name, xla in (("graph", False), ("XLA", buckets))
    }


def seconds(run: Callable[[], Any]) -> float:
    """Time one call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def first_and_next(run: Callable[[], Any]) -> dict[str, float]:
    """Time the first call, and the second."""
    return {"first": seconds(run), "next": seconds(run)}


def alone(call: str, rounds: int) -> dict[str, float]:
    """Return the medians of what `call` finds in processes of its own."""
    found = []
    for _ in range(rounds):
        code = f"import json, start_up; print(json.dumps(start_up.{call}))"
        folder = os.path.dirname(os.path.abspath(__file__))
        done = subprocess.run([sys.executable, "-c", code], cwd=folder, stdout=subprocess.PIPE, check=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
    return {name: statistics.median(each[name] for each in found) for name in found[0]}


def main() -> None:
    """Measure, print and write."""
    from report import arguments, report

    options = arguments("Measure what the first time costs.")
    with tempfile.TemporaryDirectory() as folder:
        paths = export(folder)
        calls = {"import TensorFlow, Keras, TensorFlow Text": "import_frameworks()"}
        calls["import keras_seq2seq and all of these"] = "import_library()"
        for how, xla in (("graph", False), ("XLA", True)):
            calls[f"training, {how}"] = f"train({xla})"
            calls[f"translation, {how}"] = f"translate({xla})"
            for warm in (False, True):
                name = f"export, {how}, {'after its warm-up' if warm else 'without warm-up'}"
                calls[name] = f"serve({paths[how]!r}, {warm})"
        rows = []
        for name, call in calls.items():
            found = alone(call, 1 if options.quick else 5)
            rows.append({"what": name, **{key or "s": f"{value:.3f}" for key, value in found.items()}})
    report({"the first time, in seconds": rows}, options.json)


if __name__ == "__main__":
    main()
