"""Small models saved by this version, and what they answer; every later version must answer the same.

    python tests/saved_models.py

It writes tests/data/saved/<major.minor>/ once, before that version is released. The folder of a released
version is never written again: where `test_saved_models.py` fails on one, the code is at fault.
"""

import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf
from references import randomize
from tokenizer_kinds import LINES

import keras_seq2seq as ks

__all__ = ["ANSWERS", "EXPORT", "FOLDER", "RUN", "SAVED", "answer", "differences", "run_on"]

SAVED = Path(__file__).parent / "data" / "saved"
FOLDER = SAVED / ".".join(ks.__version__.split(".")[:2])
ANSWERS = "answers.jsonl"  # one question a line, with what came back
TOLERANCE = 1e-4  # of a score, for each token
LONGEST = 12  # tokens of an answer
TEXTS = ["the sea", "", "她住在", "the quick brown fox sells 25 shells by the shore", "s", "a lazy dog 😀"]
TARGETS = ["lazy dog", "sea", "the brown fox", "", "shells", "s"]
SEEDS = [5, -5, 2**50, 0, 1, 5]
MAX_BYTES = 3_000_000

Question = tuple[str, dict[str, Any]]  # a method and its arguments


def rnn_bahdanau() -> tuple[Any, list[Question]]:
    pieces = ks.text.SentencePiece.train(LINES, vocabulary_size=60)
    model = ks.models.rnn_seq2seq(
        pieces.vocabulary_size, units=8, encoder_layers=1, attention=ks.layers.BahdanauAttention(8)
    )
    beam = ks.search.Beam(3, n_best=2, length_penalty=0.6)
    return ks.Translator(model, pieces, strategy=beam, max_length=LONGEST, min_length=2), [
        ("translate", {"texts": TEXTS, "n_best": 2}),
        ("translate", {"texts": TEXTS[:1], "return_alignment": True}),
        ("score", {"sources": TEXTS, "targets": TARGETS}),
    ]


def rnn_luong() -> tuple[Any, list[Question]]:
    """Luong's attention with input feeding, and a tokenizer for each side."""
    words = ks.text.Words.train(LINES, split="punctuation", lowercase=True)
    model = ks.models.rnn_seq2seq(
        ks.text.Bytes().vocabulary_size,
        words.vocabulary_size,
        cell="gru",
        units=8,
        attention=ks.layers.LuongAttention("general"),
        input_feeding=True,
    )
    rules: dict[str, Any] = {"no_repeat_ngram": 2, "forbidden_tokens": ["dog"]}
    greedy = ks.search.Greedy()
    return ks.Translator(model, ks.text.Bytes(), words, greedy, max_length=LONGEST, **rules), [
        ("translate", {"texts": TEXTS}),
        ("sample", {"texts": TEXTS, "seeds": SEEDS}),
    ]


def transformer_rotary() -> tuple[Any, list[Question]]:
    """Pre-norm with grouped queries, gated units and a beam with a coverage penalty."""
    pieces = ks.text.WordPiece.train(LINES, vocabulary_size=80, lowercase=True)
    model = ks.models.transformer_seq2seq(
        pieces.vocabulary_size,
        num_layers=2,
        model_dim=16,
        feed_forward_dim=16,
        num_heads=4,
        num_key_value_heads=2,
        positions="rotary",
        placement="pre",
        normalization="rms",
        activation="swiglu",
        tie_embeddings=False,
    )
    beam = ks.search.Beam(3, n_best=3, penalty="gnmt", coverage_penalty=0.3, stop="bound")
    return ks.Translator(model, pieces, strategy=beam, max_length=LONGEST), [
        ("translate", {"texts": TEXTS, "n_best": 3}),
        ("translate", {"texts": TEXTS, "prefixes": TARGETS}),
        ("score", {"sources": TEXTS, "targets": TARGETS}),
    ]


def transformer_sinusoidal() -> tuple[Any, list[Question]]:
    """Post-norm, as in 2017, with samples."""
    letters = ks.text.Characters.train(LINES)
    model = ks.models.transformer_seq2seq(
        letters.vocabulary_size,
        num_layers=1,
        model_dim=16,
        feed_forward_dim=16,
        num_heads=2,
        positions="sinusoidal",
        placement="post",
        tie_embeddings=False,
    )
    sampling = ks.search.Sampling(2, temperature=0.7, top_p=0.9, seed=5)
    return ks.Translator(model, letters, strategy=sampling, max_length=LONGEST, min_length_factor=0.2), [
        ("translate", {"texts": TEXTS, "n_best": 2}),
        ("translate", {"texts": TEXTS[:3], "offset": 7}),
    ]


def language_model() -> tuple[Any, list[Question]]:
    pairs = ["t h", "th e", "s h", "Ġ s", "e l", "el l"]
    codes = [*range(33, 127), *range(161, 173), *range(174, 256), *range(256, 324)]  # GPT-2's names of bytes
    tokens = [*map(chr, codes), *(pair.replace(" ", "") for pair in pairs)]
    hub = keras_hub.tokenizers.BytePairTokenizer({token: i for i, token in enumerate(tokens)}, pairs)
    tokenizer = ks.text.KerasHub(hub)
    model = ks.models.transformer_lm(
        tokenizer.vocabulary_size,
        preset="gpt2",
        num_layers=1,
        model_dim=16,
        feed_forward_dim=16,
        num_heads=2,
        max_length=64,
        tie_embeddings=False,
    )
    return ks.Generator(model, tokenizer, ks.search.Beam(2), max_new_tokens=10, score_eos=True), [
        ("generate", {"texts": TEXTS}),
        ("sample", {"texts": TEXTS, "seeds": SEEDS}),
        ("score", {"texts": TARGETS}),
    ]


def encoder() -> tuple[Any, list[Question]]:
    """An encoder with a head of one's own, saved by Keras."""
    body = ks.models.transformer_encoder(
        30,
        num_layers=1,
        model_dim=16,
        feed_forward_dim=16,
        num_heads=2,
        positions="relative",
        activation="gelu",
    )
    model = keras.Model(body.inputs, keras.layers.Dense(5)(body.output))
    rows = np.random.default_rng(0).integers(4, 30, (2, 7)).tolist()
    return model, [("__call__", {"source": rows}), ("__call__", {"source": [rows[0][:3]]})]


MAKE: dict[str, Callable[[], tuple[Any, list[Question]]]] = {
    "rnn_bahdanau": rnn_bahdanau,
    "rnn_luong": rnn_luong,
    "transformer_rotary": transformer_rotary,
    "transformer_sinusoidal": transformer_sinusoidal,
    "language_model": language_model,
    "encoder": encoder,
}
# What their weights are noise of: more would make them chaotic, less would make them say all the same.
SCALES = {"rnn_bahdanau": 0.8, "language_model": 0.8}
EXPORTED, EXPORT = "transformer_sinusoidal", "exported"  # which of them, and where to
EXPORT_QUESTIONS: list[Question] = [
    ("serving_default", {"text": TEXTS}),
    ("translate_with_prefix", {"text": TEXTS, "prefix": TARGETS}),
    ("sample", {"text": TEXTS, "seed": SEEDS}),
    ("score", {"source": TEXTS, "target": TARGETS}),
]
RUN = "checkpoints"


def training_run() -> tuple[Any, Any]:
    """Return a compiled model with its batches, three an epoch; a checkpoint resumes in a copy of it."""
    random.seed(0)  # where Keras gets the seeds of layers from
    words = ks.text.Words.build(sorted({word for line in LINES for word in line.split()}))
    model = ks.models.transformer_seq2seq(
        words.vocabulary_size,
        num_layers=1,
        model_dim=8,
        feed_forward_dim=8,
        num_heads=2,
        dropout=0.1,
        share_embeddings=True,
    )
    rate = ks.training.WarmupInverseSqrt(0.01, warmup_steps=4)
    loss = ks.training.SmoothedCrossentropy(0.1)
    model.compile(keras.optimizers.Adam(rate), loss, weighted_metrics=[ks.training.TokenAccuracy()])
    text = ks.data.ParallelText.from_pairs([(line, line) for line in LINES[:3]])
    return model, text.batches(words, sentences_per_batch=1, seed=1)


def run_on(directory: Any, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Train up to the end of the first epoch; return the state in which the run began, and the last."""
    model, batches = training_run()
    states: list[dict[str, Any]] = []

    def note(logs: Any = None) -> None:
        kinds = {"weights": model.trainable_variables, "optimizer": model.optimizer.variables}
        norms = {kind: [float(np.linalg.norm(each.numpy())) for each in kinds[kind]] for kind in kinds}
        states.append({"step": int(model.optimizer.iterations.numpy()), **norms})

    checkpoints = ks.training.Checkpoints(directory, batches=batches, **options)
    noted = keras.callbacks.LambdaCallback(on_train_begin=note, on_train_end=note)
    model.fit(batches, epochs=1, verbose=0, callbacks=[checkpoints, noted])
    return states[0], states[1]


def plain(value: Any) -> Any:
    """Return an answer as JSON has it: named fields as a dictionary, without those that are None."""
    if hasattr(value, "_asdict"):
        return {name: plain(part) for name, part in value._asdict().items() if part is not None}
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, float):
        return round(value, 6)
    if hasattr(value, "shape"):
        return plain(np.asarray(value).tolist())
    return value


def answer(served: Any, method: str, arguments: dict[str, Any]) -> Any:
    """Ask a translator, a generator, a Keras model, or an export, whose methods are its signatures."""
    if isinstance(served, keras.Model):
        return plain(served({name: tf.constant(rows) for name, rows in arguments.items()}))
    if hasattr(served, "signatures"):
        function = served.signatures[method]
        specs = function.structured_input_signature[1]
        tensors = {name: tf.constant(given, specs[name].dtype) for name, given in arguments.items()}
        return plain(function(**tensors))
    return plain(getattr(served, method)(**arguments))


def differences(found: Any, kept: Any, tokens: int = 1, place: str = "") -> Iterator[str]:
    """Yield where an answer differs from the one that was kept; what was not kept may be new.

    Args:
        found: the answer.
        kept: the one on file.
        tokens: how many tokens a number is the sum of.
        place: of both in the whole answer.
    """
    if isinstance(kept, dict) and isinstance(found, dict):
        counts = kept.get("token_count", len(kept.get("tokens", "?" * LONGEST)))
        for name, part in kept.items():
            summed = max(np.max(counts), 1) if name == "score" else 1
            yield from differences(found.get(name), part, summed, f"{place}.{name}")
    elif isinstance(kept, list) and isinstance(found, list) and len(kept) == len(found):
        for number, (ours, theirs) in enumerate(zip(found, kept, strict=True)):
            yield from differences(ours, theirs, tokens, f"{place}[{number}]")
    elif isinstance(kept, float) and isinstance(found, float):
        if not abs(found - kept) <= TOLERANCE * tokens:
            yield f"{place}: {found} instead of {kept}"
    elif type(found) is not type(kept) or found != kept:
        yield f"{place}: {found!r:.200} instead of {kept!r:.200}"


def decisions(value: Any) -> Any:
    """Return an answer without its numbers, which is what must not hang by a hair."""
    if isinstance(value, dict):
        return {name: decisions(part) for name, part in value.items()}
    if isinstance(value, list):
        return [decisions(part) for part in value]
    return None if isinstance(value, float) else value


def says_much(answers: list[Any]) -> bool:
    """Say whether translations or completions vary, in themselves and with their texts."""
    best = [row[0]["tokens"] for row in answers if row[0]["tokens"]]
    finished = [row[0]["finished"] for row in answers if row[0]["tokens"]]
    varied = len(set(map(tuple, best))) > 3 and np.mean([len(set(tokens)) for tokens in best]) > 3
    return bool(varied) and any(finished)


def firm(name: str) -> tuple[Any, list[Question]]:
    """Make a model with weights whose decisions are not close, so that rounding on no machine turns them."""
    served, questions = MAKE[name]()
    model = served if isinstance(served, keras.Model) else served.model
    start = model.get_weights()
    for seed in range(500):
        model.set_weights(start)
        randomize(model, scale=SCALES.get(name, 0.4), seed=seed)
        if served is model or says_much(answer(served, *questions[0])):
            weights, noise = model.get_weights(), np.random.default_rng(seed)
            found = [decisions(answer(served, *each)) for each in questions]
            for _ in range(8):
                model.set_weights([w * (1 + 3e-4 * noise.standard_normal(w.shape)) for w in weights])
                if found != [decisions(answer(served, *each)) for each in questions]:
                    break
            else:
                model.set_weights(weights)
                return served, questions
    raise RuntimeError(f"no weights of {name} give answers that vary and are far from others.")


def write(folder: Path) -> Iterator[dict[str, Any]]:
    """Save everything, and yield the questions with their answers."""

    def asked(name: str, served: Any, questions: list[Question]) -> Iterator[dict[str, Any]]:
        for method, arguments in questions:
            found = answer(served, method, arguments)
            yield {"model": name, "method": method, "arguments": arguments, "answer": found}

    for name in MAKE:
        served, questions = firm(name)
        served.save(folder / (f"{name}.keras" if isinstance(served, keras.Model) else name))
        yield from asked(name, served, questions)
        if name == EXPORTED:
            path = served.export(folder / EXPORT, samples=TEXTS[:2])
            yield from asked(EXPORT, tf.saved_model.load(path), EXPORT_QUESTIONS)
    run_on(folder / RUN, every=2)  # is ahead of its last checkpoint by one batch
    before, after = run_on(folder / RUN, every=100)
    # What dropout draws in the step between them may change from version to version, and weights with it.
    yield {"model": RUN, "answer": {"before": plain(before), "after": {"step": after["step"]}}}


def main() -> None:
    """Write the folder of this version."""
    if FOLDER.exists():
        raise SystemExit(f"{FOLDER} exists; remove it, if no version that has it was released.")
    lines = [json.dumps(line) + "\n" for line in write(FOLDER)]
    (FOLDER / ANSWERS).write_text("".join(lines), encoding="utf-8")
    kinds = {json.loads(file.read_text())["kind"] for file in FOLDER.rglob("tokenizer.json")}
    missing = {name for name in ks.text.__all__ if hasattr(getattr(ks.text, name), "load")} - kinds
    if missing != {"Tokenizer"}:
        raise SystemExit(f"No model has a tokenizer of the kinds {', '.join(missing - {'Tokenizer'})}.")
    size = sum(file.stat().st_size for file in FOLDER.rglob("*") if file.is_file())
    print(f"{FOLDER}: {size / 1e6:.2f} MB")
    if size > MAX_BYTES:
        raise SystemExit(f"That is more than {MAX_BYTES / 1e6:g} MB, which everybody who clones would load.")


if __name__ == "__main__":
    main()
