"""From ids to ids with a language model: the search and the scoring, for a generator and for its exports.

Legend: B texts, P prompt length, T text length, N hypotheses, L maximum length.
"""

from typing import Any

import tensorflow as tf

from keras_seq2seq.search import SearchResult
from keras_seq2seq.serving.compiled import log_probability, row_lengths
from keras_seq2seq.serving.graph import filled
from keras_seq2seq.serving.rules import constraints_of
from keras_seq2seq.serving.searching import Searching
from keras_seq2seq.serving.settings import GeneratorSettings
from keras_seq2seq.text import Tokenizer

__all__ = ["Generation", "completions"]


class Generation(Searching):
    """The search and the scoring of a `LanguageModel`, or any Keras model with the one input `target`."""

    settings: GeneratorSettings

    def search(self, prompts: Any, seeds: Any = None) -> SearchResult:
        """Run the compiled `generate`."""
        ids = (prompts,) if seeds is None else (prompts, seeds)
        return self._compiled(self.generate, ids, self.settings.jit_compile)

    def generate(self, prompts: Any, seeds: Any = None) -> SearchResult:
        """Search for the best completions of at most `max_new_tokens`.

        Args:
            prompts: int32 `[B, P]`, BOS first; a row of pads alone costs nothing.
            seeds: int32 `[B, 1]`, for sampling.

        Returns:
            `SearchResult`; without the prompt.
        """
        return self._search(prompts, seeds)

    def _request(self, prompts: Any, seeds: Any = None) -> tuple[Any, dict[str, Any]]:
        most = self.settings.max_new_tokens
        options = {
            "max_length": most,
            "min_length": self.settings.min_new_tokens,
            "row_limit": tf.where(row_lengths(prompts) > 0, most, 0),
            "constraints": constraints_of(self.settings),
            "seeds": seeds,
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
