"""Greedy search: the best token in every step."""

from dataclasses import dataclass

from keras import ops

from keras_seq2seq.search.buffer import write
from keras_seq2seq.search.constraints import BANNED
from keras_seq2seq.search.result import SearchResult
from keras_seq2seq.search.top_k import top_k

__all__ = ["Greedy"]


@dataclass(frozen=True)
class Greedy:
    """Take the most probable token until EOS. The score is log P, the sum over tokens, EOS in.

    Example:
        >>> model = ks.models.rnn_seq2seq(50, units=16)
        >>> inputs = {"source": np.array([[8, 9, 3]])}
        >>> found = ks.search.search(model, inputs, ks.search.Greedy(), max_length=6)
        >>> tuple(found.tokens.shape), bool(found.lengths[0, 0] <= 6)
        ((1, 1, 6), True)
    """

    width: int = 1

    def __post_init__(self):
        if self.width != 1:
            raise ValueError(f"greedy search keeps width=1 hypothesis, received width={self.width}.")

    def begin(self, batch, limits):
        """Return an empty hypothesis for each source."""
        return {
            "tokens": ops.full((batch, limits.max_length), limits.pad_id, dtype="int32"),
            "lengths": ops.zeros((batch,), "int32"),
            "token_scores": ops.zeros((batch, limits.max_length), "float32"),
            "finished": ops.zeros((batch,), "bool"),
        }

    def advance(self, logits, state, index, limits):
        """Append the best token to every open row."""
        logits = logits[:, 0]  # [B, V]
        highest, best = (part[:, 0] for part in top_k(logits, 1))
        log_probability = highest - ops.logsumexp(logits, axis=-1)
        open_ = ops.logical_and(self.open_rows(state, index, limits), highest > BANNED / 2)
        token = ops.where(open_, best, limits.pad_id)
        return (
            ops.expand_dims(token, 1),
            None,
            {
                "tokens": write(state["tokens"], index, token),
                "lengths": state["lengths"] + ops.cast(open_, "int32"),
                "token_scores": write(state["token_scores"], index, ops.where(open_, log_probability, 0.0)),
                "finished": ops.logical_or(state["finished"], ops.logical_and(open_, best == limits.eos_id)),
            },
        )

    def tokens(self, state):
        """Return the tokens so far, `[B, 1, L]`."""
        return ops.expand_dims(state["tokens"], 1)

    def open_rows(self, state, index, limits):
        """Say which rows have neither ended nor reached their limit nor a dead end, bool `[B]`."""
        open_ = ops.logical_and(ops.logical_not(state["finished"]), index < limits.row_limit)
        # A row where every token was banned has not grown.
        return ops.logical_and(open_, state["lengths"] == index)

    def done(self, state, index, limits):
        """Say whether no row is open."""
        return ops.logical_not(ops.any(self.open_rows(state, index, limits)))

    def result(self, state, limits):
        """Return one hypothesis a source."""
        token_scores = state["token_scores"]
        parts = state["tokens"], state["lengths"], ops.sum(token_scores, -1), state["finished"], token_scores
        return SearchResult(*(ops.expand_dims(part, 1) for part in parts))
