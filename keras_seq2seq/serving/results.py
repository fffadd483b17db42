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
        alignment: where it was asked for, float32 `[len(tokens), source tokens]`: how much each token
            attended to each source token. Row t belongs to `tokens[t]`; rows sum to 1. EOS has its row and
            its column, as it is among the tokens; pads and BOS have none.
        finished: False when it was cut at the limit.
        token_scores: the log-probability of each token; of a forced prefix 0. Their sum is log P.
        source_pieces: where there is an alignment, the text of each source token by itself.
        pieces: likewise of each of `tokens`.
    """

    text: str
    score: float
    tokens: list[int]
    alignment: Any
    finished: bool
    token_scores: list[float] | None = None
    source_pieces: list[str] | None = None
    pieces: list[str] | None = None


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
    """Give each row's texts and ids, both best first, the scores of a `SearchResult`.

    Ids may begin with a prefix, which was forced and has the log-probability 0.
    """
    parts = result.scores, result.finished, result.lengths, result.token_scores
    scores, finished, lengths, steps = map(np.asarray, parts)

    def hypothesis(b: int, n: int, tokens: list[int]) -> Hypothesis:
        length = lengths[b, n]
        token_scores = [0.0] * (len(tokens) - length) + steps[b, n, :length].tolist()
        text, score = texts[b][n].decode(), float(scores[b, n])
        return Hypothesis(text, score, tokens, None, bool(finished[b, n]), token_scores)

    return [[hypothesis(b, n, tokens) for n, tokens in enumerate(row)] for b, row in enumerate(ids)]


def target_scores(scores: Any, counts: Any) -> list[TargetScore]:
    """Join sums of log-probabilities float32 `[B]` and numbers of tokens int32 `[B]`."""
    return [
        TargetScore(float(score), int(count))
        for score, count in zip(np.asarray(scores), np.asarray(counts), strict=True)
    ]
