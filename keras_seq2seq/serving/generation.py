"""From ids to ids with a language model: the search and the scoring, for a generator and for its exports.

Legend: B texts, P prompt length, T text length, N hypotheses, L maximum length.
"""

from dataclasses import replace
from functools import cached_property
from typing import Any

import tensorflow as tf

from keras_seq2seq.models import decodable
from keras_seq2seq.search import SearchResult, search
from keras_seq2seq.search.steps import begin
from keras_seq2seq.serving.compiled import Compiled, log_probability, row_lengths
from keras_seq2seq.serving.graph import filled
from keras_seq2seq.serving.rules import constraints_of
from keras_seq2seq.serving.settings import GeneratorSettings
from keras_seq2seq.serving.streaming import Steps
from keras_seq2seq.text import BOS_ID, EOS_ID, PAD_ID, Tokenizer

__all__ = ["Generation", "completions"]


class Generation:
    """A language model, a strategy and limits as compiled functions from ids to ids.

    Args:
        model: a `LanguageModel`, or any Keras model with the one input `target`; see `models.FullPass`.
        strategy: of `keras_seq2seq.search`; a beam returns all its hypotheses here.
        settings: the limits.
    """

    def __init__(self, model: Any, strategy: Any, settings: GeneratorSettings):
        self.model = model
        self.strategy = replace(strategy, n_best=strategy.width) if hasattr(strategy, "n_best") else strategy
        self.settings = settings
        self._compiled = Compiled()

    def search(self, prompts: Any, seeds: Any = None) -> SearchResult:
        """Run the compiled `generate`."""
        ids = (prompts,) if seeds is None else (prompts, seeds)
        return self._compiled(self.generate, ids, self.settings.jit_compile)

    def score(self, texts: Any) -> tuple[Any, Any]:
        """Run the compiled `log_probability`."""
        return self._compiled(self.log_probability, (texts,))

    def generate(self, prompts: Any, seeds: Any = None) -> SearchResult:
        """Search for the best completions of at most `max_new_tokens`.

        Args:
            prompts: int32 `[B, P]`, BOS first; a row of pads alone costs nothing.
            seeds: int32 `[B, 1]`, for sampling.

        Returns:
            `SearchResult`; without the prompt.
        """
        inputs, options = self._request(prompts, seeds)
        compact = not self.settings.jit_compile
        return search(decodable(self.model), inputs, self.strategy, compact=compact, **options)

    @cached_property
    def steps(self) -> Steps:
        """The search of one text token by token: from the ids that `generate` takes."""

        def first(*ids: Any) -> tuple[Any, Any]:
            inputs, options = self._request(*ids)
            return begin(model, inputs, self.strategy, **options)

        model = decodable(self.model)
        return Steps(first, model, self.strategy)

    def _request(self, prompts: Any, seeds: Any = None) -> tuple[Any, dict[str, Any]]:
        """Return the inputs and the options of the search."""
        most = self.settings.max_new_tokens
        options = {
            "max_length": most,
            "min_length": self.settings.min_new_tokens,
            "constraints": constraints_of(self.settings),
            "row_limit": tf.where(row_lengths(prompts) > 0, most, 0),
            "seeds": None if seeds is None else seeds[:, 0],
            "pad_id": PAD_ID,
            "bos_id": BOS_ID,
            "eos_id": EOS_ID,
        }
        return {"target": prompts}, options

    def log_probability(self, texts: Any) -> tuple[Any, Any]:
        """Return log P(text), under the search's own rules.

        Args:
            texts: int32 `[B, T]`: BOS, tokens, EOS where it counts, pads.

        Returns:
            The sum over all but BOS, float32 `[B]`, and their number, int32 `[B]`.
        """
        texts = filled(texts, 2)
        logits = self.model({"target": texts[:, :-1]}, training=False)
        return log_probability(logits, texts[:, 1:])


def completions(tokenizer: Tokenizer, prompts: Any, tokens: Any) -> Any:
    """Return what tokens add to the text of their prompts.

    A tokenizer may put a space between two words, or none inside one. So it is the text of both, less that
    of the prompt, and only where the latter changes what it follows, the text of the tokens alone.

    Args:
        tokenizer: of both.
        prompts: int32 `[B, P]`.
        tokens: int32 `[B, N, L]`.

    Returns:
        Strings `[B, N]`, valid UTF-8.
    """
    given = tokenizer.detokenize(prompts)[:, tf.newaxis]  # [B, 1]
    before = tf.repeat(prompts[:, tf.newaxis], tf.shape(tokens)[1], axis=1)
    whole = tokenizer.detokenize(tf.concat([before, tokens], axis=2))  # [B, N]
    size = tf.strings.length(whole)
    start = tf.minimum(tf.strings.length(given), size)
    follows = tf.strings.substr(whole, tf.zeros_like(start), start) == given
    alone = tokenizer.detokenize(tokens)
    return tf.where(follows, tf.strings.substr(whole, start, size), alone)
