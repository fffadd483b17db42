"""From text to text in one graph: the functions that an export contains.

Legend: B texts, N hypotheses, S source length, P prefix length, L maximum length.
"""

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from keras_seq2seq.data.encoding import encode_prefixes, encode_sources
from keras_seq2seq.serving.buckets import XLABuckets, in_buckets, with_xla
from keras_seq2seq.serving.graph import SEED, filled, signature_function, text_function
from keras_seq2seq.serving.seeds import lone_seeds, mixed
from keras_seq2seq.serving.served import Expected
from keras_seq2seq.text import BOS_ID, PAD_ID

__all__ = ["BLANK", "TextFunctions"]

# What `str.isspace` says of every character, in RE2's words.
BLANK = r"[\s\x0b\x1c-\x1f\x{85}\p{Z}]*"


class TextFunctions:
    """A translator's functions from text to text; each is traced once, and the searches are shared.

    Args:
        translator: a `Translator`.
        n_best: N of `translate_n_best`, at most the strategy's width.
        xla: for which shapes XLA compiles the searches without prefix; None for no XLA at all.
    """

    def __init__(self, translator: Any, n_best: int, xla: XLABuckets | None = None):
        self._translator = translator
        self._source_tokenizer = translator.source_tokenizer
        self._target_tokenizer = translator.target_tokenizer
        self._n_best = n_best
        self._decoding, self._sampler = translator.searching, translator.sampler
        self._find, self._draw = self._decoding.search, self._sampler.search
        if xla is not None:
            fast = with_xla(translator)
            self._find = in_buckets(xla, fast.searching.search, self._find)
            self._draw = in_buckets(xla, fast.sampler.search, self._draw)
        self._settings = translator.settings
        self._encode = text_function(self._encode_texts, "text")

    def signatures(self) -> dict[str, Any]:
        """Return the concrete function of each signature, by name."""
        functions = {
            "translate": signature_function(self.translate, "text"),
            "translate_n_best": signature_function(self.translate_n_best, "text"),
            "translate_with_prefix": signature_function(self.translate_with_prefix, "text", "prefix"),
            "sample": signature_function(self.sample, "text", "seed"),
            "score": signature_function(self.score, "source", "target"),
        }
        made = {name: function.get_concrete_function() for name, function in functions.items()}
        return {"serving_default": made["translate"], **made}

    def expected(self, text: str) -> Iterator[Expected]:
        """Yield what the translator says about `text`: what each signature must answer."""
        translator = self._translator
        (row,) = translator.translate([text], self._n_best)
        ((after,),) = translator.translate([text], prefixes=[""])
        texts, scores = [each.text for each in row], [each.score for each in row]
        length = len(row[0].tokens)
        yield Expected("serving_default", {"text": text}, texts[:1], scores[:1], length)
        yield Expected("translate_n_best", {"text": text}, texts, scores, length)
        inputs: dict[str, Any] = {"text": text, "prefix": ""}
        yield Expected("translate_with_prefix", inputs, [after.text], [after.score], len(after.tokens))
        drawn = translator.sample(text, SEED)
        inputs = {"text": text, "seed": SEED}
        yield Expected("sample", inputs, [drawn.text], [drawn.score], len(drawn.tokens))
        inputs = {"source": text, "target": texts[0]}
        yield Expected("score", inputs, [], list(translator.score(text, texts[0])), length)

    def translate(self, text: Any) -> dict[str, Any]:
        """Translate strings `[B]` to strings `[B]` with scores float32 `[B]`; blank text gives "" and 0."""
        source, blank = self._encode(text)
        return _best(self._written(self._search(source), blank))

    def translate_n_best(self, text: Any) -> dict[str, Any]:
        """Translate strings `[B]` to the N best strings `[B, N]` with scores float32 `[B, N]`."""
        source, blank = self._encode(text)
        texts, scores = self._written(self._search(source), blank, count=self._n_best)
        return {"translations": texts, "scores": scores}

    def translate_with_prefix(self, text: Any, prefix: Any) -> dict[str, Any]:
        """Translate strings `[B]` to strings `[B]` that begin with `prefix` `[B]`."""
        source, blank = self._encode(text)
        given = filled(encode_prefixes(self._target_tokenizer, prefix, self._settings.max_length))
        return _best(self._written(self._search(source, given), blank, given))

    def sample(self, text: Any, seed: Any) -> dict[str, Any]:
        """Draw a translation for each of the strings `[B]` by seeds int64 `[B]`; see `Translator.sample`."""
        source, blank = self._encode(text)
        result = self._draw(source, None, mixed(seed)[:, tf.newaxis])
        return _best(self._written(result, blank))

    def score(self, source: Any, target: Any) -> dict[str, Any]:
        """Return log P(target | source), float32 `[B]`, and the number of tokens of `target`, int32 `[B]`."""
        source = encode_sources(self._source_tokenizer, source, self._settings.max_source_length)
        source = filled(source)
        target = encode_sources(self._target_tokenizer, target, self._settings.max_length)
        target = filled(target)
        bos = tf.fill([tf.shape(target)[0], 1], BOS_ID)
        score, count = self._decoding.score(source, tf.concat([bos, target], axis=1))
        return {"score": score, "token_count": count}

    def _search(self, source: Any, prefix: Any = None) -> Any:
        search = self._find if prefix is None else self._decoding.search
        return search(source, prefix, lone_seeds(self._decoding.strategy, source))

    def _encode_texts(self, text: Any) -> tuple[Any, Any]:
        """Return ids `[B, S]`, of blank text only pads, and which texts are blank, bool `[B]`."""
        blank = tf.strings.regex_full_match(text, BLANK)
        limit = self._settings.max_source_length
        source = encode_sources(self._source_tokenizer, tf.where(blank, "", text), limit)
        return tf.where(blank[:, tf.newaxis], PAD_ID, filled(source)), blank

    def _written(self, result: Any, blank: Any, prefix: Any = None, count: int = 1) -> tuple[Any, Any]:
        """Return the text `[B, count]` and the score of the best hypotheses."""
        tokens, scores = result.tokens[:, :count], result.scores[:, :count]
        if prefix is not None:
            tokens = tf.concat([tf.repeat(prefix[:, tf.newaxis], count, axis=1), tokens], axis=2)
        texts = self._target_tokenizer.detokenize(tokens)
        blank = blank[:, tf.newaxis]
        return tf.where(blank, "", texts), tf.where(blank, 0.0, scores)


def _best(written: tuple[Any, Any]) -> dict[str, Any]:
    texts, scores = written
    return {"translation": texts[:, 0], "score": scores[:, 0]}
