"""What comes back for a text."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Hypothesis", "TargetScore", "generated_ids", "hypotheses", "target_scores"]


class Hypothesis(NamedTuple):
    """One translation, or one completion, of a text.

    Attributes:
        text: the translation, a forced prefix included; or the completion, without its prompt.
        score: under the strategy's rule; of a blank text's translation 0.
        tokens: the ids of it, ending in EOS when it is finished.
        alignment: None.
        finished: False when it was cut at the limit.
    """

    text: str
    score: float
    tokens: list[int]
    alignment: Any
    finished: bool


class TargetScore(NamedTuple):
    """How probable a model holds a text to be.

    Attributes:
        score: log P, of a translation given its source; the sum over tokens, without any penalty.
        token_count: the number of tokens. `math.exp(-score / token_count)` is the perplexity.
    """

    score: float
    token_count: int


def generated_ids(result: Any, rows: int, n_best: int) -> list[list[list[int]]]:
    """Return the ids of the first `n_best` hypotheses of the first `rows` rows of a `SearchResult`."""
    tokens, lengths = np.asarray(result.tokens), np.asarray(result.lengths)
    return [[tokens[b, n, : lengths[b, n]].tolist() for n in range(n_best)] for b in range(rows)]


def hypotheses(
    result: Any, texts: Sequence[Sequence[bytes]], ids: list[list[list[int]]]
) -> list[list[Hypothesis]]:
    """Give each row's texts and ids, both best first, the scores of a `SearchResult`."""
    scores, finished = np.asarray(result.scores), np.asarray(result.finished)
    return [
        [
            Hypothesis(texts[b][n].decode(), float(scores[b, n]), tokens, None, bool(finished[b, n]))
            for n, tokens in enumerate(row)
        ]
        for b, row in enumerate(ids)
    ]


def target_scores(scores: Any, counts: Any) -> list[TargetScore]:
    """Join sums of log-probabilities float32 `[B]` and numbers of tokens int32 `[B]`."""
    return [
        TargetScore(float(score), int(count))
        for score, count in zip(np.asarray(scores), np.asarray(counts), strict=True)
    ]
