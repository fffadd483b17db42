"""SentencePiece: pieces of words, learnt from raw text, run by TensorFlow Text's op."""

import io
import logging
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import sentencepiece
import tensorflow as tf
from sentencepiece import sentencepiece_model_pb2

from keras_seq2seq.text.integers import integer
from keras_seq2seq.text.piece_model import PieceModel
from keras_seq2seq.text.sampling import SubwordSampling
from keras_seq2seq.text.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Tokenizer
from keras_seq2seq.text.vocabulary import texts

_LOGGER = logging.getLogger(__name__)
_FILE = "sentencepiece.model"
_RESERVED = "\u2585"  # the trainer passes over lines with its own mark of unknown characters
_SLICE = 1000  # characters; the trainer passes over lines of more than 4192 bytes
_BYTE_FALLBACK_FROM = 1024  # the 256 bytes may take a quarter of the vocabulary
# The trainer drops what spells a control token from its text, so these have names that no text has.
_CONTROL = {"pad": PAD_ID, "unk": UNK_ID, "bos": BOS_ID, "eos": EOS_ID}
_CONTROL_OPTIONS: dict[str, Any] = {f"{name}_id": number for name, number in _CONTROL.items()} | {
    f"{name}_piece": f"\u27e6{name}\u27e7" for name in _CONTROL
}
# The one rule of our identity normalization: the mark that stands for a space inside the model.
_IDENTITY_RULE = "2581\t5F\n"

_MODEL_TYPES = ("unigram", "bpe")
_NORMALIZATIONS = ("identity", "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf")


class SentencePiece(Tokenizer):
    """Subword pieces of a SentencePiece model (unigram or BPE).

    With the default normalization and with byte fallback, `detokenize(tokenize(text))` is `text`
    itself, but for spaces at its very start, which are lost, and U+2581, which becomes "_".
    Without byte fallback a character that is not in the vocabulary becomes unk, shown as "\u2047".

    The model is part of every graph that the tokenizer is used in: an export needs no assets,
    nothing has to be tracked, and seeding TensorFlow leaves the tokenizer intact.

    Args:
        model: a serialized SentencePiece model with the ids pad 0, unk 1, bos 2 and eos 3.

    Raises:
        ValueError: if `model` is not such a model.

    Source: Kudo and Richardson 2018, https://aclanthology.org/D18-2012.

    Example:
        >>> lines = ["the sea", "the sea shore", "she sells sea shells"]
        >>> pieces = ks.text.SentencePiece.train(lines, vocabulary_size=19)
        >>> ids = pieces.tokenize(["sea shells"])
        >>> pieces.detokenize(ids).numpy().tolist()
        [b'sea shells']
    """

    def __init__(self, model: bytes):
        try:
            processor = sentencepiece.SentencePieceProcessor(model_proto=model)
            proto = sentencepiece_model_pb2.ModelProto.FromString(model)  # stricter than the processor
        except Exception as error:  # of the processor, or of protobuf
            raise ValueError("model is not a serialized SentencePiece model.") from error
        ids = processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id()
        if ids != (PAD_ID, UNK_ID, BOS_ID, EOS_ID):
            raise ValueError(f"model has the ids {ids} for pad, unk, bos and eos, expected (0, 1, 2, 3).")
        # A model that was cut off here would be taken for one with SentencePiece's usual normalization.
        if not proto.HasField("normalizer_spec"):
            raise ValueError("model has no normalization, expected a whole SentencePiece model.")
        self._model, self._processor = model, processor
        self._pieces = PieceModel(model)
        self._size = int(processor.vocab_size())

    @classmethod
    def train(
        cls,
        *lines: Iterable[str | bytes],
        vocabulary_size: int,
        model_type: str = "unigram",
        character_coverage: float | None = None,
        byte_fallback: bool | None = None,
        normalization: str = "identity",
        max_lines: int = 1_000_000,
    ) -> Self:
        """Learn a vocabulary from text.

        The lines are streamed. Of more than `max_lines`, that many are drawn with a fixed seed and
        kept in memory, so that memory depends on `max_lines` alone and the result on the lines alone.

        Args:
            *lines: one iterable of strings, or several for a joint vocabulary.
            vocabulary_size: the most ids that there may be. Little text gives fewer, with a note in the log.
            model_type: "unigram" or "bpe".
            character_coverage: share of the characters of the text that get a piece of their own; by
                default 0.9995 with byte fallback and 1.0 without.
            byte_fallback: spell other characters in bytes (256 ids) instead of unk; by default in
                vocabularies of at least 1024 ids.
            normalization: "identity" keeps the text; "nfkc", "nmt_nfkc", "nfkc_cf" and "nmt_nfkc_cf"
                are SentencePiece's and fold characters and runs of spaces.
            max_lines: how many lines to learn from, at least 101.

        Raises:
            ValueError: if there is no text, `vocabulary_size` cannot hold its characters, or an
                argument is out of range. Errors of the iterables come through as they are.
        """
        for name, value, known in (
            ("model_type", model_type, _MODEL_TYPES),
            ("normalization", normalization, _NORMALIZATIONS),
        ):
            if value not in known:
                raise ValueError(f"{name} must be one of {known}, got {value!r}.")
        vocabulary_size = _bounded("vocabulary_size", vocabulary_size, len(_CONTROL) + 1)
        max_lines = _bounded("max_lines", max_lines, 101)  # as the trainer has it
        if byte_fallback is None:
            byte_fallback = vocabulary_size >= _BYTE_FALLBACK_FROM
        if character_coverage is None:
            character_coverage = 0.9995 if byte_fallback else 1.0
        _check_coverage(character_coverage)
        options = {
            "vocab_size": vocabulary_size,
            "model_type": model_type,
            "character_coverage": character_coverage,
            "byte_fallback": byte_fallback,
            "input_sentence_size": max_lines,
        }
        tokenizer = cls(_train(texts(lines), normalization, options))
        if tokenizer.vocabulary_size < vocabulary_size:
            _LOGGER.warning(
                "The vocabulary has %d entries, fewer than vocabulary_size=%d: the text gives no more.",
                tokenizer.vocabulary_size,
                vocabulary_size,
            )
        return tokenizer

    @property
    def vocabulary_size(self) -> int:
        """Number of ids, the control ids among them."""
        return self._size

    def __repr__(self) -> str:
        return f"SentencePiece(vocabulary_size={self._size})"

    def sample(self, rows: Sequence[Sequence[int]], sampling: SubwordSampling, seed: int) -> list[list[int]]:
        """Draw other ids of the same text, for training; a row with unk in it stays as it is.

        Args:
            rows: ids without BOS and EOS, a list for each text.
            sampling: how to draw.
            seed: the same seed draws the same ids of the same rows.
        """
        known = [UNK_ID not in row for row in rows]
        texts = self._processor.decode([list(row) for row, ok in zip(rows, known, strict=True) if ok])
        drawn = iter(sampling.draw(self._processor, texts, seed))
        return [next(drawn) if ok else list(row) for row, ok in zip(rows, known, strict=True)]

    def _encode(self, strings: Any) -> Any:
        # SentencePiece would take each byte of a character that was cut for one U+FFFD, unlike the readers.
        return self._pieces.tokenize(tf.strings.unicode_transcode(strings, "UTF-8", "UTF-8"))

    def _decode(self, ids: Any) -> Any:
        # The pieces of a model that is damaged, or was made elsewhere, need not be UTF-8.
        return tf.strings.unicode_transcode(self._pieces.detokenize(ids), "UTF-8", "UTF-8")

    def _files(self) -> dict[str, bytes]:
        return {_FILE: self._model}

    @classmethod
    def _from_files(cls, directory: str) -> Self:
        path = os.path.join(directory, _FILE)
        try:
            with open(path, "rb") as file:
                return cls(file.read())
        except ValueError as error:
            raise ValueError(f"{path!r} is damaged: {error}") from error


def _bounded(name: str, value: Any, least: int) -> int:
    """Refuse what the trainer does not take for a count, or would take for no limit."""
    number = integer(name, value, least)
    if number >= 2**31:
        raise ValueError(f"{name} must be less than 2**31, got {value!r}.")
    return number


def _check_coverage(value: Any) -> None:
    if not isinstance(value, (int, float)) or not 0.98 <= value <= 1:
        raise ValueError(f"character_coverage must be from 0.98 to 1, got {value!r}.")


def _train(lines: Iterable[str], normalization: str, options: dict[str, Any]) -> bytes:
    """Run the trainer and give the serialized model; turn its complaints into sentences."""
    model = io.BytesIO()
    stream = _Slices(lines)
    with tempfile.TemporaryDirectory() as directory:
        if normalization == "identity":
            rule = os.path.join(directory, "rule.tsv")
            with open(rule, "w", encoding="utf-8") as file:
                file.write(_IDENTITY_RULE)
            options |= {"normalization_rule_tsv": rule, "remove_extra_whitespaces": False}
        else:
            options |= {"normalization_rule_name": normalization}
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(stream),
                model_writer=model,
                hard_vocab_limit=False,
                unk_surface="\u2047",  # without spaces around it, so that decoding is a fixed point
                minloglevel=2,
                **_CONTROL_OPTIONS,
                **options,
            )
        except RuntimeError as error:
            raise (stream.error or _explain(error, options, stream.empty)) from error
    return _without_paths(model.getvalue())


def _without_paths(model: bytes) -> bytes:
    """Drop the path of the rule file, so that the same text gives the same bytes."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    proto.normalizer_spec.normalization_rule_tsv = ""
    return proto.SerializeToString(deterministic=True)


class _Slices:
    """Lines cut to what the trainer takes, and a record of what went wrong while it read them."""

    def __init__(self, lines: Iterable[str]):
        self._lines = lines
        self.error: Exception | None = None
        self.empty = True

    def __iter__(self) -> Iterator[str]:
        try:
            for line in self._lines:
                text = line.replace(_RESERVED, " ")
                for start in range(0, len(text), _SLICE):
                    self.empty = False
                    yield text[start : start + _SLICE]
        except Exception as error:
            self.error = error
            raise


def _explain(error: RuntimeError, options: dict[str, Any], empty: bool) -> Exception:
    if empty:
        return ValueError("lines hold no text to learn a vocabulary from.")
    required = re.search(r"required_chars\. \d+ vs (\d+)", str(error))
    if required:
        return ValueError(
            f"vocabulary_size={options['vocab_size']} is too small: the control tokens and characters of "
            f"this text need {required[1]} with character_coverage={options['character_coverage']}"
            f" and byte_fallback={options['byte_fallback']}."
        )
    reason, given = str(error).splitlines()[0], dict(options)
    given.pop("normalization_rule_tsv", None)  # a path that is gone by now
    return ValueError(f"SentencePiece could not be trained with {given}: {reason}")
