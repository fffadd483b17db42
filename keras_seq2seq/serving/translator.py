"""`Translator`: strings in, strings out."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from os import PathLike
from typing import Any, NamedTuple, Self

import keras
import numpy as np
import tensorflow as tf

from keras_seq2seq.search import Beam
from keras_seq2seq.serving import bundle, saved_model
from keras_seq2seq.serving.batching import Rows, batches_by_length, pad_rows, round_up
from keras_seq2seq.serving.decoding import Decoding
from keras_seq2seq.serving.rows import cut_rows, ended_rows, is_blank, strings
from keras_seq2seq.serving.settings import Settings
from keras_seq2seq.text import BOS_ID, Tokenizer

__all__ = ["Hypothesis", "TargetScore", "Translator"]

_SCORE_LOGITS = 1 << 25  # float32 values of one batch's logits, 128 MiB

Text = str | Sequence[int]


class Hypothesis(NamedTuple):
    """One translation of a text.

    Attributes:
        text: the translation.
        score: under the strategy's rule; 0 for blank text.
        tokens: its ids, a forced prefix included, ending in EOS when it is finished.
        alignment: None.
        finished: False when it was cut at the limit.
    """

    text: str
    score: float
    tokens: list[int]
    alignment: Any
    finished: bool


class TargetScore(NamedTuple):
    """How probable a model holds a target to be.

    Attributes:
        score: log P(target | source), the sum over tokens, EOS in, without any penalty.
        token_count: the number of tokens, EOS counted.
    """

    score: float
    token_count: int


class Translator:
    """A model with its tokenizers and a search: on a string it gives a string, on a list a list.

    The translation of a text does not depend on what else is translated with it. Blank text (white space
    alone) gives "" without the model being asked. A translation of a text of S tokens, EOS counted, has at
    most `length_factor` * S + `length_offset` tokens, and at most `max_length`; one that is cut there
    has `finished=False`. A text of more than `max_source_length` tokens is cut, with a warning.

    Args:
        model: a `Seq2Seq`, or any Keras model from `source` and `target` to logits. Without `start` and
            `step` it is searched by whole passes, which is right and slow.
        source_tokenizer: for the texts.
        target_tokenizer: for the translations; default: one tokenizer for both.
        strategy: of `keras_seq2seq.search`; default `Beam(4)`.
        max_length: the most tokens of a translation; default 1024, or the number of learned positions.
        max_source_length: the most tokens of a text, EOS counted; default as for `max_length`.
        length_factor: see above.
        length_offset: see above.
        batch_size: the most texts in a batch. Texts are sorted by length, batched and put back in order.
        tokens_per_batch: the most source tokens in a batch, pads and every hypothesis counted.
        jit_compile: compile the search with XLA, once for each of a few shapes: seconds for every new
            shape, and then about twice as fast. By default one graph serves all shapes.

    Raises:
        ValueError: tokenizers with other vocabularies than the model, or a setting out of range.
    """

    def __init__(
        self,
        model: Any,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer | None = None,
        strategy: Any = None,
        *,
        max_length: int | None = None,
        max_source_length: int | None = None,
        length_factor: float = 2.0,
        length_offset: int = 16,
        batch_size: int = 64,
        tokens_per_batch: int = 16384,
        jit_compile: bool = False,
    ):
        if keras.backend.backend() != "tensorflow":
            raise ValueError(
                f"Translator needs Keras on TensorFlow, but it runs on {keras.backend.backend()}."
            )
        self.model = model
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer or source_tokenizer
        self.strategy = strategy or Beam(4)
        self.settings = Settings.for_model(
            model,
            max_length=max_length,
            max_source_length=max_source_length,
            length_factor=length_factor,
            length_offset=length_offset,
            batch_size=batch_size,
            tokens_per_batch=tokens_per_batch,
            jit_compile=jit_compile,
        )
        self.decoding = Decoding(model, self.strategy, self.settings)
        self._check_vocabularies()

    def _check_vocabularies(self) -> None:
        sides = [("target", self.target_tokenizer, self.model.output_shape[-1])]
        embedding = getattr(getattr(self.model, "encoder", None), "embedding", None)
        sides.append(("source", self.source_tokenizer, getattr(embedding, "vocabulary_size", None)))
        for side, tokenizer, size in sides:
            if size is not None and tokenizer.vocabulary_size > size:
                raise ValueError(
                    f"the {side} tokenizer has {tokenizer.vocabulary_size} ids, the model only {size}."
                )

    def __call__(self, texts: Any, *, prefixes: Any = None) -> Any:
        """Translate a string to a string, or a list of strings to a list, in order.

        Args:
            texts: a string or a list of strings.
            prefixes: what each translation must begin with; see `translate`.
        """
        single = isinstance(texts, str)
        if single and prefixes is not None:
            prefixes = [prefixes]
        best = [hypotheses[0].text for hypotheses in self.translate(texts, prefixes=prefixes)]
        return best[0] if single else best

    def translate(
        self, texts: str | Iterable[str], n_best: int = 1, *, prefixes: Sequence[Text] | None = None
    ) -> list[list[Hypothesis]]:
        """Translate texts, with all there is to know about the translations.

        Args:
            texts: strings; one string is a list of one.
            n_best: how many hypotheses for each text, at most what the strategy returns.
            prefixes: for each text a string or a list of ids that its translations must begin with.
                Scores are those of what follows. A prefix of `max_length` tokens or more is cut, with
                a warning.

        Returns:
            For each text `n_best` hypotheses, best first, finished before unfinished; blank text has
            `n_best` empty ones.

        Raises:
            ValueError: `n_best` out of range, or not one prefix for each text.
            TypeError: texts that are no strings.
        """
        texts = strings("texts", texts)
        if not 1 <= n_best <= self.strategy.width:
            raise ValueError(
                f"n_best must be between 1 and the {self.strategy.width} hypotheses of {self.strategy}, "
                f"received {n_best}."
            )
        settings = self.settings
        sources = ended_rows("texts", texts, self.source_tokenizer, settings.max_source_length)
        ahead = None if prefixes is None else self._prefixes(prefixes, len(texts))
        rows = [row for row, text in enumerate(texts) if not is_blank(text)]
        results = [[Hypothesis("", 0.0, [], None, True)] * n_best for _ in texts]
        tokens = settings.tokens_per_batch // self.strategy.width
        for batch in batches_by_length([len(sources[row]) for row in rows], settings.batch_size, tokens):
            chosen = [rows[i] for i in batch]
            given = None if ahead is None else [ahead[row] for row in chosen]
            found = self._decode([sources[row] for row in chosen], given, n_best)
            for row, hypotheses in zip(chosen, found, strict=True):
                results[row] = hypotheses
        return results

    def score(self, sources: Any, targets: Any) -> Any:
        """Say how probable targets are: log P(target | source).

        Args:
            sources: a string, or a list of strings and lists of ids.
            targets: the same, one for each source. Ids may end in EOS or not.

        Returns:
            A `TargetScore`, or a list of them. Sources and targets that are too long (`max_source_length`,
            `max_length`) are cut, with a warning.

        Raises:
            ValueError: not one target for each source, or ids out of range.
        """
        if isinstance(sources, str):
            return self.score([sources], [targets])[0]
        if len(sources) != len(targets):
            raise ValueError(
                f"targets must have one entry for each of {len(sources)} sources, received {len(targets)}."
            )
        settings = self.settings
        read = ended_rows("sources", sources, self.source_tokenizer, settings.max_source_length)
        ends = ended_rows("targets", targets, self.target_tokenizer, settings.max_length)
        scores: list[Any] = [None] * len(read)
        lengths = [max(len(a), len(b)) for a, b in zip(read, ends, strict=True)]
        tokens = min(settings.tokens_per_batch, _SCORE_LOGITS // self.model.output_shape[-1])
        for batch in batches_by_length(lengths, settings.batch_size, tokens):
            target = pad_rows([[BOS_ID, *ends[row]] for row in batch])
            found = self.decoding.score(
                tf.constant(pad_rows([read[row] for row in batch])), tf.constant(target)
            )
            for row, score, count in zip(batch, *(value.numpy() for value in found), strict=True):
                scores[row] = TargetScore(float(score), int(count))
        return scores

    def save(self, directory: str | PathLike[str]) -> None:
        """Write model, tokenizers, strategy and settings; see `bundle.save`."""
        bundle.save(self, directory)

    @classmethod
    def load(cls, directory: str | PathLike[str], **replaced: Any) -> Self:
        """Read what `save` wrote; `replaced` are arguments to use instead. See `bundle.load`."""
        return cls(**{**bundle.load(directory), **replaced})

    def export(self, base_dir: str | PathLike[str], **options: Any) -> str:
        """Write a SavedModel from text to text to `base_dir/<version>`; see `saved_model.export`."""
        return saved_model.export(self, base_dir, **options)

    def with_settings(self, settings: Settings) -> Self:
        """Return a translator of the same parts with other settings."""
        parts = self.model, self.source_tokenizer, self.target_tokenizer, self.strategy
        return type(self)(*parts, **asdict(settings))

    def _prefixes(self, prefixes: Sequence[Text], count: int) -> list[np.ndarray]:
        if isinstance(prefixes, str) or len(prefixes) != count:
            raise ValueError(
                f"prefixes must have one entry for each of the {count} texts, received {prefixes!r:.80}."
            )
        return cut_rows("prefixes", prefixes, self.target_tokenizer, self.settings.max_length - 1)

    def _decode(self, sources: Rows, prefixes: Rows | None, n_best: int) -> list[list[Hypothesis]]:
        """Search one batch."""
        source = self._padded(sources)
        if prefixes is None:
            result = self.decoding.search(source)
        else:
            after = self._padded([[BOS_ID, *row] for row in prefixes])
            result = self.decoding.search(source, after)
        tokens, lengths, scores, finished = (np.asarray(part)[:, :n_best] for part in result)
        given = [[] for _ in sources] if prefixes is None else [row.tolist() for row in prefixes]
        ids = [
            [given[b] + tokens[b, n, : lengths[b, n]].tolist() for n in range(n_best)]
            for b in range(len(sources))
        ]
        texts = self.target_tokenizer.detokenize(pad_rows([row for rows in ids for row in rows])).numpy()
        return [
            [
                Hypothesis(
                    texts[b * n_best + n].decode(), float(scores[b, n]), row, None, bool(finished[b, n])
                )
                for n, row in enumerate(rows)
            ]
            for b, rows in enumerate(ids)
        ]

    def _padded(self, rows: Rows) -> Any:
        """Return ids `[B, length]`; for XLA both sizes are rounded up to few, fillers being rows of pads."""
        if not self.settings.jit_compile:
            return tf.constant(pad_rows(rows))
        width = round_up(max(map(len, rows)))
        return tf.constant(pad_rows(rows, min(round_up(len(rows)), self.settings.batch_size), width))
