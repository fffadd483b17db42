"""What a translator and a generator share: how they are kept, exported, varied and sampled."""

from dataclasses import asdict
from functools import cached_property
from os import PathLike
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from keras_seq2seq.serving import bundle, saved_model
from keras_seq2seq.serving.results import Hypothesis
from keras_seq2seq.serving.rows import strings
from keras_seq2seq.serving.searching import Searching
from keras_seq2seq.serving.seeds import check_seeds, mixed, one_sample

__all__ = ["TextModel"]

Search = TypeVar("Search", bound=Searching)


class TextModel(Generic[Search]):
    """A model with tokenizers, a strategy and settings.

    Attributes:
        KIND: the name of it on disk.
        SIDES: what each tokenizer reads or writes, to the argument and attribute that holds it.
        searching: the compiled search.
    """

    KIND: ClassVar[str]
    SIDES: ClassVar[dict[str, str]]
    model: Any
    strategy: Any
    settings: Any
    searching: Search

    def sample(self, texts: Any, seeds: Any) -> Any:
        """Draw one answer to each text, by a seed that comes with the text.

        It depends on the text and its seed alone, and is what the same object with `Sampling(seed=seed)`
        answers to this text alone. Temperature and cuts are those of the strategy if that is `Sampling`, else
        there are none. This is what the signature `sample` of an export answers.

        Args:
            texts: a string, or a list of strings.
            seeds: an integer of 64 bits, or a list of them, one for each text.

        Returns:
            A `Hypothesis`, or a list of them.

        Raises:
            ValueError: not one seed for each text.
            TypeError: texts that are no strings, or seeds that are no integers.
        """
        if isinstance(texts, str):
            return self.sample([texts], [seeds])[0]
        texts = strings("texts", texts)
        drawn = np.asarray(mixed(check_seeds(seeds, len(texts))))
        return [row[0] for row in self._answer(self.sampler, texts, 1, drawn)]

    def save(self, directory: str | PathLike[str]) -> None:
        """Write model, tokenizers, strategy and settings; see `bundle.save`."""
        bundle.save(self, directory)

    @classmethod
    def load(cls, directory: str | PathLike[str], **replaced: Any) -> Self:
        """Read what `save` wrote; `replaced` are arguments to use instead. See `bundle.load`."""
        return cls(**{**bundle.load(cls, directory), **replaced})

    def export(self, base_dir: str | PathLike[str], **options: Any) -> str:
        """Write a SavedModel from text to text to `base_dir/<version>`; see `saved_model.export`."""
        return saved_model.export(self, base_dir, **options)

    def with_settings(self, settings: Any) -> Self:
        """Return the same parts with other settings."""
        return self._with(self.strategy, settings)

    def with_strategy(self, strategy: Any) -> Self:
        """Return the same parts with another search."""
        return self._with(strategy, self.settings)

    @cached_property
    def sampler(self) -> Search:
        """What `sample` searches with."""
        strategy = one_sample(self.strategy)
        if strategy == self.strategy:
            return self.searching
        return type(self.searching)(self.model, strategy, self.settings)

    def functions(self, n_best: int, xla: Any = None) -> Any:
        """Return the `Functions` that an export contains, with `XLABuckets` compiled by XLA."""
        raise NotImplementedError

    def _answer(self, searching: Search, texts: list[str], n_best: int, seeds: Any) -> list[list[Hypothesis]]:
        """Return `n_best` hypotheses for each text."""
        raise NotImplementedError

    def _with(self, strategy: Any, settings: Any) -> Self:
        parts = {name: getattr(self, name) for name in self.SIDES.values()}
        build: Any = type(self)  # whose arguments are those that a subclass names
        return build(model=self.model, **parts, strategy=strategy, **asdict(settings))
