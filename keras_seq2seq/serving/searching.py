"""A search over a model's ids, compiled once: what translation and completion have in common."""

from dataclasses import replace
from functools import cached_property
from typing import Any

from keras_seq2seq.models import decodable
from keras_seq2seq.search import SearchResult, search
from keras_seq2seq.search.steps import begin
from keras_seq2seq.serving.compiled import Compiled
from keras_seq2seq.serving.streaming import Steps
from keras_seq2seq.text import BOS_ID, EOS_ID, PAD_ID

__all__ = ["Searching"]


class Searching:
    """A model, a strategy and limits as compiled functions from ids to ids.

    The functions are compiled on first use and kept; nothing else is. One graph serves all shapes.

    Args:
        model: what `models.decodable` takes.
        strategy: of `keras_seq2seq.search`; a beam returns all its hypotheses here.
        settings: the limits.
    """

    def __init__(self, model: Any, strategy: Any, settings: Any):
        self.model = model
        self.strategy = replace(strategy, n_best=strategy.width) if hasattr(strategy, "n_best") else strategy
        self.settings = settings
        self._compiled = Compiled()

    def score(self, *ids: Any) -> tuple[Any, Any]:
        """Run the compiled `log_probability`."""
        return self._compiled(self.log_probability, ids)

    @cached_property
    def steps(self) -> Steps:
        """The search of one text token by token, from the ids that the whole search takes."""
        model = decodable(self.model)

        def first(*ids: Any) -> tuple[Any, Any]:
            inputs, options = self._options(*ids)
            return begin(model, inputs, self.strategy, **options)

        return Steps(first, model, self.strategy)

    def log_probability(self, *ids: Any) -> tuple[Any, Any]:
        """Return the sums of log-probabilities and the numbers of tokens, `[B]` each."""
        raise NotImplementedError

    def _request(self, *ids: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the model's inputs and the limits of the search, seeds int32 `[B, 1]` or None among them."""
        raise NotImplementedError

    def _options(self, *ids: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the inputs and all options of the search."""
        inputs, options = self._request(*ids)
        seeds = options.pop("seeds")
        seeds = None if seeds is None else seeds[:, 0]
        return inputs, {**options, "seeds": seeds, "pad_id": PAD_ID, "bos_id": BOS_ID, "eos_id": EOS_ID}

    def _search(self, *ids: Any) -> SearchResult:
        """Search for the best hypotheses."""
        inputs, options = self._options(*ids)
        compact = not self.settings.jit_compile
        return search(decodable(self.model), inputs, self.strategy, compact=compact, **options)
