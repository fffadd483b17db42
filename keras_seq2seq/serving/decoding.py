"""From ids to ids: the search and the scoring, compiled once, for a translator and for its exports.

Legend: B sources, S source length, P prefix length, T target length, N hypotheses, L maximum length.
"""

from typing import Any

import tensorflow as tf

from keras_seq2seq.search import SearchResult
from keras_seq2seq.serving.alignment import Look, mean_over_heads
from keras_seq2seq.serving.compiled import log_probability, row_lengths
from keras_seq2seq.serving.rules import constraints_of
from keras_seq2seq.serving.searching import Searching
from keras_seq2seq.serving.settings import Settings, position_limit
from keras_seq2seq.text import BOS_ID

__all__ = ["Decoding"]


class Decoding(Searching):
    """The search and the scoring of a `Seq2Seq`, or any Keras model with inputs `source` and `target`."""

    settings: Settings

    def search(self, source: Any, prefix: Any = None, seeds: Any = None) -> SearchResult:
        """Run the compiled `decode`."""
        if seeds is not None and prefix is None:
            prefix = tf.fill([tf.shape(source)[0], 1], BOS_ID)
        ids = tuple(each for each in (source, prefix, seeds) if each is not None)
        return self._compiled(self.decode, ids, self.settings.jit_compile)

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
        return self._search(source, prefix, seeds)

    def _request(self, source: Any, prefix: Any = None, seeds: Any = None) -> tuple[Any, dict[str, Any]]:
        limit = self.row_limits(source, prefix)
        options = {
            "max_length": self._buffer_length(source, limit),
            "min_length": self._row_minimum(source, prefix),
            "row_limit": limit,
            "constraints": constraints_of(self.settings),
            "seeds": seeds,
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
        if position_limit(getattr(self.model, "decoder", None)) is not None:
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
