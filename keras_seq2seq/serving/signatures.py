"""From text to text in one graph: the functions that an export contains.

Legend: B texts, N hypotheses, S source length, P prefix length, L maximum length.
"""

from typing import Any

import tensorflow as tf

from keras_seq2seq.data.encoding import encode_prefixes, encode_sources
from keras_seq2seq.text import BOS_ID, PAD_ID

__all__ = ["BLANK", "TextFunctions"]

# What `str.isspace` says of every character, in RE2's words.
BLANK = r"[\s\x0b\x1c-\x1f\x{85}\p{Z}]*"


class TextFunctions:
    """A translator's functions from text to text; each is traced once, and the searches are shared.

    Args:
        translator: a `Translator`.
        n_best: N of `translate_n_best`, at most the strategy's width.
    """

    def __init__(self, translator: Any, n_best: int):
        self._model = translator.model
        self._source_tokenizer = translator.source_tokenizer
        self._target_tokenizer = translator.target_tokenizer
        self._n_best = n_best
        self._decoding = translator.decoding
        self._settings = translator.settings
        self._encode = _function(self._encode_texts, "text")

    def signatures(self) -> dict[str, Any]:
        """Return the concrete function of each signature, by name."""
        functions = {
            "translate": _function(self.translate, "text"),
            "translate_n_best": _function(self.translate_n_best, "text"),
            "translate_with_prefix": _function(self.translate_with_prefix, "text", "prefix"),
            "score": _function(self.score, "source", "target"),
        }
        made = {name: function.get_concrete_function() for name, function in functions.items()}
        return {"serving_default": made["translate"], **made}

    def module(self) -> tf.Module:
        """Return the object that holds what the functions use."""
        module = tf.Module(name="translator")
        # TensorFlow's C++ loader finds only those variables that the saved object itself holds.
        module.variables_ = [variable.value for variable in self._model.variables]
        module.resources_ = [*self._source_tokenizer.trackables, *self._target_tokenizer.trackables]
        return module

    def translate(self, text: Any) -> dict[str, Any]:
        """Translate strings `[B]` to strings `[B]` with scores float32 `[B]`; blank text gives "" and 0."""
        source, blank = self._encode(text)
        return _best(self._written(self._decoding.search(source), blank))

    def translate_n_best(self, text: Any) -> dict[str, Any]:
        """Translate strings `[B]` to the N best strings `[B, N]` with scores float32 `[B, N]`."""
        source, blank = self._encode(text)
        texts, scores = self._written(self._decoding.search(source), blank, count=self._n_best)
        return {"translations": texts, "scores": scores}

    def translate_with_prefix(self, text: Any, prefix: Any) -> dict[str, Any]:
        """Translate strings `[B]` to strings `[B]` that begin with `prefix` `[B]`."""
        source, blank = self._encode(text)
        given = _filled(encode_prefixes(self._target_tokenizer, prefix, self._settings.max_length))
        return _best(self._written(self._decoding.search(source, given), blank, given))

    def score(self, source: Any, target: Any) -> dict[str, Any]:
        """Return log P(target | source), float32 `[B]`, and the number of tokens of `target`, int32 `[B]`."""
        source = encode_sources(self._source_tokenizer, source, self._settings.max_source_length)
        source = _filled(source)
        target = encode_sources(self._target_tokenizer, target, self._settings.max_length)
        target = _filled(target)
        bos = tf.fill([tf.shape(target)[0], 1], BOS_ID)
        score, count = self._decoding.score(source, tf.concat([bos, target], axis=1))
        return {"score": score, "token_count": count}

    def _encode_texts(self, text: Any) -> tuple[Any, Any]:
        """Return ids `[B, S]`, of blank text only pads, and which texts are blank, bool `[B]`."""
        blank = tf.strings.regex_full_match(text, BLANK)
        limit = self._settings.max_source_length
        source = encode_sources(self._source_tokenizer, tf.where(blank, "", text), limit)
        return tf.where(blank[:, tf.newaxis], PAD_ID, _filled(source)), blank

    def _written(self, result: Any, blank: Any, prefix: Any = None, count: int = 1) -> tuple[Any, Any]:
        """Return the text `[B, count]` and the score of the best hypotheses."""
        tokens, scores = result.tokens[:, :count], result.scores[:, :count]
        if prefix is not None:
            tokens = tf.concat([tf.repeat(prefix[:, tf.newaxis], count, axis=1), tokens], axis=2)
        texts = self._target_tokenizer.detokenize(tokens)
        blank = blank[:, tf.newaxis]
        return tf.where(blank, "", texts), tf.where(blank, 0.0, scores)


def _filled(ids: Any) -> Any:
    """Give a batch of no rows a width, without which no shape can be inferred."""
    return tf.pad(ids, [[0, 0], [0, tf.maximum(1 - tf.shape(ids)[1], 0)]])


def _best(written: tuple[Any, Any]) -> dict[str, Any]:
    texts, scores = written
    return {"translation": texts[:, 0], "score": scores[:, 0]}


def _function(body: Any, *names: str) -> Any:
    """Return a function of string vectors with these names."""
    signature = [tf.TensorSpec([None], tf.string, name=name) for name in names]
    return tf.function(body, signature, autograph=False)
