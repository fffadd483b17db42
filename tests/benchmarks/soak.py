r"""Whether an export stands a crowd: `python tests/benchmarks/soak.py BASE [--requests 10000] [--threads 8]`.

Many threads send batches of 1 to 8 varied questions to every signature of the newest version in BASE, or of
the SavedModel that BASE is: words, other scripts, and strings that are meant to do harm. What each question
must be answered was asked before, of that question alone. It prints what went wrong, how long answers took,
and how the memory of the process grew after a warm-up of the same kind; the status is 1 if there was an
error, a wrong answer or a growth of 50 MB. It knows nothing of the library: any export of text will do.

What glibc keeps of freed memory counts as growth. A server should set MALLOC_ARENA_MAX or use another malloc
if that matters; `--trim` gives all of it back before each look, which shows what is really held.
"""

import argparse
import ctypes
import itertools
import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import psutil
import tensorflow as tf
import tensorflow_text  # noqa: F401

LARGEST = 8  # questions in a request
LIMIT = 50.0  # MB
LOOKS = 10  # at the memory, evenly spread
WORDS = [
    "I",
    "you",
    "he",
    "she",
    "it",
    "we",
    "they",
    "a",
    "an",
    "the",
    "is",
    "was",
    "are",
    "of",
    "to",
    "in",
    "on",
    "with",
    "and",
    "or",
    "not",
    "but",
    "what",
    "where",
    "how",
    "who",
    "time",
    "day",
    "house",
    "water",
    "book",
    "school",
    "friend",
    "mother",
    "train",
    "city",
    "Tom",
    "Mary",
    "speak",
    "like",
    "want",
    "go",
    "see",
    "know",
    "think",
    "3",
    "25",
    "1999",
    ",",
    ".",
    "?",
    "!",
    "你好",
    "我们",
    "住在",
    "附近",
    "学校",
    "Привет",
    "мир",
    "как",
    "дела",
    "مرحبا",
    "بالعالم",
    "שלום",
    "नमस्ते",
    "สวัสดี",
    "안녕하세요",
    "こんにちは",
    "café",
    "naïve",
    "Straße",
    "😀",
    "👨\u200d👩\u200d👧",
    "☕",
    "Zażółć",
    "é",
    "ﬁ",
    "½",
    "\u200b",
    "﷽",
]
HOSTILE: list[bytes] = [
    b"", b" ", b"\x00", b"a\x00b", b"\x00" * 1000, b"\xff", b"\xff\xfe", b"ab\xffc", b"\xc3", b"\xe4\xbd",
    b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80" * 300, b"\x1b[2J\x07", b"\r\n\t\x0b\x0c",
    b"%s%n{}${x}\\", b"</s>", b"<s> </s> <pad> <unk>", b"[PAD] [UNK] [START] [END]", b"<0x00><0xFF>",
    b"\xe2\x96\x81" * 50, "\u2028".encode(), "a\u2028b\u2029c\u0085".encode(), "\u202eabc\u2066".encode(),
    "\ufeffa\ufffd\ufffe\uffff".encode(), ("a" + "\u0301" * 500).encode(), "\U0010ffff\ue000".encode(),
    b"x" * 100_000, b"the sea " * 12_500, "\U0001f600".encode() * 25_000, "你".encode() * 33_333,
    b"\xff" * 100_000, b"\x00" * 100_000, b" " * 100_000, b"a " + b"\n" * 99_998,
]  # fmt: skip


class Question(NamedTuple):
    """One row of a request."""

    signature: str
    inputs: tuple[bytes | int, ...]  # in the order of the signature's input names


class Answer(NamedTuple):
    """One row of a response: its texts, which are valid UTF-8, and its numbers."""

    texts: tuple[str, ...]
    numbers: tuple[float, ...]

    def same(self, other: "Answer") -> bool:
        """Say whether it is the same but for rounding."""
        return self.texts == other.texts and np.allclose(self.numbers, other.numbers, rtol=1e-4, atol=1e-3)


@dataclass
class Findings:
    """What came of the requests of all threads."""

    answered: int = 0  # requests
    errors: Counter[str] = field(default_factory=Counter)
    swapped: int = 0  # answers that belong to another question of the same request
    different: list[tuple[Question, Answer, Answer]] = field(default_factory=list)  # with what was expected
    seconds: list[float] = field(default_factory=list)  # of each request
    memory: list[float] = field(
        default_factory=list
    )  # MB, at the end of the warm-up and at each look after it
    held: list[float] = field(
        default_factory=list
    )  # the same with what malloc keeps given back, if asked for

    @property
    def growth(self) -> float:
        """Return the most that was taken after the warm-up, MB."""
        return max(self.memory) - self.memory[0] if self.memory else 0.0

    def row(self) -> dict[str, Any]:
        """Return the figures."""
        times = np.percentile([1e3 * each for each in self.seconds] or [0.0], [50, 95, 99])
        held = {"held": [round(each) for each in self.held]} if self.held else {}
        return {
            "requests": self.answered,
            "errors": dict(self.errors),
            "swapped answers": self.swapped,
            "different answers": len(self.different),
            "p50/p95/p99, ms": times.round(1).tolist(),
            "memory, MB": [round(each) for each in self.memory],
            **held,
            "growth, MB": round(self.growth, 1),
        }


class Export:
    """A SavedModel whose signatures take and give vectors."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._loaded = tf.saved_model.load(os.fspath(path))
        self.signatures: dict[str, Any] = dict(self._loaded.signatures)
        self.inputs: dict[str, dict[str, Any]] = {
            name: signature.structured_input_signature[1] for name, signature in self.signatures.items()
        }

    def ask(self, questions: Sequence[Question]) -> list[Answer]:
        """Answer questions of one signature in one batch."""
        signature = questions[0].signature
        columns = zip(*(each.inputs for each in questions), strict=True)
        given = {
            name: tf.constant(column, spec.dtype)
            for (name, spec), column in zip(self.inputs[signature].items(), columns, strict=True)
        }
        outputs = [value.numpy() for _, value in sorted(self.signatures[signature](**given).items())]
        return [_answer([value[row] for value in outputs]) for row in range(len(questions))]


def _answer(values: list[Any]) -> Answer:
    parts = [part for value in values for part in np.atleast_1d(value).tolist()]
    texts = tuple(part.decode("utf-8") for part in parts if isinstance(part, bytes))
    return Answer(texts, tuple(part for part in parts if not isinstance(part, bytes)))


def varied_text(rng: np.random.Generator) -> bytes:
    """Return some words, seldom many."""
    count = int(rng.integers(1, 12)) if rng.random() < 0.9 else int(rng.integers(12, 60))
    return " ".join(rng.choice(WORDS, count).tolist()).encode()


def make_questions(export: Export, count: int, rng: np.random.Generator) -> dict[str, list[Question]]:
    """Return at least `count` different questions, by signature; hostile texts come first.

    In a small pool each hostile text goes to one signature, in a large one to all.
    """
    names = list(export.inputs)
    places = [
        (text, names[(i + k) % len(names)])
        for k in range(min(max(count // 300, 1), len(names)))
        for i, text in enumerate(HOSTILE)
    ]
    varied = max(count - len(places), 4 * len(names))
    places += [(varied_text(rng), names[i % len(names)]) for i in range(varied)]
    made: dict[str, list[Question]] = {name: [] for name in names}
    for text, name in places:
        values = (_value(key, spec, text, rng) for key, spec in export.inputs[name].items())
        made[name].append(Question(name, tuple(values)))
    return made


def _value(name: str, spec: Any, text: bytes, rng: np.random.Generator) -> bytes | int:
    """Return what one input of a question is; half of a pair may be harmless, and half not."""
    if spec.dtype == tf.int64:
        return int(rng.integers(-(2**63), 2**63 - 1))
    if name in ("text", "source"):
        return text
    return HOSTILE[rng.integers(len(HOSTILE))] if text in HOSTILE else varied_text(rng)


def make_requests(questions: dict[str, list[Question]], rng: np.random.Generator) -> Iterator[list[Question]]:
    """Yield batches of 1 to 8 questions for ever; one of ten has a hostile question in it."""
    names = list(questions)
    while True:
        pool = questions[names[rng.integers(len(names))]]
        hostile = sum(any(value in HOSTILE for value in each.inputs) for each in pool)
        rows = rng.integers(hostile, len(pool), size=rng.integers(1, LARGEST + 1))
        if hostile and rng.random() < 0.1:
            rows[rng.integers(len(rows))] = rng.integers(hostile)
        yield [pool[i] for i in rows]


def soak(
    path: str | os.PathLike[str], requests: int, threads: int, questions: int = 0, trim: bool = False
) -> Findings:
    """Send requests, after a fifth as many and at least 50 to warm up; see the top of this file."""
    export, rng, findings = Export(path), np.random.default_rng(0), Findings()
    pool = make_questions(export, questions or max(requests // 5, 100), rng)
    expected = {each: export.ask([each])[0] for some in pool.values() for each in some}
    stream = make_requests(pool, rng)
    _send(export, itertools.islice(stream, max(requests // 5, 50)), expected, threads, Findings())
    _look(findings, trim)
    for part in range(LOOKS):
        count = requests * (part + 1) // LOOKS - requests * part // LOOKS
        _send(export, itertools.islice(stream, count), expected, threads, findings)
        _look(findings, trim)
    return findings


def _send(
    export: Export,
    requests: Iterator[list[Question]],
    expected: dict[Question, Answer],
    threads: int,
    findings: Findings,
) -> None:
    """Send all requests from several threads, and wait for the last answer."""
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                request = next(requests, None)
            if request is None:
                return
            start, answers, error = time.perf_counter(), [], ""
            try:
                answers = export.ask(request)
            except Exception as raised:
                error = f"{type(raised).__name__}: {' '.join(str(raised).split()):.300}"
            seconds = time.perf_counter() - start
            with lock:
                findings.seconds.append(seconds)
                _compare(request, answers, error, expected, findings)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def _compare(
    request: list[Question],
    answers: list[Answer],
    error: str,
    expected: dict[Question, Answer],
    findings: Findings,
) -> None:
    if error:
        findings.errors[error] += 1
        return
    findings.answered += 1
    for question, answer in zip(request, answers, strict=True):
        if answer.same(expected[question]):
            continue
        if any(answer.same(expected[other]) for other in request):
            findings.swapped += 1
        else:
            findings.different.append((question, answer, expected[question]))


def _look(findings: Findings, trim: bool) -> None:
    findings.memory.append(_megabytes())
    if trim:
        ctypes.CDLL(None).malloc_trim(0)
        findings.held.append(_megabytes())


def _megabytes() -> float:
    return psutil.Process().memory_info().rss / 1e6


def newest(base: Path) -> Path:
    """Return the SavedModel at `base`, or the highest version in it."""
    if (base / "saved_model.pb").is_file():
        return base
    versions = [entry for entry in base.iterdir() if entry.name.isdecimal()] if base.is_dir() else []
    if not versions:
        raise SystemExit(f"{str(base)!r} holds no SavedModel and no version of one.")
    return max(versions, key=lambda entry: int(entry.name))


def main() -> int:
    """Soak, print, and say whether all was well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("base", type=Path, help="a directory of versions, or one SavedModel")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--questions", type=int, default=0, help="default: a fifth of the requests")
    parser.add_argument("--trim", action="store_true", help="also show what malloc does not just keep")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    found = soak(newest(given.base), given.requests, given.threads, given.questions, given.trim)
    if given.json:
        print(json.dumps(found.row()))
    else:
        for name, value in found.row().items():
            print(f"{name:20}", value)
        for question, answer, expected in found.different[:10]:
            print(f"{question!s:.200}\n  {answer!s:.300}\n  expected {expected!s:.300}")
    return int(bool(found.errors or found.swapped or found.different or found.growth >= LIMIT))


if __name__ == "__main__":
    sys.exit(main())
