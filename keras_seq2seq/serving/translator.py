"""`Translator`: strings in, strings out."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from keras_seq2seq.search import Beam
from keras_seq2seq.serving.alignment import Look, pieces, weights_of
from keras_seq2seq.serving.batching import Rows, in_batches, pad_for, pad_rows
from keras_seq2seq.serving.buckets import XLABuckets
from keras_seq2seq.serving.compiled import SCORE_LOGITS
from keras_seq2seq.serving.decoding import Decoding
from keras_seq2seq.serving.results import Hypothesis, TargetScore, generated_ids, hypotheses, target_scores
from keras_seq2seq.serving.rows import cut_rows, ended_rows, is_blank, listed, scored_rows, strings
from keras_seq2seq.serving.rules import forbidden_ids
from keras_seq2seq.serving.seeds import column, place_seeds
from keras_seq2seq.serving.served import check_n_best, check_parts, check_vocabulary, require_tensorflow
from keras_seq2seq.serving.settings import Settings
from keras_seq2seq.serving.signatures import TextFunctions
from keras_seq2seq.serving.streaming import check_streams, chunks
from keras_seq2seq.serving.text_model import TextModel
from keras_seq2seq.text import BOS_ID, Tokenizer

__all__ = ["Translator"]

Text = str | Sequence[int]


class Translator(TextModel[Decoding]):
    """A model with its tokenizers and a search: on a string it gives a string, on a list a list.

    The translation of a text does not depend on what else is translated with it; samples depend on the seed
    and on the place of the text in the list, and on no other random numbers. Blank text (white space
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
        min_length: the fewest tokens of a translation, EOS counted, unless the most are fewer.
        min_length_factor: the same relative to the text: at least this times S tokens.
        forbidden_tokens: what is never written: ids, and strings that are one token of the target tokenizer.
        no_repeat_ngram: no n tokens in a row occur twice in a translation; 0 allows it.
        batch_size: the most texts in a batch. Texts are sorted by length, batched and put back in order.
        tokens_per_batch: the most source tokens in a batch, pads and every hypothesis counted.
        jit_compile: compile the search with XLA, once for each of a few shapes: seconds for every new
            shape, and then about twice as fast. By default one graph serves all shapes.

    Raises:
        ValueError: tokenizers with other vocabularies than the model, or a setting out of range.

    Example:
        >>> pairs = [("one two", "eins zwei"), ("two three", "zwei drei"), ("three one", "drei eins")]
        >>> text = ks.data.ParallelText.from_pairs(pairs)
        >>> words = ks.text.Words.train(text.sources(), text.targets())
        >>> model = ks.models.transformer_seq2seq(words.vocabulary_size, size="tiny", num_layers=1)
        >>> model.compile(keras.optimizers.Adam(0.003), loss=ks.training.SmoothedCrossentropy())
        >>> history = model.fit(text.batches(words, sentences_per_batch=3, seed=1), epochs=40, verbose=0)
        >>> translator = ks.Translator(model, words, strategy=ks.search.Beam(2))
        >>> translator(["one two", "three one"])
        ['eins zwei', 'drei eins']
    """

    KIND: ClassVar[str] = "Translator"
    SIDES: ClassVar[dict[str, str]] = {"source": "source_tokenizer", "target": "target_tokenizer"}

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
        min_length: int = 0,
        min_length_factor: float = 0.0,
        forbidden_tokens: Iterable[int | str] = (),
        no_repeat_ngram: int = 0,
        batch_size: int = 64,
        tokens_per_batch: int = 16384,
        jit_compile: bool = False,
    ):
        require_tensorflow("Translator")
        self.model = model
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer or source_tokenizer
        self.strategy = Beam(4) if strategy is None else strategy
        check_parts(self.strategy, source_tokenizer=source_tokenizer, target_tokenizer=self.target_tokenizer)
        self.settings = Settings.for_model(
            model,
            max_length=max_length,
            max_source_length=max_source_length,
            length_factor=length_factor,
            length_offset=length_offset,
            min_length=min_length,
            min_length_factor=min_length_factor,
            forbidden_tokens=forbidden_ids(forbidden_tokens, self.target_tokenizer),
            no_repeat_ngram=no_repeat_ngram,
            batch_size=batch_size,
            tokens_per_batch=tokens_per_batch,
            jit_compile=jit_compile,
        )
        self.searching = Decoding(model, self.strategy, self.settings)
        embedding = getattr(getattr(model, "encoder", None), "embedding", None)
        check_vocabulary("target tokenizer", self.target_tokenizer, model.output_shape[-1])
        check_vocabulary("source tokenizer", source_tokenizer, getattr(embedding, "vocabulary_size", None))

    def __call__(self, texts: Any, *, prefixes: Any = None, offset: int = 0) -> Any:
        """Translate a string to a string, or a list of strings to a list, in order.

        Args:
            texts: a string or a list of strings.
            prefixes: what each translation must begin with; see `translate`.
            offset: for `Sampling`; see `translate`.
        """
        single = isinstance(texts, str)
        if single and prefixes is not None:
            prefixes = [prefixes]
        rows = self.translate(texts, prefixes=prefixes, offset=offset)
        best = [hypotheses[0].text for hypotheses in rows]
        return best[0] if single else best

    def translate(
        self,
        texts: str | Iterable[str],
        n_best: int = 1,
        *,
        prefixes: Sequence[Text] | None = None,
        offset: int = 0,
        return_alignment: bool = False,
        alignment_layer: int = -1,
        alignment_heads: int | Sequence[int] | None = None,
    ) -> list[list[Hypothesis]]:
        """Translate texts, with all there is to know about the translations.

        Args:
            texts: strings; one string is a list of one.
            n_best: how many hypotheses for each text, at most what the strategy returns.
            prefixes: for each text a string or a list of ids that its translations must begin with.
                Scores are those of what follows. A prefix of `max_length` tokens or more is cut, with
                a warning.
            offset: for `Sampling`, which draws by a text's place in the list: the place of the first text,
                where a long list is given in parts.
            return_alignment: whether hypotheses come with their `alignment`, by one more pass over them, and
                with the texts of the tokens, as `plots.attention_heatmap` takes them.
            alignment_layer: of the decoder, counted from 0, or from the end if negative.
            alignment_heads: a head or several; the weights are their mean, by default that of all.

        Returns:
            For each text `n_best` hypotheses, best first, finished before unfinished; blank text has
            `n_best` empty ones.

        Raises:
            ValueError: `n_best` out of range, not one prefix for each text, or an alignment that the model
                does not have.
            TypeError: texts that are no strings.
        """
        texts = strings("texts", texts)
        check_n_best(n_best, self.strategy)
        look = None
        if return_alignment:
            look = Look.checked(alignment_layer, alignment_heads)
            self.searching.check_alignment(look)
        ahead = None if prefixes is None else self._prefixes(prefixes, len(texts))
        seeds = place_seeds(self.strategy, len(texts), offset)
        return self._answer(self.searching, texts, n_best, seeds, ahead, look)

    def _answer(
        self,
        searching: Decoding,
        texts: list[str],
        n_best: int,
        seeds: Any,
        ahead: Rows | None = None,
        look: Look | None = None,
    ) -> list[list[Hypothesis]]:
        """Translate in batches of similar length, blank text aside."""
        settings = self.settings
        sources = ended_rows("texts", texts, self.source_tokenizer, settings.max_source_length)
        rows = [row for row, text in enumerate(texts) if not is_blank(text)]

        def run(batch: list[int]) -> list[list[Hypothesis]]:
            chosen = [rows[i] for i in batch]
            given = None if ahead is None else [ahead[row] for row in chosen]
            read, drawn = [sources[row] for row in chosen], column(seeds, chosen)
            found = self._decode(searching, read, given, drawn, n_best)
            return found if look is None else self._aligned(look, read, found)

        tokens = settings.tokens_per_batch // searching.strategy.width
        found = in_batches([len(sources[row]) for row in rows], settings.batch_size, tokens, run)
        nothing = Hypothesis("", 0.0, [], None, True, [])
        if look is not None:
            nothing = nothing._replace(alignment=np.zeros((0, 0), np.float32), source_pieces=[], pieces=[])
        results = [[nothing] * n_best for _ in texts]
        for row, best in zip(rows, found, strict=True):
            results[row] = best
        return results

    def stream(self, text: str, *, prefix: Text = "") -> Iterator[str]:
        """Translate one text, and give the translation piece by piece while it is made.

        Joined, the pieces are what `translate` gives for this text alone. A piece is text that no later token
        can change: where a character takes several tokens, it comes when it is complete.

        Args:
            text: a string.
            prefix: a string or a list of ids that the translation must begin with; the first piece has it.

        Returns:
            An iterator of strings; none is empty.

        Raises:
            ValueError: a strategy that decides at the end, such as a beam.
            TypeError: a text that is no string.
        """
        check_streams(self.strategy)
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, received {text!r:.80}.")
        settings = self.settings
        (source,) = ended_rows("text", [text], self.source_tokenizer, settings.max_source_length)
        (given,) = self._prefixes([prefix], 1)
        if is_blank(text):
            return iter(())
        ids: list[Any] = [[source], [[BOS_ID, *given]], column(place_seeds(self.strategy, 1, 0), [0])]
        tokens = self.searching.steps(*(pad_rows(each) for each in ids if each is not None))

        def text_of(ids: list[int]) -> str:
            return self.target_tokenizer.detokenize([[*given, *ids]]).numpy()[0].decode()

        return chunks(tokens, text_of)

    def score(self, sources: Any, targets: Any, *, add_eos: bool = True) -> Any:
        """Say how probable targets are: log P(target | source).

        Of the tokens of a hypothesis, with `add_eos=False`, this is the sum of its `token_scores`: the rules
        are those of the search, in which neither pad nor BOS can follow. What else a translator's settings or
        a prefix rule out is not ruled out here.

        Args:
            sources: a string, or a list of strings and lists of ids.
            targets: the same, one for each source. Ids may end in EOS or not.
            add_eos: whether ids that do not end in EOS are scored with one behind them; without it they are
                scored as they are, such as those of an unfinished hypothesis. Text always gets its EOS.

        Returns:
            A `TargetScore`, or a list of them. Sources and targets that are too long (`max_source_length`,
            `max_length`) are cut, with a warning.

        Raises:
            ValueError: not one target for each source, or ids out of range.
            TypeError: `add_eos` is no bool.
        """
        if not isinstance(add_eos, bool):
            raise TypeError(f"add_eos must be True or False, received {add_eos!r}.")
        if isinstance(sources, str):
            return self.score([sources], [targets], add_eos=add_eos)[0]
        sources, targets = listed("sources", sources), listed("targets", targets)
        if len(sources) != len(targets):
            raise ValueError(
                f"targets must have one entry for each of {len(sources)} sources, received {len(targets)}."
            )
        settings = self.settings
        read = ended_rows("sources", sources, self.source_tokenizer, settings.max_source_length)
        rows = ended_rows if add_eos else partial(scored_rows, eos=True)
        ends = rows("targets", targets, self.target_tokenizer, settings.max_length)

        def run(batch: list[int]) -> list[TargetScore]:
            target = pad_rows([[BOS_ID, *ends[row]] for row in batch])
            found = self.searching.score(pad_rows([read[row] for row in batch]), target)
            return target_scores(*found)

        lengths = [max(len(a), len(b)) for a, b in zip(read, ends, strict=True)]
        tokens = min(settings.tokens_per_batch, SCORE_LOGITS // self.model.output_shape[-1])
        return in_batches(lengths, settings.batch_size, tokens, run)

    def functions(self, n_best: int, xla: XLABuckets | None = None) -> TextFunctions:
        """Return what an export contains."""
        return TextFunctions(self, n_best, xla)

    def _prefixes(self, prefixes: Sequence[Text], count: int) -> list[np.ndarray]:
        if isinstance(prefixes, str) or len(prefixes := listed("prefixes", prefixes)) != count:
            raise ValueError(
                f"prefixes must have one entry for each of the {count} texts, received {prefixes!r:.80}."
            )
        return cut_rows("prefixes", prefixes, self.target_tokenizer, self.settings.max_length - 1)

    def _aligned(self, look: Look, sources: Rows, found: list[list[Hypothesis]]) -> list[list[Hypothesis]]:
        """Add the alignments of one batch."""
        weights = weights_of(self.searching, look, sources, [[each.tokens for each in row] for row in found])
        read = [pieces(self.source_tokenizer, source) for source in sources]
        return [
            [
                each._replace(
                    alignment=part,
                    source_pieces=read[b],
                    pieces=pieces(self.target_tokenizer, each.tokens),
                )
                for each, part in zip(row, weights[b], strict=True)
            ]
            for b, row in enumerate(found)
        ]

    def _decode(
        self, searching: Decoding, sources: Rows, prefixes: Rows | None, seeds: Rows | None, n_best: int
    ) -> list[list[Hypothesis]]:
        """Search one batch."""
        after = None if prefixes is None else pad_for(self.settings, [[BOS_ID, *row] for row in prefixes])
        drawn = None if seeds is None else pad_for(self.settings, seeds, 1)
        result = searching.search(pad_for(self.settings, sources), after, drawn)
        given = [[] for _ in sources] if prefixes is None else [row.tolist() for row in prefixes]
        ids = [
            [before + row for row in rows]
            for before, rows in zip(given, generated_ids(result, len(sources), n_best), strict=True)
        ]
        flat = self.target_tokenizer.detokenize(pad_rows([row for rows in ids for row in rows])).numpy()
        return hypotheses(result, flat.reshape(-1, n_best), ids)
