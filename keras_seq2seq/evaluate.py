"""How good is the output: BLEU, chrF, TER, exact match and error rate of a whole corpus.

Every function takes the hypotheses, a list of strings, and for each of them one reference
or a list of references, and gives a `Score` in percent. BLEU, chrF and TER are computed by
sacrebleu, and each score carries the signature that says how.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU, CHRF, TER

__all__ = [
    "LengthBin",
    "Score",
    "Scores",
    "bleu",
    "bleu_by_length",
    "chrf",
    "edit_distance",
    "error_rate",
    "exact_match",
    "scores",
    "ter",
]

References = Sequence[str | Sequence[str]]

_UNITS: dict[str, Callable[[str], Sequence[str]]] = {"word": str.split, "character": list}


@dataclass(frozen=True)
class Score:
    """One number, in percent, and how it came about.

    Args:
        name: what was measured, as it is printed.
        value: the score in percent; error rates may exceed 100.
        signature: the settings, in sacrebleu's form.
    """

    name: str
    value: float
    signature: str

    def __str__(self) -> str:
        return f"{self.name} {self.value:.2f}  ({self.signature})"


@dataclass(frozen=True)
class Scores:
    """BLEU and chrF of one corpus; prints as one line, with the signature of BLEU.

    Args:
        bleu: the BLEU score.
        chrf: the chrF score.
    """

    bleu: Score
    chrf: Score

    def __str__(self) -> str:
        bleu, chrf = self.bleu, self.chrf
        return f"{bleu.name} {bleu.value:.2f}  {chrf.name} {chrf.value:.2f}  ({bleu.signature})"


@dataclass(frozen=True)
class LengthBin:
    """BLEU of those sentences whose sources have about the same length.

    Args:
        mean_length: of their sources.
        count: how many sentences.
        score: their BLEU.
        low: where the 95 % interval of the bootstrap begins.
        high: where it ends.
    """

    mean_length: float
    count: int
    score: Score
    low: float
    high: float


def scores(
    hypotheses: Sequence[str], references: References, *, tokenize: str = "13a", lowercase: bool = False
) -> Scores:
    """Score a corpus by BLEU and chrF.

    Args:
        hypotheses: the translations.
        references: for each translation one reference, or a list of them.
        tokenize: how BLEU splits text into words; see `bleu`.
        lowercase: ignore case.

    Returns:
        `Scores`, which prints as `BLEU 23.45  chrF 20.10  (signature)`.

    Raises:
        ValueError: if there is nothing to score, the lengths differ or `tokenize` is unknown.
    """
    return Scores(
        bleu(hypotheses, references, tokenize=tokenize, lowercase=lowercase),
        chrf(hypotheses, references, lowercase=lowercase),
    )


def bleu(
    hypotheses: Sequence[str], references: References, *, tokenize: str = "13a", lowercase: bool = False
) -> Score:
    """Score a corpus by BLEU (Papineni et al., 2002), as sacrebleu computes it (Post, 2018).

    Args:
        hypotheses: the translations.
        references: for each translation one reference, or a list of them.
        tokenize: `"13a"` for most languages, `"zh"` for Chinese, `"char"`, `"intl"`, `"none"` for
            text whose words are already separated by spaces, or another name sacrebleu knows.
        lowercase: ignore case.

    Raises:
        ValueError: if there is nothing to score, the lengths differ or `tokenize` is unknown.

    Example:
        >>> score = ks.evaluate.bleu(["a dog runs on the beach"], ["a dog runs along the beach"])
        >>> score.name, round(score.value, 1)
        ('BLEU', 38.0)
    """
    if tokenize not in BLEU.TOKENIZERS:
        names = ", ".join(BLEU.TOKENIZERS)
        raise ValueError(f"`tokenize` is {tokenize!r}: expected one of {names}.")
    return _sacrebleu("BLEU", BLEU(tokenize=tokenize, lowercase=lowercase), hypotheses, references)


def bleu_by_length(
    hypotheses: Sequence[str],
    references: References,
    lengths: Sequence[int],
    *,
    bins: int = 6,
    smallest: int = 50,
    tokenize: str = "13a",
    samples: int = 1000,
) -> list[LengthBin]:
    """Score short and long sentences apart (as Bahdanau et al., 2015, figure 2).

    Args:
        hypotheses: the translations.
        references: for each translation one reference, or a list of them.
        lengths: the length of each source.
        bins: how many bins at most; sentences of one length are in one bin.
        smallest: how many sentences a bin has at least, unless there are fewer in all.
        tokenize: see `bleu`.
        samples: of the bootstrap (Koehn, 2004), by sacrebleu with its fixed seed.

    Returns:
        The bins, from short to long; together they hold each sentence once.

    Raises:
        ValueError: as `bleu`, or if there is not one length for each hypothesis.
    """
    answers = _reference_lists(hypotheses, references)
    if len(lengths) != len(hypotheses):
        raise ValueError(f"`lengths` has {len(lengths)} entries: expected {len(hypotheses)}.")
    order = np.argsort(lengths, kind="stable")
    size = max(smallest, -(-len(order) // bins))
    groups: list[list[int]] = [[]]
    for place, i in enumerate(order):
        new_length = bool(groups[-1]) and lengths[groups[-1][-1]] != lengths[i]
        if new_length and len(groups[-1]) >= size and len(order) - place >= smallest:
            groups.append([])
        groups[-1].append(int(i))
    found = []
    for group in groups:
        chosen = [hypotheses[i] for i in group], [answers[i] for i in group]
        score = bleu(*chosen, tokenize=tokenize)
        sampled = BLEU(tokenize=tokenize).corpus_score(chosen[0], _streams(chosen[1]), n_bootstrap=samples)
        middle, half = sampled._mean, sampled._ci
        mean_length = float(np.mean([lengths[i] for i in group]))
        found.append(LengthBin(mean_length, len(group), score, middle - half, middle + half))
    return found


def chrf(
    hypotheses: Sequence[str], references: References, *, word_order: int = 0, lowercase: bool = False
) -> Score:
    """Score a corpus by chrF, the F-score of character n-grams (Popović, 2015).

    Args:
        hypotheses: the translations.
        references: for each translation one reference, or a list of them.
        word_order: count word n-grams up to this order too; 2 gives chrF++ (Popović, 2017).
        lowercase: ignore case.

    Raises:
        ValueError: if there is nothing to score or the lengths differ.
    """
    metric = CHRF(word_order=word_order, lowercase=lowercase)
    return _sacrebleu("chrF" + "+" * word_order, metric, hypotheses, references)


def ter(
    hypotheses: Sequence[str],
    references: References,
    *,
    normalized: bool = False,
    asian_support: bool = False,
    case_sensitive: bool = False,
) -> Score:
    """Score a corpus by TER, the translation edit rate (Snover et al., 2006); less is better.

    Args:
        hypotheses: the translations.
        references: for each translation one reference, or a list of them.
        normalized: split off punctuation first.
        asian_support: also split Chinese and Japanese text into characters; needs `normalized`.
        case_sensitive: tell upper from lower case.

    Raises:
        ValueError: if there is nothing to score, the lengths differ, or `asian_support` stands alone.
    """
    if asian_support and not normalized:
        raise ValueError("`asian_support` is True and `normalized` False: expected both to be True.")
    metric = TER(normalized=normalized, asian_support=asian_support, case_sensitive=case_sensitive)
    return _sacrebleu("TER", metric, hypotheses, references)


def exact_match(hypotheses: Sequence[str], references: References) -> Score:
    """Give the share of hypotheses that equal one of their references, white space at the ends aside.

    Args:
        hypotheses: the outputs.
        references: for each output one reference, or a list of them.

    Raises:
        ValueError: if there is nothing to score or the lengths differ.
    """
    answers = _reference_lists(hypotheses, references)
    hits = sum(
        hypothesis.strip() in {answer.strip() for answer in own}
        for hypothesis, own in zip(hypotheses, answers, strict=True)
    )
    return Score("exact match", 100 * hits / len(hypotheses), f"nrefs:{_count(answers)}|case:mixed")


def error_rate(hypotheses: Sequence[str], references: References, *, unit: str = "word") -> Score:
    """Give the edits needed to turn the hypotheses into their references, per unit of reference.

    ```
    rate = sum over items of edit_distance(hypothesis, nearest reference) / sum of its length
    ```

    The nearest of several references is the one with the fewest edits, and among those the
    longest. With phonemes separated by spaces and `unit="word"` this is the phoneme error
    rate of pronunciations; the share of wrong words is `100 - exact_match`.

    Args:
        hypotheses: the outputs.
        references: for each output one reference, or a list of them.
        unit: `"word"`, separated by white space, or `"character"`, white space included.

    Raises:
        ValueError: if there is nothing to score, the lengths differ or `unit` is unknown.
    """
    if unit not in _UNITS:
        raise ValueError(f"`unit` is {unit!r}: expected one of {', '.join(_UNITS)}.")
    split = _UNITS[unit]
    answers = _reference_lists(hypotheses, references)
    edits = length = 0
    for hypothesis, own in zip(hypotheses, answers, strict=True):
        units = split(hypothesis)
        pairs = [(edit_distance(units, target), -len(target)) for target in map(split, own)]
        fewest, negative_length = min(pairs)
        edits, length = edits + fewest, length - negative_length
    rate = edits / length if length else float(bool(edits))
    return Score(f"{unit} error rate", 100 * rate, f"nrefs:{_count(answers)}|case:mixed|unit:{unit}")


def edit_distance(first: Sequence[Any], second: Sequence[Any]) -> int:
    """Count the insertions, deletions and replacements that turn one sequence into another.

    Args:
        first: a string, or a sequence of words or ids.
        second: another.

    Returns:
        The Levenshtein distance.
    """
    ids: dict[Any, int] = {}
    columns = np.array([ids.setdefault(item, len(ids)) for item in second], dtype=np.int64)
    steps = np.arange(len(second) + 1)
    row = steps
    for item in first:
        changed = np.minimum(row[1:] + 1, row[:-1] + (columns != ids.get(item, -1)))
        row = np.concatenate([row[:1] + 1, changed])
        row = np.minimum.accumulate(row - steps) + steps  # insertions, all at once
    return int(row[-1])


def _sacrebleu(name: str, metric: Any, hypotheses: Sequence[str], references: References) -> Score:
    result = metric.corpus_score(hypotheses, _streams(_reference_lists(hypotheses, references)))
    return Score(name, result.score, str(metric.get_signature()))


def _streams(answers: list[list[str]]) -> Any:
    """Give the references as sacrebleu wants them: the first of every sentence, the second, and so on."""
    most = max(map(len, answers))
    return [[own[i] if i < len(own) else None for own in answers] for i in range(most)]


def _reference_lists(hypotheses: Sequence[str], references: References) -> list[list[str]]:
    """Give every hypothesis a list of references, once everything about them is checked."""
    for name, value in (("hypotheses", hypotheses), ("references", references)):
        if isinstance(value, str):
            raise ValueError(
                f"`{name}` is the string {value!r}: expected a list with one entry per sentence."
            )
    if len(hypotheses) != len(references):
        raise ValueError(
            f"`hypotheses` has {len(hypotheses)} entries and `references` {len(references)}: "
            "expected one reference, or one list of references, for each hypothesis."
        )
    if not hypotheses:
        raise ValueError("`hypotheses` is empty: expected at least one sentence.")
    answers = [[own] if isinstance(own, str) else list(own) for own in references]
    for i, (hypothesis, own) in enumerate(zip(hypotheses, answers, strict=True)):
        if not isinstance(hypothesis, str):
            raise ValueError(f"`hypotheses[{i}]` is {hypothesis!r}: expected a string.")
        if not own or not all(isinstance(answer, str) for answer in own):
            raise ValueError(f"`references[{i}]` is {references[i]!r}: expected a string or strings.")
    return answers


def _count(answers: list[list[str]]) -> str:
    counts = {len(own) for own in answers}
    return str(counts.pop()) if len(counts) == 1 else "var"
