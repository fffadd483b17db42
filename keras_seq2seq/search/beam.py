"""Beam search.

Legend: B sources, W beam width, V vocabulary, L maximum length, N returned hypotheses.
"""

import math
from dataclasses import KW_ONLY, dataclass

from keras import ops

from keras_seq2seq.search.buffer import pick, write
from keras_seq2seq.search.constraints import BANNED
from keras_seq2seq.search.result import SearchResult
from keras_seq2seq.search.top_k import top_k

__all__ = ["Beam"]

# Below every real log-probability, and finite: an impossible candidate stays comparable and never NaN.
IMPOSSIBLE = -1e9


@dataclass(frozen=True)
class Beam:
    """Keep the W most probable hypotheses in every step.

    Of the 2W best candidates only the top W may finish, and W of the others go on. With `stop="first"` a
    source that has W finished hypotheses is frozen; then a beam of 1 equals greedy search and no source
    depends on its neighbours. With `stop="bound"` it goes on until no open hypothesis can beat the finished
    ones.

    Scores, for a hypothesis of n tokens with EOS and log-probability logP: `penalty="average"`
    logP / n**a; `"gnmt"` logP / ((5 + n) / 6)**a (Wu et al. 2016, equation 14); a = 0 is logP.

    A coverage penalty b adds b * sum_j log(min(sum_i a_ij, 1)), which is at most 0, a_ij being how much
    target token i attends to source token j (the same equation; `coverage.py` says which attention). It needs
    whole hypotheses: the search goes by the scores above, and the W that it ends with are ranked anew.

    Args:
        width: W.
        length_penalty: a.
        penalty: "average" or "gnmt".
        coverage_penalty: b, for a model that attends to a source.
        n_best: N, how many hypotheses to return.
        stop: "first" or "bound".

    Raises:
        ValueError: an impossible value.

    Example:
        >>> model = ks.models.transformer_seq2seq(50, size="tiny", num_layers=1)
        >>> beam = ks.search.Beam(4, length_penalty=0.6, n_best=2)
        >>> found = ks.search.search(model, {"source": np.array([[8, 9, 3]])}, beam, max_length=6)
        >>> tuple(found.tokens.shape), tuple(found.scores.shape)
        ((1, 2, 6), (1, 2))
    """

    width: int
    _: KW_ONLY
    length_penalty: float = 1.0
    penalty: str = "average"
    coverage_penalty: float = 0.0
    n_best: int = 1
    stop: str = "first"

    def __post_init__(self):
        for name in ("width", "n_best"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise ValueError(f"{name} must be an integer, received {value!r}.")
        if self.width < 1:
            raise ValueError(f"width must be at least 1, received {self.width}.")
        penalty = self.length_penalty
        if isinstance(penalty, bool) or not isinstance(penalty, (int, float)) or not math.isfinite(penalty):
            raise ValueError(f"length_penalty must be a finite number, received {penalty!r}.")
        covers = self.coverage_penalty
        if isinstance(covers, bool) or not isinstance(covers, (int, float)) or not 0 <= covers < math.inf:
            raise ValueError(f"coverage_penalty must be a finite number of at least 0, received {covers!r}.")
        if not 1 <= self.n_best <= self.width:
            raise ValueError(
                f"n_best must be between 1 and the beam's width of {self.width}, received {self.n_best}."
            )
        if self.penalty not in ("average", "gnmt"):
            raise ValueError(f'penalty must be "average" or "gnmt", received {self.penalty!r}.')
        if self.stop not in ("first", "bound"):
            raise ValueError(f'stop must be "first" or "bound", received {self.stop!r}.')

    def normalize(self, log_probability, length):
        """Return the score of a hypothesis of `length` tokens."""
        length = ops.cast(length, "float32")
        base = length if self.penalty == "average" else (5.0 + length) / 6.0
        return log_probability / base**self.length_penalty

    def begin(self, batch, limits):
        """Return one empty hypothesis for each source, and W-1 impossible ones."""
        shape = batch, self.width, limits.max_length
        tokens, token_scores = ops.full(shape, limits.pad_id, dtype="int32"), ops.zeros(shape, "float32")
        first = ops.arange(self.width) == 0
        return {
            "tokens": tokens,
            "token_scores": token_scores,
            "log_probability": ops.broadcast_to(
                ops.where(first, 0.0, IMPOSSIBLE)[None, :], (batch, self.width)
            ),
            "length": ops.zeros((batch,), "int32"),
            "finished_tokens": tokens,
            "finished_token_scores": token_scores,
            "finished_lengths": ops.zeros((batch, self.width), "int32"),
            "finished_scores": ops.full((batch, self.width), IMPOSSIBLE, dtype="float32"),
            "frozen": limits.row_limit <= 0,
        }

    def advance(self, logits, state, index, limits):
        """Extend every open hypothesis; move those that end to the finished ones."""
        score, parent, token, token_score = self._candidates(logits, state["log_probability"])
        ends = token == limits.eos_id
        may_finish = ops.logical_and(ends, ops.arange(score.shape[1]) < self.width)
        may_finish = ops.logical_and(may_finish, score > IMPOSSIBLE / 2)
        # W candidates that go on, in order; there are that many, as a hypothesis has one EOS at most.
        going = ops.where(ends, 2 * IMPOSSIBLE, score)
        going, chosen = ops.top_k(going, self.width)
        next_parent, next_token = pick(parent, chosen), pick(token, chosen)
        new = {
            "tokens": write(pick(state["tokens"], next_parent), index, next_token),
            "token_scores": write(pick(state["token_scores"], next_parent), index, pick(token_score, chosen)),
            "log_probability": ops.maximum(going, IMPOSSIBLE),
            "length": state["length"] + 1,
            **self._finish(state, score, parent, token_score, may_finish, index, limits),
        }
        new["frozen"] = self._is_frozen(new, index, limits)
        # Nothing at all is possible: a dead end, where the source is left as it is.
        stuck = score[:, 0] <= IMPOSSIBLE / 2
        keep = ops.logical_or(state["frozen"], stuck)
        state = {name: _unless(keep, new[name], state[name]) for name in state}
        return next_token, next_parent, {**state, "frozen": ops.logical_or(state["frozen"], stuck)}

    def _candidates(self, logits, log_probability):
        """Return the best min(2W, WV) extensions.

        Their log-probability, parent, token, and the log-probability of that token alone, each `[B, 2W]`.
        The best 2W of a source are among the best 2W of each of its hypotheses, so the softmax is needed
        only through its normaliser.
        """
        vocabulary = logits.shape[-1]
        best = min(2 * self.width, vocabulary)
        values, tokens = top_k(logits, best)  # [B, W, 2W]
        # A banned token, and whatever continues an impossible hypothesis, is exactly IMPOSSIBLE; the former
        # before normalising, which would make tokens that are all banned probable.
        normaliser = ops.logsumexp(logits, axis=-1, keepdims=True)
        values = ops.where(values > BANNED / 2, values - normaliser, IMPOSSIBLE)
        total = values + ops.expand_dims(log_probability, -1)
        flat = -1, self.width * best
        score, place = ops.top_k(
            ops.reshape(ops.maximum(total, IMPOSSIBLE), flat), min(2 * self.width, flat[1])
        )
        token, token_score = (pick(ops.reshape(part, flat), place) for part in (tokens, values))
        return score, ops.cast(place // best, "int32"), token, token_score

    def _finish(self, state, score, parent, token_score, may_finish, index, limits):
        """Merge the candidates that end into the W best finished hypotheses."""
        lead = slice(None), slice(0, self.width)
        score, parent, token_score = score[lead], parent[lead], token_score[lead]
        score = ops.where(may_finish[lead], self.normalize(score, index + 1), IMPOSSIBLE)
        tokens = write(pick(state["tokens"], parent), index, ops.full_like(parent, limits.eos_id))
        token_scores = write(pick(state["token_scores"], parent), index, token_score)
        lengths = ops.broadcast_to(index + 1, ops.shape(score))
        scores = ops.concatenate([state["finished_scores"], score], axis=1)
        tokens = ops.concatenate([state["finished_tokens"], tokens], axis=1)
        token_scores = ops.concatenate([state["finished_token_scores"], token_scores], axis=1)
        lengths = ops.concatenate([state["finished_lengths"], ops.cast(lengths, "int32")], axis=1)
        scores, kept = ops.top_k(scores, self.width)
        return {
            "finished_scores": scores,
            "finished_tokens": pick(tokens, kept),
            "finished_token_scores": pick(token_scores, kept),
            "finished_lengths": pick(lengths, kept),
        }

    def _is_frozen(self, state, index, limits):
        worst = state["finished_scores"][:, -1]
        full = worst > IMPOSSIBLE / 2
        if self.stop == "bound":
            # The best that the best open hypothesis could still become, ending next or at the limit.
            lead = ops.max(state["log_probability"], axis=1)
            bound = ops.maximum(
                self.normalize(lead, index + 2),
                self.normalize(lead, ops.maximum(limits.row_limit, index + 2)),
            )
            full = ops.logical_and(full, worst >= bound)
        return ops.logical_or(full, index + 1 >= limits.row_limit)

    def tokens(self, state):
        """Return the tokens so far, `[B, W, L]`."""
        return state["tokens"]

    def open_rows(self, state, index, limits):
        """Say which sources are not frozen, bool `[B]`."""
        return ops.logical_not(state["frozen"])

    def done(self, state, index, limits):
        """Say whether no source is open."""
        return ops.all(state["frozen"])

    def result(self, state, limits):
        """Return the N best, unfinished ones last; all W where they are to be ranked anew."""
        finished = state["finished_scores"] > IMPOSSIBLE / 2
        # Where fewer than W tokens are allowed, some of the W hypotheses do not exist: they come out empty.
        exists = state["log_probability"] > IMPOSSIBLE / 2
        length = ops.where(exists, state["length"][:, None], 0)
        ended = SearchResult(
            state["finished_tokens"],
            state["finished_lengths"],
            state["finished_scores"],
            finished,
            state["finished_token_scores"],
        )
        cut = SearchResult(
            ops.where(exists[..., None], state["tokens"], limits.pad_id),
            length,
            self.normalize(state["log_probability"], ops.maximum(length, 1)),
            ops.zeros_like(finished),
            ops.where(exists[..., None], state["token_scores"], 0.0),
        )
        # Finished ones keep their order, then the open ones theirs: both lists are sorted. Empty places of
        # the finished ones go behind everything.
        rank = ops.broadcast_to(ops.arange(self.width), ops.shape(finished))
        order = ops.concatenate([ops.where(finished, rank, 4 * self.width), rank + self.width], axis=1)
        _, place = ops.top_k(-order, self.width if self.coverage_penalty else self.n_best)
        both = (ops.concatenate(parts, axis=1) for parts in zip(ended, cut, strict=True))
        return SearchResult(*both).pick(place)


def _unless(frozen, new, old):
    """Keep `old` in frozen rows."""
    return ops.where(ops.reshape(frozen, (-1, *[1] * (len(new.shape) - 1))), old, new)
