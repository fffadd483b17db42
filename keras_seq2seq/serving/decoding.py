"""From ids to ids: the search and the scoring, compiled once, for a translator and for its exports.

Legend: B sources, S source length, P prefix length, T target length, N hypotheses, L maximum length.
"""

from dataclasses import replace
from functools import cached_property
from typing import Any

import tensorflow as tf

from keras_seq2seq.models import decodable
from keras_seq2seq.search import SearchResult, search
from keras_seq2seq.search.steps import begin
from keras_seq2seq.serving.alignment import Look, mean_over_heads
from keras_seq2seq.serving.compiled import Compiled, log_probability, row_lengths
from keras_seq2seq.serving.rules import constraints_of
from keras_seq2seq.serving.settings import Settings, position_limit
from keras_seq2seq.serving.streaming import Steps
from keras_seq2seq.text import BOS_ID, EOS_ID, PAD_ID

__all__ = ["Decoding"]


class Decoding:
    """A model, a strategy and limits as compiled functions from ids to ids.

    The functions are compiled on first use and kept; nothing else is. One graph serves all shapes.

    Args:
        model: a `Seq2Seq`, or any Keras model with the inputs `source` and `target`; see `models.FullPass`.
        strategy: of `keras_seq2seq.search`; a beam returns all its hypotheses here.
        settings: the limits.
    """

    def __init__(self, model: Any, strategy: Any, settings: Settings):
        self.model = model
        self.strategy = replace(strategy, n_best=strategy.width) if hasattr(strategy, "n_best") else strategy
        self.settings = settings
        self.position_limit = position_limit(getattr(model, "decoder", None))
        self._compiled = Compiled()

    def search(self, source: Any, prefix: Any = None, seeds: Any = None) -> SearchResult:
        """Run the compiled `decode`."""
        if seeds is not None and prefix is None:
            prefix = tf.fill([tf.shape(source)[0], 1], BOS_ID)
        ids = tuple(each for each in (source, prefix, seeds) if each is not None)
        return self._compiled(self.decode, ids, self.settings.jit_compile)

    def score(self, *ids: Any) -> tuple[Any, Any]:
        """Run the compiled `log_probability(source, target)`."""
        return self._compiled(self.log_probability, ids)

    def align(self, look: Look, *ids: Any) -> Any:
        """Run the compiled `alignment(source, target)`."""
        return self._compiled(self.alignment, ids, look=look)

    def check_alignment(self, look: Look) -> None:
        """Raise a ValueError unless the model has such an alignment."""
        if not getattr(self.model, "has_alignment", False):
            raise ValueError(
                "return_alignment must be False for a model without attention to the source that `align` can "
                f"return, received a {type(self.model).__name__}."
            )
        self._compiled.trace(self.alignment, 2, look=look)

    def row_limits(self, source: Any, prefix: Any = None) -> Any:
        """Return how many tokens may be generated for each row, EOS included: int32 `[B]`.

        A row of pads alone, a filler, gets 0. A forced prefix counts: with it or without, the longest
        translation is the same; one that fills the limit by itself is followed by at most `length_offset`
        tokens, and only up to `max_length`.
        """
        settings = self.settings
        length = row_lengths(source)
        limit = self._limit_of(length)
        if prefix is not None:
            given = tf.maximum(row_lengths(prefix) - 1, 0)  # BOS is not part of the translation
            limit = tf.where(limit > given, limit - given, settings.length_offset)
            limit = tf.minimum(limit, tf.maximum(settings.max_length - given, 0))
        return tf.where(length > 0, limit, 0)

    def _limit_of(self, length: Any) -> Any:
        """Return how many tokens a translation of a source of `length` may have, int32."""
        settings = self.settings
        # Bounded before it is an integer, which large numbers do not fit.
        scaled = tf.cast(length, tf.float32) * settings.length_factor
        scaled = tf.cast(tf.minimum(scaled, settings.max_length), tf.int32)
        return tf.minimum(scaled + settings.length_offset, settings.max_length)

    def decode(self, source: Any, prefix: Any = None, seeds: Any = None) -> SearchResult:
        """Search for the best hypotheses.

        Args:
            source: int32 `[B, S]`; a row of pads alone costs nothing.
            prefix: int32 `[B, P]`, BOS first, or None for BOS alone.
            seeds: int32 `[B, 1]`, for sampling.

        Returns:
            `SearchResult`; without the prefix.
        """
        inputs, options = self._request(source, prefix, seeds)
        compact = not self.settings.jit_compile
        return search(decodable(self.model), inputs, self.strategy, compact=compact, **options)

    @cached_property
    def steps(self) -> Steps:
        """The search of one text token by token: from the ids that `decode` takes."""

        def first(*ids: Any) -> tuple[Any, Any]:
            inputs, options = self._request(*ids)
            return begin(model, inputs, self.strategy, **options)

        model = decodable(self.model)
        return Steps(first, model, self.strategy)

    def _request(self, source: Any, prefix: Any = None, seeds: Any = None) -> tuple[Any, dict[str, Any]]:
        """Return the inputs and the options of the search."""
        limit = self.row_limits(source, prefix)
        options = {
            "max_length": self._buffer_length(source, limit),
            "min_length": self._row_minimum(source, prefix),
            "row_limit": limit,
            "constraints": constraints_of(self.settings),
            "seeds": None if seeds is None else seeds[:, 0],
            "pad_id": PAD_ID,
            "bos_id": BOS_ID,
            "eos_id": EOS_ID,
        }
        return {"source": source, "target": prefix}, options

    def _row_minimum(self, source: Any, prefix: Any) -> Any:
        """Return how many tokens must be generated for each row, int32 `[B]`, or 0; a prefix counts."""
        settings = self.settings
        if not settings.min_length and not settings.min_length_factor:
            return 0
        scaled = tf.cast(row_lengths(source), tf.float32) * settings.min_length_factor
        scaled = tf.cast(tf.minimum(scaled, settings.max_length), tf.int32)
        least = tf.maximum(scaled, settings.min_length)
        return least if prefix is None else tf.maximum(least - row_lengths(prefix) + 1, 0)

    def _buffer_length(self, source: Any, limit: Any) -> Any:
        """Return L: an integer where shapes are fixed or positions limited, else no more than is needed."""
        if self.position_limit is not None:
            return self.settings.max_length
        if self.settings.jit_compile:  # XLA knows shapes, but not what is in them
            return self._limit_of(tf.shape(source)[1])
        return tf.maximum(tf.reduce_max(limit), 1)

    def alignment(self, source: Any, target: Any, *, look: Look) -> Any:
        """Return where each position looks in the source: float32 `[B, T, S]`, a mean over heads.

        Args:
            source: int32 `[B, S]`.
            target: int32 `[B, T]`, BOS first; row t belongs to the token after `target[:, t]`.
            look: which layer and heads.
        """
        try:
            weights = self.model.align({"source": source, "target": target}, layer=look.layer)
        except ValueError as error:
            raise ValueError(f"alignment_layer={look.layer} cannot be used: {error}") from error
        return mean_over_heads(weights, look.heads)

    def log_probability(self, source: Any, target: Any) -> tuple[Any, Any]:
        """Return log P(target | source), teacher-forced, under the search's own rules.

        Args:
            source: int32 `[B, S]`.
            target: int32 `[B, T]`: BOS, tokens, EOS, pads.

        Returns:
            The sum over tokens, EOS in, float32 `[B]`, and the number of tokens, EOS counted, int32 `[B]`.
        """
        logits = self.model({"source": source, "target": target[:, :-1]}, training=False)
        return log_probability(logits, target[:, 1:])
