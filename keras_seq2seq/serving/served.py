"""What a translator and a generator have in common, so that one code saves, exports and verifies both."""

from collections.abc import Iterator, Mapping
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import keras

from keras_seq2seq.search.checks import check_strategy
from keras_seq2seq.serving.buckets import XLABuckets
from keras_seq2seq.text import Tokenizer

__all__ = [
    "Expected",
    "Functions",
    "Served",
    "check_n_best",
    "check_parts",
    "check_vocabulary",
    "require_tensorflow",
    "tokenizers",
]


class Expected(NamedTuple):
    """What one signature must answer to one request.

    Attributes:
        signature: its name.
        inputs: name to text, or to a seed.
        texts: the answer's texts.
        scores: the answer's numbers.
        length: how many tokens a score sums up, which its rounding errors grow with.
    """

    signature: str
    inputs: Mapping[str, str | int]
    texts: list[str]
    scores: list[float]
    length: int


class Functions(Protocol):
    """The functions from text to text that an export contains."""

    def signatures(self) -> dict[str, Any]:
        """Return the concrete function of each signature, by name."""

    def expected(self, text: str) -> Iterator[Expected]:
        """Yield what each signature must answer about `text`, as the object in memory says."""


class Served(Protocol):
    """A model with tokenizers, strategy and settings: what can be kept on disk and exported.

    Attributes:
        KIND: the name of it on disk.
        SIDES: what each tokenizer reads or writes, to the argument and attribute that holds it.
    """

    KIND: ClassVar[str]
    SIDES: ClassVar[dict[str, str]]
    model: Any
    strategy: Any
    settings: Any

    def with_settings(self, settings: Any) -> Self:
        """Return the same with other settings."""

    def with_strategy(self, strategy: Any) -> Self:
        """Return the same with another search."""

    def functions(self, n_best: int, xla: XLABuckets | None = None) -> Functions:
        """Return what an export contains."""


def tokenizers(served: Served) -> dict[str, Tokenizer]:
    """Return the tokenizers by argument, each of them once."""
    found: dict[str, Tokenizer] = {}
    for name in served.SIDES.values():
        if all(getattr(served, name) is not other for other in found.values()):
            found[name] = getattr(served, name)
    return found


def check_n_best(n_best: Any, strategy: Any) -> None:
    """Raise a ValueError unless the strategy returns that many hypotheses."""
    if isinstance(n_best, bool) or not isinstance(n_best, Integral):
        raise ValueError(f"n_best must be an integer, received {n_best!r}.")
    if not 1 <= int(n_best) <= strategy.width:
        raise ValueError(
            f"n_best must be between 1 and the {strategy.width} hypotheses of {strategy}, received {n_best}."
        )


def check_vocabulary(name: str, tokenizer: Tokenizer, size: int | None) -> None:
    """Raise a ValueError if the tokenizer has more ids than the model, `size`."""
    if size is not None and tokenizer.vocabulary_size > size:
        raise ValueError(f"the {name} has {tokenizer.vocabulary_size} ids, the model only {size}.")


def check_parts(strategy: Any, **tokenizers: Any) -> None:
    """Raise a TypeError for what is no search strategy or no tokenizer."""
    check_strategy(strategy)
    for name, tokenizer in tokenizers.items():
        if not isinstance(tokenizer, Tokenizer):
            raise TypeError(f"{name} must be a tokenizer of keras_seq2seq.text, received {tokenizer!r}.")


def require_tensorflow(kind: str) -> None:
    """Raise a ValueError if Keras runs on another backend."""
    if keras.backend.backend() != "tensorflow":
        raise ValueError(f"{kind} needs Keras on TensorFlow, but it runs on {keras.backend.backend()}.")
