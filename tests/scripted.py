"""A scripted model for tests of the search alone, and plain-Python searches that judge it."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from keras import ops
from references import log_softmax

from keras_seq2seq.models.protocol import DecodeState, reorder_rows
from keras_seq2seq.search import SearchResult, search

__all__ = [
    "BOS",
    "EOS",
    "PAD",
    "Blocked",
    "Found",
    "ScriptedModel",
    "enumerate_all",
    "plain_beam",
    "run",
    "tables",
]

PAD, UNK, BOS, EOS = range(4)


class Found(NamedTuple):
    """A hypothesis: its tokens with EOS, its score, whether it ended."""

    tokens: tuple[int, ...]
    score: float
    finished: bool


def tables(rows: int, vocabulary: int, seed: int = 0, scale: float = 1.5) -> np.ndarray:
    """Draw random logits `[rows, M, V]`; M is large, as paths through the same states would tie."""
    states = 997
    return np.random.default_rng(seed).normal(0, scale, (rows, states, vocabulary)).astype("float32")


class ScriptedModel:
    """A model whose logits are looked up by source and by a number made of all tokens read so far.

    That number is its carry: if the search reordered it wrongly, or gave a row another row's source, other
    logits would come out.

    Args:
        table: `[N, M, V]`. Source row `[[n]]` is served by `table[n]`.
    """

    def __init__(self, table: np.ndarray) -> None:
        self.table = table

    @staticmethod
    def next(state, token, states: int):
        """Return the number after `token`."""
        return (state * 31 + token + 1) % states

    def start(self, inputs: dict, max_length: int, hypotheses: int = 1) -> DecodeState:
        table = ops.take(ops.convert_to_tensor(self.table), inputs["source"][:, 0], axis=0)  # [B, M, V]
        rows = ops.shape(table)[0] * hypotheses
        return DecodeState({"table": table}, {"state": ops.zeros((rows,), "int32")}, inputs["target"][:, -1])

    def step(self, token: Any, index: Any, carry: dict, context: dict) -> tuple[Any, dict]:
        table = context["table"]
        sources, states, vocabulary = ops.shape(table)[0], table.shape[1], table.shape[2]
        state = self.next(carry["state"], token, states)
        source = ops.arange(ops.shape(state)[0]) // (ops.shape(state)[0] // sources)
        flat = ops.reshape(table, (-1, vocabulary))
        return ops.take(flat, source * states + state, axis=0), {"state": state}

    def reorder(self, carry: dict, parent: Any) -> dict:
        return reorder_rows(carry, parent)

    def log_probabilities(self, source: int, tokens: Sequence[int], min_length: int = 0) -> np.ndarray:
        """Return log P of each next token `[V]`, PAD and BOS banned before normalising."""
        state = 0
        for token in (BOS, *tokens):
            state = self.next(state, token, self.table.shape[1])
        logits = self.table[source, state].astype("float64")
        logits[[PAD, BOS]] = -np.inf
        if len(tokens) + 1 < min_length:
            logits[EOS] = -np.inf
        return log_softmax(logits)


class Blocked(ScriptedModel):
    """A scripted model after whose tokens few may follow, and often none.

    Args:
        rows: N.
        banned: the logit of what may not.
    """

    def __init__(self, rows: int, banned: float = -1e9) -> None:
        table = tables(rows, 8, seed=6)
        blocked = np.random.default_rng(6).random(table.shape) < 0.7
        super().__init__(np.where(blocked, np.float32(banned), table))
        self.plain = ScriptedModel(np.where(blocked, -np.inf, table))

    def log_probabilities(self, source: int, tokens: Sequence[int], min_length: int = 0) -> np.ndarray:
        """Return log P of each next token `[V]`, -inf or NaN where none may follow."""
        with np.errstate(invalid="ignore"):
            return self.plain.log_probabilities(source, tokens, min_length)


def normalize(log_probability: float, length: int, penalty: str, a: float) -> float:
    """Score by the documented formulas."""
    return log_probability / (length if penalty == "average" else (5 + length) / 6) ** a


def plain_beam(
    model: ScriptedModel,
    source: int,
    width: int,
    limit: int,
    *,
    penalty: str = "average",
    a: float = 1.0,
    stop: str = "first",
    min_length: int = 0,
) -> list[Found]:
    """Search one source with lists, as `Beam` is documented; `stop="never"` goes on to the limit."""
    open_: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    finished: list[tuple[float, tuple[int, ...]]] = []
    for step in range(limit):
        candidates = [
            (score + step_score, (*tokens, token))
            for score, tokens in open_
            for token, step_score in enumerate(model.log_probabilities(source, tokens, min_length))
            if np.isfinite(step_score)
        ]
        if not candidates:
            break
        candidates = sorted(candidates, reverse=True)[: 2 * width]
        ended = [c for c in candidates[:width] if c[1][-1] == EOS]
        finished += [(normalize(score, len(tokens), penalty, a), tokens) for score, tokens in ended]
        finished = sorted(finished, reverse=True)[:width]
        open_ = [c for c in candidates if c[1][-1] != EOS][:width]
        if len(finished) == width and open_ and stop != "never":
            reachable = [normalize(open_[0][0], n, penalty, a) for n in range(step + 2, limit + 1)]
            if stop == "first" or finished[-1][0] >= max(reachable, default=-np.inf):
                break
    rest = [
        Found(tokens, normalize(score, max(len(tokens), 1), penalty, a), False) for score, tokens in open_
    ]
    return [Found(tokens, score, True) for score, tokens in finished] + rest


def enumerate_all(model: ScriptedModel, source: int, limit: int, penalty: str, a: float) -> list[Found]:
    """List every sequence there is: the ended ones, best first, then those as long as the limit."""

    def grow(tokens: tuple[int, ...], score: float) -> Iterator[Found]:
        if tokens and (tokens[-1] == EOS or len(tokens) == limit):
            yield Found(tokens, normalize(score, len(tokens), penalty, a), tokens[-1] == EOS)
            return
        for token, step_score in enumerate(model.log_probabilities(source, tokens)):
            if np.isfinite(step_score):
                yield from grow((*tokens, token), score + step_score)

    return sorted(grow((), 0.0), key=lambda found: (not found.finished, -found.score))


def run(mode: str, model, source: np.ndarray, strategy, **options) -> SearchResult:
    """Search in the given mode, "eager", "graph" or "xla", and return NumPy arrays."""

    def call(inputs: dict) -> SearchResult:
        return search(model, inputs, strategy, **options)

    if mode != "eager":
        call = tf.function(call, autograph=False, jit_compile=mode == "xla")
    return SearchResult(*(np.asarray(part) for part in call({"source": tf.constant(source)})))


def found(result: SearchResult, row: int) -> list[Found]:
    """Read one row's hypotheses, checking that nothing but pads stands behind them."""
    hypotheses = []
    for tokens, length, score, finished, token_scores in zip(*(part[row] for part in result), strict=True):
        ids = tuple(int(token) for token in tokens[:length])
        assert not tokens[length:].any(), "pads alone may follow a hypothesis"
        assert not token_scores[length:].any(), "a token score belongs to a token"
        assert (token_scores[:length] < 1e-6).all()
        assert not {PAD, BOS} & set(ids), "PAD and BOS are never generated"
        assert EOS not in ids[:-1], "nothing follows EOS"
        assert finished == (ids[-1:] == (EOS,))
        hypotheses.append(Found(ids, float(score), bool(finished)))
    return hypotheses


def assert_same(ours: Sequence[Found], expected: Sequence[Found], tolerance: float = 2e-5) -> None:
    """Compare hypotheses: the same tokens, and scores within rounding."""
    assert [h.tokens for h in ours] == [h.tokens for h in expected]
    np.testing.assert_allclose(
        [h.score for h in ours], [h.score for h in expected], rtol=tolerance, atol=tolerance
    )
