"""What a search returns."""

from typing import Any, NamedTuple

from keras import ops

from keras_seq2seq.search.buffer import pick

__all__ = ["SearchResult"]


class SearchResult(NamedTuple):
    """The N best hypotheses of each source, best first, finished before unfinished.

    Where a beam finds fewer than N, the other places are empty, unfinished, and have a score of -1e9.

    Attributes:
        tokens: int32 `[B, N, L]`, without BOS, ending in EOS when finished, then pads.
        lengths: int32 `[B, N]`, EOS counted.
        scores: float32 `[B, N]`, under the strategy's rule.
        finished: bool `[B, N]`, False for hypotheses that were cut at the limit.
        token_scores: float32 `[B, N, L]`, the log-probability of each token under the model, banned ids taken
            out before normalising; 0 behind the end. Their sum is log P of the hypothesis.
    """

    tokens: Any
    lengths: Any
    scores: Any
    finished: Any
    token_scores: Any

    def pick(self, place):
        """Return the hypotheses `place`, int32 `[B, N]`, of each source."""
        return SearchResult(*(pick(part, place) for part in self))

    def best(self, count):
        """Return the `count` best hypotheses: finished ones first, the highest score first."""
        size = self.scores.shape[1]
        _, place = ops.top_k(self.scores, size)
        # Finished ones to the front; within both groups the order stays.
        behind = ops.where(pick(self.finished, place), 0, size) + ops.arange(size)
        _, group = ops.top_k(-behind, count)
        return self.pick(pick(place, group))
