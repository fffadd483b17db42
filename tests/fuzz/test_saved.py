"""Damaged directories of translators and tokenizers: a clear error, or exactly what was saved."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fuzz.strange import BYTES, DAMAGE, Damage, outcome
from hypothesis import strategies as st
from references import randomize
from tokenizer_kinds import LINES, MAKE

import keras_seq2seq as ks
from keras_seq2seq.serving.metadata import strategy_config


def translator() -> ks.Translator:
    """Return a small one with tokenizers of two kinds."""
    source, target = MAKE["sentence_piece"](LINES), MAKE["words"](LINES)
    model = ks.models.rnn_seq2seq(source.vocabulary_size, target.vocabulary_size, units=4, encoder_layers=1)
    randomize(model)
    return ks.Translator(model, source, target, ks.search.Beam(2, length_penalty=0.6), max_length=12)


def content(served: ks.Translator) -> list[Any]:
    """Return the parts that decide what a translator answers, but for strategy and settings."""
    tokenizers = served.source_tokenizer.fingerprint, served.target_tokenizer.fingerprint
    return [served.model.get_config(), [each.numpy().tolist() for each in served.model.weights], tokenizers]


def said(served: ks.Translator) -> dict[str, Any]:
    """Return strategy and settings as a card has them."""
    return json.loads(json.dumps({**strategy_config(served.strategy), **vars(served.settings)}))


def files_of(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


def test_a_damaged_translator_is_refused_or_the_same(fuzz, tmp_path):
    translator().save(tmp_path)
    whole, expected = files_of(tmp_path), content(ks.Translator.load(tmp_path))

    @fuzz(30, path=st.sampled_from(list(whole)), damage=DAMAGE | st.none())
    def check(path: Path, damage: Damage | None) -> None:
        if damage is None:
            path.unlink()
        else:
            path.write_bytes(damage(whole[path]))
        found, error = outcome(lambda: ks.Translator.load(tmp_path))
        card = (tmp_path / "translator.json").read_bytes() if not error else b""
        path.write_bytes(whole[path])
        if not error:
            assert content(found) == expected
            # People may edit the card, which has no checksum: what it says now is what counts.
            told = json.loads(card)
            assert told["strategy"].items() <= said(found).items()
            assert told["settings"].items() <= said(found).items()


@pytest.mark.parametrize("kind", [kind for kind in MAKE if kind != "bytes"])
def test_a_damaged_tokenizer_is_refused_or_a_tokenizer(fuzz, tmp_path, kind):
    """It has no checksum of its own; a translator that holds it has one."""
    MAKE[kind](LINES).save(tmp_path)
    whole = files_of(tmp_path)

    @fuzz(15, path=st.sampled_from(list(whole)), damage=DAMAGE, text=BYTES)
    def check(path: Path, damage: Damage, text: bytes) -> None:
        path.write_bytes(damage(whole[path]))
        found, error = outcome(lambda: ks.text.load(tmp_path))
        path.write_bytes(whole[path])
        if not error:
            ids = found.tokenize([text]).values.numpy()
            assert not len(ids) or 0 <= min(ids) <= max(ids) < found.vocabulary_size
            found.detokenize([range(found.vocabulary_size)]).numpy()[0].decode()


CARDS = ["translator.json", "source_tokenizer/tokenizer.json", "target_tokenizer/words.json"]


@pytest.mark.parametrize("name", CARDS)
def test_json_that_is_meant_to_break_its_reader_is_refused(tmp_path, name):
    translator().save(tmp_path)
    (path,) = (path for path in files_of(tmp_path) if str(path).endswith(name))
    for bomb in (
        "[" * 100_000,
        '{"a": ' * 100_000,
        "9" * 10_000,
        "1e999",
        "NaN",
        '"\\ud800"',
        "\ufeff{}",
        "\0",
    ):
        path.write_text(bomb, encoding="utf-8")
        _, error = outcome(lambda: ks.Translator.load(tmp_path))
        assert re.search(f"{path.name}' (is damaged|does not describe)", error)


def test_pieces_that_are_no_text_do_not_make_text_that_is_none():
    (model,) = MAKE["sentence_piece"](LINES)._files().values()
    broken = ks.text.SentencePiece(model.replace("他".encode(), b"\xe4\xbb\xff"))
    (found,) = broken.detokenize([range(4, broken.vocabulary_size)]).numpy()
    assert "\ufffd" in found.decode()


def test_a_model_that_only_c_plus_plus_can_read_is_refused():
    (model,) = MAKE["sentence_piece"](LINES)._files().values()
    with pytest.raises(ValueError, match="model is not a serialized SentencePiece model"):
        ks.text.SentencePiece(model + b"\xca\x80\x80\x80\x10\0")  # a field with too large a number
