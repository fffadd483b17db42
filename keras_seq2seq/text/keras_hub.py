"""KerasHub's tokenizers behind our contract: their ids become ours, control tokens stay out of text."""

import base64
import os
from collections.abc import Iterable
from typing import Any, Self

import keras
import numpy as np
import tensorflow as tf

from keras_seq2seq.text.piece_model import PieceModel
from keras_seq2seq.text.tokenizer import UNK_ID, Tokenizer
from keras_seq2seq.text.vocabulary import FIRST_ID, UNKNOWN, from_json, to_json

_FILE = "keras_hub.json"


class KerasHub(Tokenizer):
    """A tokenizer of KerasHub (`keras_hub.tokenizers`, or that of one of its models) with our ids.

    It runs in every graph and every export, as KerasHub wrote it. Its ordinary ids become 4 and up, in
    their order; `original_ids` says which was which, to take over an embedding that was trained with it:
    `embedding[tokenizer.original_ids[4:]]`. Text that gives a control token of the original, such as
    "<|endoftext|>", or an id that it has not, gives unk here.

    What detokenizing does to spaces, case and unknown characters is up to the original. A byte 0 is
    lost in `ByteTokenizer` and `UnicodeCodepointTokenizer`, which take it for a pad. `BytePairTokenizer`
    remembers every word that it has met, so that the memory of a server grows with them.

    Args:
        tokenizer: a `SentencePieceTokenizer`, `WordPieceTokenizer`, `BytePairTokenizer`, `ByteTokenizer` or
            `UnicodeCodepointTokenizer`, or of a class derived from one.
        pad: the pad token of the original, if it has one that it does not name itself.
        bos: its token at the beginning, likewise.
        eos: its token at the end, likewise.
        control_tokens: further tokens that text never gives and never shows, such as "[MASK]".

    Raises:
        ValueError: if `tokenizer` is of another kind, has no vocabulary, does
            what the batches do (pads, cuts, adds BOS or EOS), gives no integers, or lacks a token.
    """

    def __init__(
        self,
        tokenizer: Any,
        *,
        pad: str | None = None,
        bos: str | None = None,
        eos: str | None = None,
        control_tokens: Iterable[str] = (),
    ):
        self._size = _checked_size(tokenizer)
        self._tokenizer = tokenizer
        # KerasHub makes this one's model eagerly, which does not outlive the seeding of TensorFlow.
        self._run = PieceModel(tokenizer.proto) if hasattr(tokenizer, "proto") else tokenizer
        given, others = {"pad": pad, "bos": bos, "eos": eos}, list(control_tokens)
        self._arguments = {**given, "control_tokens": others}
        named = {name: _id(tokenizer, name, token) for name, token in given.items() if token is not None}
        found = _control_ids(tokenizer) | named
        further = {_id(tokenizer, "control_tokens", token) for token in others}
        ordinary = np.setdiff1d(np.arange(self._size), [*found.values(), *_special_ids(tokenizer), *further])
        if not len(ordinary):
            raise ValueError(f"tokenizer must have tokens besides control tokens, received {tokenizer!r}.")
        control = [found.get(name, -1) for name in ("pad", "unk", "bos", "eos")]
        self._original_ids = np.concatenate([control, ordinary]).astype(np.int32)  # [V]
        self._ours = np.full([self._size], UNK_ID, np.int32)
        self._ours[ordinary] = FIRST_ID + np.arange(len(ordinary))
        self._unknown = getattr(tokenizer, "oov_token", None)

    @property
    def vocabulary_size(self) -> int:
        """Number of ids, the control ids among them."""
        return len(self._original_ids)

    @property
    def original_ids(self) -> Any:
        """The id that each of our ids has in the original, int32 `[V]`; -1 for a control token it lacks."""
        return self._original_ids.copy()

    @property
    def trackables(self) -> list[Any]:
        """What an export must hold: the original, with its tables."""
        return [] if self._run is not self._tokenizer else [self._tokenizer]

    def __repr__(self) -> str:
        return f"KerasHub({type(self._tokenizer).__name__}, vocabulary_size={self.vocabulary_size})"

    def _encode(self, strings: Any) -> Any:
        valid = tf.strings.unicode_transcode(strings, "UTF-8", "UTF-8")
        # Some cannot do with a batch in which there is not one id.
        rows = self._run.tokenize(tf.concat([valid, ["a"]], axis=0))[:-1]
        ids = tf.cast(rows.flat_values, tf.int32)  # [N]
        known = (ids >= 0) & (ids < self._size)
        ours = tf.where(known, tf.gather(self._ours, tf.where(known, ids, 0)), UNK_ID)
        return tf.RaggedTensor.from_row_splits(ours, tf.cast(rows.row_splits, tf.int64), validate=False)

    def _decode(self, ids: Any) -> Any:
        original = ids.with_flat_values(tf.gather(self._original_ids, ids.flat_values))
        text = self._run.detokenize(tf.ragged.boolean_mask(original, original >= 0))
        text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")
        if self._unknown is not None:
            text = tf.strings.regex_replace(text, _quoted(self._unknown), UNKNOWN)
        return text

    def _files(self) -> dict[str, bytes]:
        tokenizer = keras.saving.serialize_keras_object(self._tokenizer)
        tokenizer["config"].pop("name", None)  # which tells how many there were before
        content = {
            "tokenizer": tokenizer,
            "vocabulary": _vocabulary(self._tokenizer),
            "arguments": self._arguments,
        }
        return {_FILE: to_json(content)}

    @classmethod
    def _from_files(cls, directory: str) -> Self:
        return from_json(os.path.join(directory, _FILE), cls._from_content)

    @classmethod
    def _from_content(cls, content: Any) -> Self:
        import keras_hub  # registers its classes

        tokenizer = keras.saving.deserialize_keras_object(content["tokenizer"])
        vocabulary = content["vocabulary"]
        if isinstance(tokenizer, keras_hub.tokenizers.SentencePieceTokenizer):
            tokenizer.set_proto(base64.b64decode(vocabulary))
        elif isinstance(tokenizer, keras_hub.tokenizers.WordPieceTokenizer):
            tokenizer.set_vocabulary(vocabulary)
        elif isinstance(tokenizer, keras_hub.tokenizers.BytePairTokenizer):
            tokenizer.set_vocabulary_and_merges(*vocabulary)
        return cls(tokenizer, **content["arguments"])


def _checked_size(tokenizer: Any) -> int:
    """Give the number of ids of the original, or say why it cannot be used."""
    from keras_hub import tokenizers as hub

    kinds = (
        hub.SentencePieceTokenizer,
        hub.WordPieceTokenizer,
        hub.BytePairTokenizer,
        hub.ByteTokenizer,
        hub.UnicodeCodepointTokenizer,
    )
    if not isinstance(tokenizer, kinds):
        names = ", ".join(kind.__name__ for kind in kinds)
        raise ValueError(f"tokenizer must be one of KerasHub's {names}, received {tokenizer!r}.")
    for name in ("sequence_length", "add_bos", "add_eos"):
        value = getattr(tokenizer, name, None)
        if value:
            raise ValueError(
                f"tokenizer must leave {name} unset, because batches see to it, received {name}={value}."
            )
    if not getattr(tokenizer, "split", True):
        raise ValueError("tokenizer must split text into words, received one with split=False.")
    if tokenizer.compute_dtype == "string":
        raise ValueError("tokenizer must give integers, received one with dtype='string'.")
    for name in ("input_encoding", "output_encoding"):
        encoding = getattr(tokenizer, name, "UTF-8")
        if encoding != "UTF-8":
            raise ValueError(f"tokenizer must use UTF-8, received one with {name}={encoding!r}.")
    size = tokenizer.vocabulary_size()  # raises a ValueError of its own if there is no vocabulary
    if size is None:
        raise ValueError(
            f"tokenizer must have a vocabulary_size, received {type(tokenizer).__name__} without."
        )
    if isinstance(tokenizer, hub.BytePairTokenizer):
        size = 1 + max(tokenizer.vocabulary.values())  # ids may have gaps
    return int(size)


def _id(tokenizer: Any, name: str, token: str) -> int:
    """Look a token up in the original."""
    try:
        number = int(tokenizer.token_to_id(token))
        if tokenizer.id_to_token(number) == token:  # not what it has for unknown tokens
            return number
    except (ValueError, TypeError, KeyError, NotImplementedError):
        pass
    raise ValueError(f"{name} must be of the vocabulary of {type(tokenizer).__name__}, received {token!r}.")


def _control_ids(tokenizer: Any) -> dict[str, int]:
    """Give those ids of pad, unk, bos and eos that the original names itself."""
    if hasattr(tokenizer, "proto"):
        import sentencepiece

        model = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.proto)
        found = {"pad": model.pad_id(), "unk": model.unk_id(), "bos": model.bos_id(), "eos": model.eos_id()}
        return {name: int(number) for name, number in found.items() if number >= 0}
    attributes = {"pad": "pad_token_id", "bos": "start_token_id", "eos": "end_token_id"}
    named = {name: getattr(tokenizer, attribute, None) for name, attribute in attributes.items()}
    if hasattr(tokenizer, "oov_token"):
        named["unk"] = tokenizer.token_to_id(tokenizer.oov_token)
    return {name: int(number) for name, number in named.items() if number is not None}


def _special_ids(tokenizer: Any) -> set[int]:
    """Give the ids of all that is no text in the original."""
    ids = set(tokenizer.special_token_ids)
    ids |= {tokenizer.token_to_id(token) for token in getattr(tokenizer, "unsplittable_tokens", None) or ()}
    ids |= {tokenizer.token_to_id(token) for token in tokenizer.get_config().get("special_tokens") or ()}
    if hasattr(tokenizer, "proto"):
        import sentencepiece

        model = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.proto)
        every = range(int(model.vocab_size()))
        ids |= {number for number in every if model.is_control(number) or model.is_unused(number)}
    return ids


def _vocabulary(tokenizer: Any) -> Any:
    """Give what the original keeps in files of its own, in a form that any token survives in JSON."""
    if hasattr(tokenizer, "proto"):
        return base64.b64encode(tokenizer.proto).decode()
    if hasattr(tokenizer, "merges"):
        return [tokenizer.vocabulary, tokenizer.merges]
    return list(tokenizer.vocabulary) if hasattr(tokenizer, "vocabulary") else None


def _quoted(text: str) -> str:
    """Write a text as a regular expression of RE2."""
    return "".join(f"\\x{{{ord(character):x}}}" for character in text)
