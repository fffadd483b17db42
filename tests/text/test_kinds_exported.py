"""Every kind of tokenizer in one export: run by TensorFlow's C interface, which knows nothing of Python."""

import shutil
from functools import partial
from typing import Any

import c_loader
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


class Routes(tf.Module):
    """Text through ids to text, through two tokenizers of each kind."""

    def __init__(self, pairs: dict[str, tuple[Tokenizer, Tokenizer]]):
        super().__init__()
        self.resources = [tokenizer.trackables for pair in pairs.values() for tokenizer in pair]
        for kind, pair in pairs.items():
            spec = [tf.TensorSpec([None], tf.string, "text")]
            setattr(self, kind, tf.function(partial(routes, *pair), spec, autograph=False))


def routes(one: Tokenizer, other: Tokenizer, strings: Any) -> dict[str, Any]:
    return {
        "one": one.detokenize(one.tokenize(strings)),
        "other": other.detokenize(other.tokenize(strings)),
        "crossed": other.detokenize(one.tokenize(strings)),
    }


def test_each_kind_new_and_reloaded_runs_without_the_library(tmp_path):
    pairs = {}
    for kind, make in MAKE.items():
        make(LINES).save(tmp_path / kind)
        pairs[kind] = text.load(tmp_path / kind), make([*LINES[::-1], "other words 123"])
    texts = [t if isinstance(t, bytes) else t.encode() for t in TEXTS]
    expected = {kind: routes(*pair, tf.constant(texts)) for kind, pair in pairs.items()}
    path = tmp_path / "export"
    module = Routes(pairs)
    tf.saved_model.save(module, str(path), signatures={kind: getattr(module, kind) for kind in MAKE})
    assert not refused_ops(str(path))
    assert not list((path / "assets").iterdir())
    assert custom_ops(str(path)) == CUSTOM_OPS
    for kind in MAKE:
        shutil.rmtree(tmp_path / kind)
    moved = path.rename(tmp_path / "moved")
    answers = c_loader.run_signatures(moved, [(kind, {"text": texts}) for kind in MAKE])
    for kind, answer in zip(MAKE, answers, strict=True):
        for route, strings in expected[kind].items():
            assert answer[route] == [string.decode() for string in strings.numpy()], (kind, route)
