"""Every kind of tokenizer in one export: found again in a process that knows nothing of the library."""

import subprocess
import sys
from typing import Any

import tensorflow as tf
from tokenizer_kinds import LINES, MAKE

from keras_seq2seq import text
from keras_seq2seq.serving.graph_ops import custom_ops, refused_ops
from keras_seq2seq.text import Tokenizer

TEXTS: list[str | bytes] = [
    *LINES,
    "",
    "  two  spaces ",
    "<s> [UNK] </s>",
    "unseen 😀Ω",
    "a\0b\x97\u2028\r\nc",
    b"ab\xffc",
    "字" * 300,
]
# All others need operations of core TensorFlow alone.
CUSTOM_OPS = [
    "FastWordpieceTokenizeWithOffsets",
    "SentencepieceDetokenizeOp",
    "SentencepieceOp",
    "SentencepieceTokenizeOp",
]
ROUTES = ("one", "nested", "crossed")
LOADER = """
import sys, tensorflow as tf, tensorflow_text
assert not any(name.startswith(("keras_seq2seq", "keras_nlp", "keras_hub")) for name in sys.modules)
module = tf.saved_model.load(sys.argv[1])
texts = tf.constant(eval(sys.stdin.read()))
for name in sys.argv[2:]:
    print([text.decode() for text in getattr(module, name)(texts).numpy()])
"""


class Routes(tf.Module):
    """Text through ids to text, through two tokenizers of each kind."""

    def __init__(self, pairs: dict[str, tuple[Tokenizer, Tokenizer]]):
        super().__init__()
        self.resources = [tokenizer.trackables for pair in pairs.values() for tokenizer in pair]
        for kind, (one, other) in pairs.items():
            self.add(f"{kind}_one", one, one)
            self.add(f"{kind}_crossed", one, other)
            self.add(f"{kind}_nested", other, other, getattr(self, f"{kind}_one"))

    def add(self, name: str, one: Tokenizer, other: Tokenizer, first: Any = tf.identity) -> None:
        def route(strings: Any) -> Any:
            return other.detokenize(one.tokenize(first(strings)))

        setattr(self, name, tf.function(route, [tf.TensorSpec([None], tf.string)], autograph=False))


def test_each_kind_new_and_reloaded_runs_without_the_library(tmp_path):
    pairs = {}
    for kind, make in MAKE.items():
        make(LINES).save(tmp_path / kind)
        pairs[kind] = text.load(tmp_path / kind), make([*LINES[::-1], "other words 123"])
    module = Routes(pairs)
    names = [f"{kind}_{route}" for kind in pairs for route in ROUTES]
    texts = [t if isinstance(t, bytes) else t.encode() for t in TEXTS]
    expected = [[s.decode() for s in getattr(module, name)(tf.constant(texts)).numpy()] for name in names]
    tf.saved_model.save(module, str(tmp_path / "export"))
    assert not refused_ops(str(tmp_path / "export"))
    assert not list((tmp_path / "export" / "assets").iterdir())
    assert custom_ops(str(tmp_path / "export")) == CUSTOM_OPS
    for kind in MAKE:
        for path in (tmp_path / kind).iterdir():
            path.unlink()
    (tmp_path / "export").rename(tmp_path / "moved")
    answer = subprocess.run(
        [sys.executable, "-c", LOADER, str(tmp_path / "moved"), *names],
        input=repr(texts),
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.split("\n")[:-1] == list(map(str, expected))
    # The routes are what the tokenizers say in Python,.
    for kind, (one, _) in pairs.items():
        found = one.detokenize(one.tokenize(texts)).numpy()
        assert [s.decode() for s in found] == expected[names.index(f"{kind}_one")]
