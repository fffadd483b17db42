"""Tokenizers on disk and inside exports."""

import io
import json
import shutil
import subprocess
import sys

import pytest
import sentencepiece
import tensorflow as tf

from keras_seq2seq import text
from keras_seq2seq.text import SentencePiece, Tokenizer

LINES = ["a small corpus of words", "words of a corpus, small", "何か 日本語"] * 3
SENTENCES = ["a corpus", "", "日本語 words", "<s> </s>", "unseen 😀", "a\0b", "x  y "]


@pytest.fixture(scope="module")
def tokenizer() -> SentencePiece:
    return SentencePiece.train(LINES, vocabulary_size=1200)


def test_saved_and_loaded_it_is_the_same(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "new" / "dir")
    tokenizer.save(tmp_path / "new" / "dir")  # over an old one
    assert sorted(p.name for p in (tmp_path / "new" / "dir").iterdir()) == [
        "sentencepiece.model",
        "tokenizer.json",
    ]
    for loaded in (text.load(tmp_path / "new" / "dir"), SentencePiece.load(str(tmp_path / "new" / "dir"))):
        assert isinstance(loaded, SentencePiece)
        assert loaded.vocabulary_size == tokenizer.vocabulary_size
        assert loaded.tokenize(SENTENCES).to_list() == tokenizer.tokenize(SENTENCES).to_list()


def test_a_failed_save_leaves_the_old_tokenizer(tokenizer, tmp_path, monkeypatch):
    tokenizer.save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    other = SentencePiece.train(["other words"], vocabulary_size=20)

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="no space left"):
        other.save(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_is_no_tokenizer_is_refused(tokenizer, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere' holds no tokenizer: tokenizer.json is missing"):
        text.load(tmp_path / "nowhere")
    tokenizer.save(tmp_path)
    (tmp_path / "sentencepiece.model").write_bytes(b"not a model")
    with pytest.raises(ValueError, match=r"sentencepiece.model' is damaged"):
        text.load(tmp_path)
    for content, message in (
        ("{", "does not describe"),
        ("[]", "does not describe"),
        ('{"kind": "Runes"}', "'Runes'"),
        ('{"kind": ["Runes"]}', r"\['Runes'\]"),
        ('{"kind": "Words"}', "is damaged: .*words.json' is missing"),
        ("[" * 100_000, "does not describe"),
    ):
        (tmp_path / "tokenizer.json").write_text(content)
        with pytest.raises(ValueError, match=message):
            text.load(tmp_path)


def test_a_kind_of_the_users_is_loaded_by_its_name(tmp_path):
    class Spells(Tokenizer):
        def _files(self):
            return {"spells.txt": b"abra"}

        @classmethod
        def _from_files(cls, directory):
            return cls()

    Spells().save(tmp_path)
    assert json.loads((tmp_path / "tokenizer.json").read_text())["kind"] == "Spells"
    assert isinstance(text.load(tmp_path), Spells)
    with pytest.raises(ValueError, match="holds a Spells, not a SentencePiece"):
        SentencePiece.load(tmp_path)


def test_a_model_with_other_control_ids_is_refused():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_writer=model,
        vocab_size=40,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    with pytest.raises(ValueError, match=r"expected \(0, 1, 2, 3\)"):
        SentencePiece(model.getvalue())


class Echo(tf.Module):
    """Text to ids to text."""

    def __init__(self, tokenizer):
        super().__init__()
        self.resources = tokenizer.trackables

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def echo(strings):
            ids = tokenizer.tokenize(strings)
            return ids.to_tensor(), tokenizer.detokenize(ids)

        self.echo = echo


LOADER = """
import sys, tensorflow as tf, tensorflow_text
assert not any(name.startswith("keras_seq2seq") for name in sys.modules)
loaded = tf.saved_model.load(sys.argv[1])
sentences = [eval(line) for line in sys.stdin]
ids, strings = loaded.echo(tf.constant(sentences))
print(ids.numpy().tolist())
print(strings.numpy().tolist())
"""


def test_an_export_holds_all_it_needs(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "tokenizer")
    reloaded = text.load(tmp_path / "tokenizer")
    module = Echo(reloaded)
    expected = module.echo(tf.constant(SENTENCES))
    tf.saved_model.save(module, str(tmp_path / "export"))
    shutil.rmtree(tmp_path / "tokenizer")
    (tmp_path / "export").rename(tmp_path / "moved")
    result = subprocess.run(
        [sys.executable, "-c", LOADER, str(tmp_path / "moved")],
        input="\n".join(map(repr, SENTENCES)),
        capture_output=True,
        text=True,
        check=True,
    )
    ids, strings = result.stdout.splitlines()
    assert ids == str(expected[0].numpy().tolist())
    assert strings == str(expected[1].numpy().tolist())
    assert [string.decode() for string in expected[1].numpy()] == SENTENCES
    assert not list((tmp_path / "moved" / "assets").iterdir())
