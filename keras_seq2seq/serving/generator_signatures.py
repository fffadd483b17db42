"""From text to what follows it in one graph: the functions that a generator's export contains.

Legend: B texts, N hypotheses, P prompt length, T text length.
"""

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from keras_seq2seq.serving.buckets import XLABuckets, in_buckets, with_xla
from keras_seq2seq.serving.generation import completions
from keras_seq2seq.serving.graph import SEED, filled, signature_function
from keras_seq2seq.serving.seeds import lone_seeds, mixed
from keras_seq2seq.serving.served import Expected
from keras_seq2seq.text import BOS_ID, EOS_ID, PAD_ID

__all__ = ["GeneratorFunctions"]


class GeneratorFunctions:
    """A generator's functions from text to text; each is traced once.

    Args:
        generator: a `Generator`.
        n_best: N of `generate_n_best`, at most the strategy's width.
        xla: for which shapes XLA compiles the searches; None for no XLA at all.
    """

    def __init__(self, generator: Any, n_best: int, xla: XLABuckets | None = None):
        self._generator = generator
        self._tokenizer = generator.tokenizer
        self._settings = generator.settings
        self._generation = generator.searching
        self._find, self._draw = generator.searching.search, generator.sampler.search
        if xla is not None:
            fast = with_xla(generator)
            self._find = in_buckets(xla, fast.searching.search, self._find)
            self._draw = in_buckets(xla, fast.sampler.search, self._draw)
        self._n_best = n_best

    def signatures(self) -> dict[str, Any]:
        """Return the concrete function of each signature, by name."""
        bodies = {
            "generate": self.generate,
            "generate_n_best": self.generate_n_best,
            "score": self.score,
        }
        made = {
            name: signature_function(body, "text").get_concrete_function() for name, body in bodies.items()
        }
        sample = signature_function(self.sample, "text", "seed").get_concrete_function()
        return {"serving_default": made["generate"], **made, "sample": sample}

    def expected(self, text: str) -> Iterator[Expected]:
        """Yield what the generator says about `text`: what each signature must answer."""
        (row,) = self._generator.generate([text], self._n_best)
        texts, scores = [each.text for each in row], [each.score for each in row]
        length, inputs = len(row[0].tokens), {"text": text}
        yield Expected("serving_default", inputs, texts[:1], scores[:1], length)
        yield Expected("generate_n_best", inputs, texts, scores, length)
        drawn = self._generator.sample(text, SEED)
        sampled: dict[str, Any] = {"text": text, "seed": SEED}
        yield Expected("sample", sampled, [drawn.text], [drawn.score], len(drawn.tokens))
        scored = self._generator.score(text)
        yield Expected("score", inputs, [], list(scored), scored.token_count)

    def generate(self, text: Any) -> dict[str, Any]:
        """Complete strings `[B]` by strings `[B]` with scores float32 `[B]`."""
        return _best(self._complete(text, 1))

    def generate_n_best(self, text: Any) -> dict[str, Any]:
        """Complete strings `[B]` by the N best strings `[B, N]` with scores float32 `[B, N]`."""
        texts, scores = self._complete(text, self._n_best)
        return {"completions": texts, "scores": scores}

    def sample(self, text: Any, seed: Any) -> dict[str, Any]:
        """Draw one completion for each of the strings `[B]` by seeds int64 `[B]`; see `Generator.sample`."""
        prompts = self._prompts(text)
        return _best(self._written(self._draw(prompts, mixed(seed)[:, tf.newaxis]), prompts, 1))

    def score(self, text: Any) -> dict[str, Any]:
        """Return log P(text), float32 `[B]`, and the number of its tokens, int32 `[B]`."""
        rows = self._tokenizer.tokenize(text)
        if self._settings.score_eos:
            rows = tf.concat([rows, _column(rows, EOS_ID)], axis=1)
        score, count = self._generation.score(_after_bos(rows[:, : self._settings.window]))
        return {"score": score, "token_count": count}

    def _complete(self, text: Any, count: int) -> tuple[Any, Any]:
        prompts = self._prompts(text)
        seeds = lone_seeds(self._generation.strategy, prompts)
        return self._written(self._find(prompts, seeds), prompts, count)

    def _prompts(self, text: Any) -> Any:
        """Return int32 `[B, P]`, BOS first."""
        rows = self._tokenizer.tokenize(text)
        most = self._settings.max_prompt_length
        return _after_bos(rows[:, -most:] if most else rows[:, :0])

    def _written(self, result: Any, prompts: Any, count: int) -> tuple[Any, Any]:
        """Return the text `[B, count]` and the score of the best hypotheses."""
        return completions(self._tokenizer, prompts, result.tokens[:, :count]), result.scores[:, :count]


def _best(written: tuple[Any, Any]) -> dict[str, Any]:
    texts, scores = written
    return {"completion": texts[:, 0], "score": scores[:, 0]}


def _after_bos(rows: Any) -> Any:
    """Put BOS before ragged rows of ids: int32 `[B, 1 + longest]`, pads at the end."""
    return filled(tf.concat([_column(rows, BOS_ID), rows], axis=1).to_tensor(PAD_ID))


def _column(rows: Any, value: int) -> Any:
    return tf.fill([rows.nrows(out_type=tf.int32), 1], value)
