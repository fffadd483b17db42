"""`Generator`: strings in, what follows them out."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from keras_seq2seq.search import Greedy
from keras_seq2seq.serving.batching import in_batches, pad_for, pad_rows
from keras_seq2seq.serving.buckets import XLABuckets
from keras_seq2seq.serving.compiled import SCORE_LOGITS
from keras_seq2seq.serving.generation import Generation, completions
from keras_seq2seq.serving.generator_signatures import GeneratorFunctions
from keras_seq2seq.serving.results import Hypothesis, TargetScore, generated_ids, hypotheses, target_scores
from keras_seq2seq.serving.rows import last_rows, scored_rows, strings
from keras_seq2seq.serving.rules import forbidden_ids
from keras_seq2seq.serving.seeds import column, place_seeds
from keras_seq2seq.serving.served import check_n_best, check_parts, check_vocabulary, require_tensorflow
from keras_seq2seq.serving.settings import GeneratorSettings
from keras_seq2seq.serving.streaming import check_streams, chunks
from keras_seq2seq.serving.text_model import TextModel
from keras_seq2seq.text import BOS_ID, Tokenizer

__all__ = ["Generator"]

Text = str | Sequence[int]


class Generator(TextModel[Generation]):
    """A language model with its tokenizer and a search: on a string it gives what follows, on a list a list.

    The completion of a text does not depend on what else is completed with it; samples depend on the seed and
    on the place of the text in the list, and on no other random numbers. Every text is a legal prompt,
    the empty one and blank ones, too: the model reads BOS and the text's tokens. A prompt of more than
    `max_prompt_length` tokens keeps only the last of them, with a warning. A completion has at most
    `max_new_tokens` tokens, EOS counted; one that is cut there has `finished=False`. A model that was trained
    on blocks never saw an EOS, and all its completions are cut.

    Learned positions hold prompt and completion together: `max_prompt_length` + `max_new_tokens` is at most
    their number.

    Args:
        model: a `LanguageModel`, or any Keras model from `{"target": ids}` to logits. Without `start` and
            `step` it is searched by whole passes, which is right and slow.
        tokenizer: for prompts and completions.
        strategy: of `keras_seq2seq.search`; default `Greedy()`.
        max_new_tokens: see above; default 256, or up to half of the learned positions.
        max_prompt_length: see above, BOS not counted; default 1024, or the rest of the learned positions.
        min_new_tokens: the fewest tokens of a completion, EOS counted.
        forbidden_tokens: what is never written: ids, and strings that are one token of the tokenizer.
        no_repeat_ngram: no n tokens in a row occur twice in a text, its prompt counted; 0 allows it.
        score_eos: whether `score` counts an EOS after a text: True is right for a model trained on lines,
            each with its end, False for one trained on blocks.
        batch_size: the most texts in a batch. Texts are sorted by length, batched and put back in order.
        tokens_per_batch: the most tokens in a batch: prompts, pads and `max_new_tokens`, every hypothesis
            counted.
        jit_compile: compile the search with XLA, once for each of a few shapes: seconds for every new
            shape, and then faster. By default one graph serves all shapes.

    Raises:
        ValueError: a tokenizer with another vocabulary than the model, or a setting out of range.
    """

    KIND: ClassVar[str] = "Generator"
    SIDES: ClassVar[dict[str, str]] = {"text": "tokenizer"}

    def __init__(
        self,
        model: Any,
        tokenizer: Tokenizer,
        strategy: Any = None,
        *,
        max_new_tokens: int | None = None,
        max_prompt_length: int | None = None,
        min_new_tokens: int = 0,
        forbidden_tokens: Iterable[int | str] = (),
        no_repeat_ngram: int = 0,
        score_eos: bool = False,
        batch_size: int = 64,
        tokens_per_batch: int = 16384,
        jit_compile: bool = False,
    ):
        require_tensorflow("Generator")
        self.model = model
        self.tokenizer = tokenizer
        self.strategy = Greedy() if strategy is None else strategy
        check_parts(self.strategy, tokenizer=tokenizer)
        self.settings = GeneratorSettings.for_model(
            model,
            max_new_tokens=max_new_tokens,
            max_prompt_length=max_prompt_length,
            min_new_tokens=min_new_tokens,
            forbidden_tokens=forbidden_ids(forbidden_tokens, tokenizer),
            no_repeat_ngram=no_repeat_ngram,
            score_eos=score_eos,
            batch_size=batch_size,
            tokens_per_batch=tokens_per_batch,
            jit_compile=jit_compile,
        )
        self.searching = Generation(model, self.strategy, self.settings)
        check_vocabulary("tokenizer", tokenizer, model.output_shape[-1])

    def __call__(self, texts: Any, *, offset: int = 0) -> Any:
        """Complete a string by a string, or a list of strings by a list, in order; without the prompts.

        Args:
            texts: a string or a list of strings.
            offset: for `Sampling`; see `generate`.
        """
        best = [row[0].text for row in self.generate(texts, offset=offset)]
        return best[0] if isinstance(texts, str) else best

    def generate(
        self, texts: str | Iterable[str], n_best: int = 1, *, offset: int = 0
    ) -> list[list[Hypothesis]]:
        """Complete texts, with all there is to know about the completions.

        Args:
            texts: the prompts; one string is a list of one.
            n_best: how many hypotheses for each text, at most what the strategy returns.
            offset: for `Sampling`, which draws by a text's place in the list: the place of the first text,
                where a long list is given in parts.

        Returns:
            For each text `n_best` hypotheses, best first, finished before unfinished. Their text and tokens
            are those of the completion alone, and so is the score.

        Raises:
            ValueError: `n_best` out of range.
            TypeError: texts that are no strings.
        """
        texts = strings("texts", texts)
        check_n_best(n_best, self.strategy)
        return self._answer(self.searching, texts, n_best, place_seeds(self.strategy, len(texts), offset))

    def _answer(
        self, searching: Generation, texts: list[str], n_best: int, seeds: Any
    ) -> list[list[Hypothesis]]:
        """Complete in batches of similar length."""
        settings = self.settings
        prompts = last_rows("texts", texts, self.tokenizer, settings.max_prompt_length)

        def run(batch: list[int]) -> list[list[Hypothesis]]:
            rows = [prompts[row] for row in batch]
            return self._complete(searching, rows, column(seeds, batch), n_best)

        lengths = [1 + len(prompt) + settings.max_new_tokens for prompt in prompts]
        tokens = settings.tokens_per_batch // searching.strategy.width
        return in_batches(lengths, settings.batch_size, tokens, run)

    def stream(self, text: str) -> Iterator[str]:
        """Complete one text, and give the completion piece by piece while it is made.

        Joined, the pieces are what `generate` gives for this text alone. A piece is text that no later token
        can change: where a character takes several tokens, it comes when it is complete.

        Args:
            text: the prompt.

        Returns:
            An iterator of strings; none is empty.

        Raises:
            ValueError: a strategy that decides at the end, such as a beam.
            TypeError: a text that is no string.
        """
        check_streams(self.strategy)
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, received {text!r:.80}.")
        (prompt,) = last_rows("text", [text], self.tokenizer, self.settings.max_prompt_length)
        rows: list[Any] = [[[BOS_ID, *prompt]], column(place_seeds(self.strategy, 1, 0), [0])]
        ids = [pad_rows(each) for each in rows if each is not None]

        def text_of(tokens: list[int]) -> str:
            return completions(self.tokenizer, ids[0], pad_rows([tokens])[np.newaxis]).numpy()[0, 0].decode()

        return chunks(self.searching.steps(*ids), text_of)

    def score(self, texts: str | Sequence[Text]) -> Any:
        """Say how probable texts are: log P(text), as what follows BOS.

        Args:
            texts: a string, or a list of strings and lists of ids. An EOS counts after a string if
                `score_eos` is set, and of ids if they end in it. Texts of more tokens than
                `max_prompt_length` + `max_new_tokens` are cut, with a warning.

        Returns:
            A `TargetScore`, or a list of them. The perplexity of a text is exp(-score / token_count).

        Raises:
            ValueError: ids out of range.
        """
        if isinstance(texts, str):
            return self.score([texts])[0]
        settings = self.settings
        rows = scored_rows("texts", texts, self.tokenizer, settings.window, settings.score_eos)

        def run(batch: list[int]) -> list[TargetScore]:
            return target_scores(*self.searching.score(pad_rows([[BOS_ID, *rows[row]] for row in batch])))

        tokens = min(settings.tokens_per_batch, SCORE_LOGITS // self.model.output_shape[-1])
        return in_batches([1 + len(row) for row in rows], settings.batch_size, tokens, run)

    def functions(self, n_best: int, xla: XLABuckets | None = None) -> GeneratorFunctions:
        """Return what an export contains."""
        return GeneratorFunctions(self, n_best, xla)

    def _complete(
        self, searching: Generation, prompts: list[np.ndarray], seeds: Any, n_best: int
    ) -> list[list[Hypothesis]]:
        """Search one batch."""
        rows = [[BOS_ID, *prompt] for prompt in prompts]
        given = pad_for(self.settings, rows, 1 + self.settings.max_prompt_length)
        drawn = None if seeds is None else pad_for(self.settings, seeds, 1)
        result = searching.search(given, drawn)
        texts = completions(self.tokenizer, given, result.tokens[:, :n_best]).numpy()
        return hypotheses(result, texts, generated_ids(result, len(prompts), n_best))
