"""Requests that TensorFlow Serving runs before a version takes traffic: no user waits for a first run.

They lie in `assets.extra/tf_serving_warmup_requests`, a TFRecord of `PredictionLog` messages.
"""

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from keras_seq2seq.serving.buckets import rising
from keras_seq2seq.serving.served import Served
from keras_seq2seq.text import EOS_ID, Tokenizer

__all__ = ["WARMUP_FILE", "Warmup", "check_warmup", "write_warmup"]

WARMUP_FILE = os.path.join("assets.extra", "tf_serving_warmup_requests")
_MOST = 1000  # records; with more of them TensorFlow Serving refuses the version
_UNITS = 512  # entries of the vocabulary that texts are made of


@dataclass(frozen=True)
class Warmup:
    """The requests of a warm-up: one for each signature, batch size and length.

    Args:
        batch_sizes: rising; texts in a request.
        lengths: rising; tokens of a text, the EOS of a source or the BOS of a prompt counted.
            Where the tokenizer cannot give exactly that many, texts have a few less.
        signatures: names; default: `serving_default`, `translate` or `generate`, and `sample`.

    Raises:
        ValueError: sizes that are not rising integers of at least 1, or signatures that are no names.
    """

    batch_sizes: tuple[int, ...] = (1, 8, 32)
    lengths: tuple[int, ...] = (8, 32)
    signatures: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("batch_sizes", "lengths"):
            object.__setattr__(self, name, rising(name, getattr(self, name)))
        names = self.signatures
        if names is None:
            return
        listed = isinstance(names, (tuple, list)) and all(isinstance(name, str) for name in names)
        if not listed or not names or len(set(names)) < len(names):
            raise ValueError(f"signatures must be different names, at least one, received {names!r}.")
        object.__setattr__(self, "signatures", tuple(names))


def check_warmup(warmup: Any) -> Warmup | None:
    """Return what `export(..., warmup=)` means, and make sure that it can be written.

    Raises:
        TypeError: another kind of thing.
        ImportError: `tensorflow-serving-api`, which has the messages, is not installed.
    """
    if not isinstance(warmup, (Warmup, bool)):
        raise TypeError(f"warmup must be True, False or Warmup, received {warmup!r}.")
    if warmup is False:
        return None
    _messages()
    return Warmup() if warmup is True else warmup


def write_warmup(warmup: Warmup, served: Served, signatures: dict[str, Any], path: str) -> None:
    """Write the requests into the SavedModel at `path`.

    Args:
        warmup: which requests.
        served: the translator or generator, whose tokenizers make the texts.
        signatures: name to concrete function.
        path: of the version.

    Raises:
        ValueError: a signature that the export does not have, or more than 1000 requests.
    """
    names = warmup.signatures
    if names is None:
        names = tuple(
            each for each in ("serving_default", "translate", "generate", "sample") if each in signatures
        )
    unknown = [name for name in names if name not in signatures]
    if unknown:
        raise ValueError(f"warmup names the signature {unknown[0]!r}, the export has {sorted(signatures)}.")
    count = len(names) * len(warmup.batch_sizes) * len(warmup.lengths)
    if count > _MOST:
        raise ValueError(f"warmup must ask for at most {_MOST} requests, received {count}.")
    with tf.io.TFRecordWriter(os.path.join(path, WARMUP_FILE)) as writer:
        for message in _requests(warmup, served, {name: signatures[name] for name in names}):
            writer.write(message.SerializeToString(deterministic=True))


def _requests(warmup: Warmup, served: Served, signatures: dict[str, Any]) -> Iterator[Any]:
    """Yield a `PredictionLog` for each signature, length and batch size, the smallest first."""
    predict_pb2, prediction_log_pb2 = _messages()
    tokenizers = [getattr(served, name) for name in served.SIDES.values()]
    sides = {"text": tokenizers[0], "source": tokenizers[0], "target": tokenizers[-1]}
    for length in warmup.lengths:
        # All different, as an export answers equal ones once.
        most = warmup.batch_sizes[-1]
        texts = {name: _texts(tokenizer, length, most) for name, tokenizer in sides.items()}
        texts["prefix"] = [""]
        for size, (name, function) in itertools.product(warmup.batch_sizes, signatures.items()):
            request = predict_pb2.PredictRequest()
            request.model_spec.signature_name = name
            for spec in function.structured_input_signature[0]:
                values: list[Any] = list(range(size))  # of seeds
                if spec.dtype == tf.string:
                    values = list(itertools.islice(itertools.cycle(texts[spec.name]), size))
                request.inputs[spec.name].CopyFrom(tf.make_tensor_proto(values, spec.dtype))
            log = prediction_log_pb2.PredictionLog()
            log.predict_log.request.CopyFrom(request)
            yield log


def _texts(tokenizer: Tokenizer, length: int, most: int) -> list[str]:
    """Make at most `most` texts of `length` tokens, one control token counted; one if there is but one."""
    units = _units(tokenizer)
    if length == 1 or not units:
        return [""]
    found = []
    for start in range(min(most, len(units))):
        # Words are joined by spaces, characters by nothing: whichever comes nearer.
        endless = itertools.cycle(units[start:] + units[:start])
        chosen = list(itertools.islice(endless, length - 1))
        candidates = [joint.join(chosen[:count]) for joint in (" ", "") for count in range(length)]
        counts = tokenizer.tokenize(candidates).row_lengths().numpy()
        counts = np.where(counts < length, counts, -1)
        found.append(candidates[int(np.argmax(counts))])
    return list(dict.fromkeys(found))


def _units(tokenizer: Tokenizer) -> list[str]:
    """Return texts that are one token each, from all over the vocabulary."""
    last = tokenizer.vocabulary_size - 1
    if last <= EOS_ID:
        return []
    ids = np.unique(np.linspace(EOS_ID + 1, last, _UNITS).astype(np.int32))
    texts = [text.decode() for text in tokenizer.detokenize(ids[:, np.newaxis]).numpy()]
    texts = [text for text in texts if text.strip() and "\ufffd" not in text]
    if not texts:
        return []
    counts = tokenizer.tokenize(texts).row_lengths().numpy()
    return [text for text, count in zip(texts, counts, strict=True) if count == 1]


def _messages() -> tuple[Any, Any]:
    """Return the modules with `PredictRequest` and `PredictionLog`."""
    try:
        from tensorflow_serving.apis import predict_pb2, prediction_log_pb2
    except ImportError as error:
        raise ImportError(
            "warmup needs the package tensorflow-serving-api: pip install 'keras_seq2seq[serving]'."
        ) from error
    return predict_pb2, prediction_log_pb2
