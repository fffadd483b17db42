"""The contract of every tokenizer, the special ids, and how a tokenizer is kept on disk."""

import functools
import hashlib
import json
import os
import reprlib
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import tensorflow as tf

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3

_CARD = "tokenizer.json"


class Tokenizer:
    """Text to ids and back, in eager mode and in any graph.

    The ids 0 to 3 are the control ids pad, unk, bos and eos. Text never gives pad, bos or eos,
    whatever it spells, and pad, bos and eos never show up as text.

    A kind of tokenizer is a subclass with the four hooks `_encode`, `_decode`, `_files` and
    `_from_files`, the property `vocabulary_size`, and `trackables` if its graph uses resources.
    """

    @property
    def vocabulary_size(self) -> int:
        """Number of ids, the control ids among them."""
        raise NotImplementedError

    @property
    def trackables(self) -> list[Any]:
        """What a `tf.Module` must hold for its export to work: tables and the like, often nothing."""
        return []

    @functools.cached_property
    def fingerprint(self) -> str:
        """A hash of the kind and of all that `save` would write: equal for tokenizers that do the same."""
        digest = hashlib.blake2b(type(self).__name__.encode(), digest_size=16)
        for name, content in sorted(self._files().items()):
            digest.update(b"\0%s %d " % (name.encode(), len(content)) + content)
        return digest.hexdigest()

    def tokenize(self, strings: Any) -> Any:
        """Turn text into ids, without BOS and EOS.

        Args:
            strings: string tensor `[B]`, or a list of `str` or `bytes`. A scalar is taken as well.
                Invalid UTF-8 counts as U+FFFD.

        Returns:
            `tf.RaggedTensor` int32 `[B, None]`; `[L]` for a scalar. Empty text is an empty row.

        Raises:
            TypeError: if `strings` holds no text.
            ValueError: if it has more than one axis.
        """
        strings = _string_tensor(strings)
        if strings.shape.rank == 0:
            return self.tokenize(strings[tf.newaxis])[0]
        if strings.shape.rank != 1:
            raise ValueError(f"strings must be a scalar or have shape [B], got shape {strings.shape}.")
        return self._encode_eagerly(strings) if tf.executing_eagerly() else self._encode(strings)

    def detokenize(self, ids: Any) -> Any:
        """Turn ids into text: those before the first EOS, less pad, bos and ids outside the vocabulary.

        Args:
            ids: integers `[..., L]`, dense, ragged or nested lists.

        Returns:
            Valid UTF-8, string tensor `[...]`.

        Raises:
            ValueError: if `ids` are no integers, or have no axis.
        """
        ids = _id_tensor(ids)
        static, shape = ids.shape[:-1], tf.shape(ids)
        rows = tf.reshape(ids, [tf.reduce_prod(shape[:-1]), shape[-1]])
        text = self._decode_eagerly(rows) if tf.executing_eagerly() else self._decode_rows(rows)
        return tf.ensure_shape(tf.reshape(text, shape[:-1]), static)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write the tokenizer into `directory`, which is made if need be.

        Every file is written aside and renamed into place, `tokenizer.json` last.
        """
        os.makedirs(directory, exist_ok=True)
        for name, content in self._files().items():
            _replace(os.path.join(directory, name), content)
        card = json.dumps({"kind": type(self).__name__, "format": 1}, indent=2) + "\n"
        _replace(os.path.join(directory, _CARD), card.encode())

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Self:
        """Read a tokenizer of this kind from `directory`; raises what `text.load` raises."""
        tokenizer = load(directory)
        if not isinstance(tokenizer, cls):
            raise ValueError(
                f"{os.fspath(directory)!r} holds a {type(tokenizer).__name__}, not a {cls.__name__}."
            )
        return tokenizer

    def _encode(self, strings: Any) -> Any:
        """Strings `[B]` to ragged int32 `[B, None]`, in a graph."""
        raise NotImplementedError

    def _decode(self, ids: Any) -> Any:
        """Ragged int32 `[B, None]` (unk and text pieces only) to strings `[B]`, in a graph."""
        raise NotImplementedError

    def _files(self) -> dict[str, bytes]:
        """Give the files that hold this tokenizer: name to content."""
        raise NotImplementedError

    @classmethod
    def _from_files(cls, directory: str) -> Self:
        """Build a tokenizer from the files in `directory`."""
        raise NotImplementedError

    def _decode_rows(self, ids: Any) -> Any:
        ended = tf.cumsum(tf.cast(ids == EOS_ID, tf.int32), axis=1) > 0  # [B, L]
        is_text = (ids == UNK_ID) | ((ids > EOS_ID) & (ids < self.vocabulary_size))
        return self._decode(tf.ragged.boolean_mask(ids, is_text & ~ended))

    # Concrete functions: a tf.function would count the tracings of all tokenizers together and warn.

    @functools.cached_property
    def _encode_eagerly(self) -> Any:
        function = tf.function(self._encode, autograph=False)
        return function.get_concrete_function(tf.TensorSpec([None], tf.string))

    @functools.cached_property
    def _decode_eagerly(self) -> Any:
        function = tf.function(self._decode_rows, autograph=False)
        return function.get_concrete_function(tf.TensorSpec([None, None], tf.int32))


def load(directory: str | os.PathLike[str]) -> Tokenizer:
    """Read the tokenizer that `save` wrote into `directory`, of whatever kind it is.

    Raises:
        FileNotFoundError: if there is none.
        ValueError: if a file is damaged, or the kind is unknown.
    """
    path = os.path.join(directory, _CARD)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"{os.fspath(directory)!r} holds no tokenizer: {_CARD} is missing.")
    try:
        with open(path, encoding="utf-8") as file:
            kind = json.load(file)["kind"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path!r} does not describe a tokenizer.") from error
    kinds = {cls.__name__: cls for cls in _subclasses(Tokenizer)}
    if not isinstance(kind, str) or kind not in kinds:
        raise ValueError(f"{path!r} names the tokenizer kind {kind!r}, known are {sorted(kinds)}.")
    try:
        return kinds[kind]._from_files(os.fspath(directory))
    except FileNotFoundError as error:
        raise ValueError(f"{os.fspath(directory)!r} is damaged: {error.filename!r} is missing.") from error


def _subclasses(cls: type[Tokenizer]) -> Iterator[type[Tokenizer]]:
    for child in cls.__subclasses__():
        yield child
        yield from _subclasses(child)


def _replace(path: str, content: bytes) -> None:
    """Write `content` to `path` in such a way that `path` is the old file or the new one, never a part."""
    aside = f"{path}.{os.getpid()}.tmp"
    try:
        with open(aside, "wb") as file:
            file.write(content)
        os.replace(aside, path)
    except BaseException:
        if os.path.exists(aside):
            os.remove(aside)
        raise


def _string_tensor(strings: Any) -> Any:
    """Make a string tensor; Python text goes through bytes objects, because arrays of text drop NULs."""
    if isinstance(strings, np.ndarray) and strings.ndim <= 1:
        strings = strings.tolist()
    if isinstance(strings, (str, bytes)):
        return tf.constant(utf8(strings))
    if isinstance(strings, (list, tuple)) and all(isinstance(text, (str, bytes)) for text in strings):
        return tf.constant(np.array([utf8(text) for text in strings], dtype=object), tf.string)
    if isinstance(strings, tf.RaggedTensor):
        return strings
    try:
        return tf.convert_to_tensor(strings, tf.string)
    except (TypeError, ValueError) as error:
        raise TypeError(f"strings must be text, got {reprlib.repr(strings)}.") from error


def utf8(text: str | bytes) -> bytes:
    """Encode text; a lone surrogate becomes U+FFFD. Bytes are left as they are."""
    if isinstance(text, bytes):
        return text
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode("utf-8")


def _id_tensor(ids: Any) -> Any:
    """Make a dense int32 tensor `[..., L]` of a tensor, an array or nested lists, with pads at the end."""
    given = ids
    try:
        if isinstance(ids, (list, tuple)):
            ids = tf.ragged.constant(_nested(ids), dtype=tf.int32)
        ids = ids.to_tensor(PAD_ID) if isinstance(ids, tf.RaggedTensor) else tf.convert_to_tensor(ids)
    except (TypeError, ValueError) as error:
        raise ValueError(f"ids must be integers, got {reprlib.repr(given)}.") from error
    if not ids.dtype.is_integer:
        raise ValueError(f"ids must be integers, got {ids.dtype.name}.")
    if ids.shape.rank == 0:
        raise ValueError(f"ids must have at least one axis, got {reprlib.repr(given)}.")
    if ids.dtype.max > tf.int32.max:  # what no int32 holds must not wrap around to an id
        ids = tf.where(tf.cast(tf.cast(ids, tf.int32), ids.dtype) == ids, ids, PAD_ID)
    return tf.cast(ids, tf.int32)


def _nested(ids: Any) -> Any:
    """Give nested lists of numbers for nested lists of numbers, arrays and tensors."""
    if isinstance(ids, (list, tuple)):
        return [_nested(part) for part in ids]
    if isinstance(ids, tf.RaggedTensor):
        return ids.to_list()
    return ids if isinstance(ids, (int, float)) else np.asarray(ids).tolist()
