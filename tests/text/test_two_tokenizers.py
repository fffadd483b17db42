"""Two vocabularies in one export: each keeps to its own, however the graph is cut into functions."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_seq2seq.text import SentencePiece

TEXTS = ["one two three", "two", ""]
LOAD = """
import sys, tensorflow as tf, tensorflow_text
module = tf.saved_model.load(sys.argv[1])
for name in ("first", "second", "nested", "crossed"):
    for text in getattr(module, name)(tf.constant(sys.argv[2:])).numpy():
        print(text.decode())
"""


class Pair(tf.Module):
    def __init__(self, one: SentencePiece, other: SentencePiece):
        super().__init__()
        self.one, self.other = one, other
        spec = [tf.TensorSpec([None], tf.string)]
        # Through ids, so that an answer from the wrong vocabulary shows.
        self.first = tf.function(lambda x: one.detokenize(one.tokenize(x)), spec, autograph=False)
        self.second = tf.function(lambda x: other.detokenize(other.tokenize(x)), spec, autograph=False)
        self.nested = tf.function(lambda x: self.second(self.first(x)), spec, autograph=False)
        self.crossed = tf.function(lambda x: other.detokenize(one.tokenize(x)), spec, autograph=False)


def answers(module: Any) -> list[str]:
    return [
        text.decode()
        for name in ("first", "second", "nested", "crossed")
        for text in getattr(module, name)(tf.constant(TEXTS)).numpy()
    ]


def test_each_tokenizer_keeps_its_vocabulary_in_an_export(tmp_path: Path) -> None:
    lines = ["one two three four", "four three two one", "one one two two"]
    one = SentencePiece.train(lines, vocabulary_size=20)
    other = SentencePiece.train([line[::-1] + " xyz" for line in lines], vocabulary_size=24)
    module = Pair(one, other)
    expected = answers(module)
    assert expected[:3] == TEXTS
    tf.saved_model.save(module, str(tmp_path))
    assert answers(tf.saved_model.load(str(tmp_path))) == expected  # beside the module that it came from
    command = [sys.executable, "-c", LOAD, str(tmp_path), *TEXTS]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert answer.split("\n")[:-1] == expected
