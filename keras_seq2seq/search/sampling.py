"""Sampling: draw the next token from the model's distribution.

Legend: B sources, W samples of each, V vocabulary, L maximum length.
"""

import math
import random
from dataclasses import dataclass
from numbers import Integral, Real

from keras import ops

from keras_seq2seq.search.buffer import write
from keras_seq2seq.search.constraints import BANNED
from keras_seq2seq.search.randomness import mix, uniforms
from keras_seq2seq.search.result import SearchResult
from keras_seq2seq.search.top_k import top_k

__all__ = ["Sampling"]

_COLDEST = 1e-30  # a temperature that float32 holds
_HALVINGS = 30  # of the interval that holds the threshold of top_p: exact to float32


@dataclass(frozen=True)
class Sampling:
    """Draw n hypotheses for each source, token by token.

    A draw depends on the seed, on which text it is for, on the sample and on the step, and on nothing else:
    neither on the batch nor on other users of random numbers. Equal texts get different samples.

    The score is log P under the model, the sum over tokens, EOS in, before temperature and cuts.

    Args:
        n: samples for each source.
        temperature: logits are divided by it; towards 0 the best token wins always.
        top_k: draw among the k most probable tokens.
        top_p: draw among the most probable tokens that together reach this probability, always at least one
            (Holtzman et al. 2020); after `top_k`.
        seed: None draws other samples every time.

    Raises:
        ValueError: an impossible value.

    Example:
        >>> prompt = {"target": np.array([[2, 7]])}
        >>> model = ks.models.transformer_lm(50, size="tiny", num_layers=1)
        >>> sampling = ks.search.Sampling(3, temperature=0.8, top_p=0.9, seed=1)
        >>> once, again = (ks.search.search(model, prompt, sampling, max_length=4) for _ in range(2))
        >>> tuple(once.tokens.shape), np.array_equal(once.tokens, again.tokens)
        ((1, 3, 4), True)
    """

    n: int = 1
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None

    def __post_init__(self):
        self._check("n", Integral, lambda n: n >= 1, "an integer of at least 1")
        self._check(
            "temperature",
            Real,
            lambda value: 0.0 < value < math.inf,
            "a finite number above 0",
            "; Greedy takes the best token",
        )
        if self.top_k is not None:
            self._check("top_k", Integral, lambda k: k >= 1, "an integer of at least 1, or None")
        if self.top_p is not None:
            self._check("top_p", Real, lambda p: 0.0 < p <= 1.0, "above 0 and at most 1, or None")
        if self.seed is not None:
            self._check("seed", Integral, lambda _: True, "an integer, or None")

    def _check(self, name, kind, possible, expected, hint=""):
        """Refuse what is no such number; keep it as Python's own, which can be saved."""
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, kind) or not possible(value):
            raise ValueError(f"{name} must be {expected}, received {value!r}{hint}.")
        object.__setattr__(self, name, int(value) if kind is Integral else float(value))

    @property
    def width(self):
        """Samples for each source."""
        return self.n

    def row_seeds(self, positions):
        """Return a seed for each text, int32 `[B]`, from its place in the caller's list, int32 `[B]`."""
        seed = random.getrandbits(31) if self.seed is None else self.seed
        return mix(positions, seed)

    def begin(self, batch, limits):
        """Draw all random numbers, and return empty hypotheses."""
        seeds = self.row_seeds(ops.arange(batch)) if limits.seeds is None else limits.seeds
        shape = (batch, self.n)
        return {
            "uniforms": uniforms(seeds, self.n, limits.max_length),  # [B, W, L]
            "tokens": ops.full((*shape, limits.max_length), limits.pad_id, dtype="int32"),
            "lengths": ops.zeros(shape, "int32"),
            "token_scores": ops.zeros((*shape, limits.max_length), "float32"),
            "finished": ops.zeros(shape, "bool"),
        }

    def advance(self, logits, state, index, limits):
        """Draw one token for every open hypothesis."""
        uniform = ops.take(state["uniforms"], index, axis=2)  # [B, W]
        drawn = self._draw(logits, ops.expand_dims(uniform, -1))
        at_token = ops.squeeze(ops.take_along_axis(logits, ops.expand_dims(drawn, -1), axis=-1), -1)
        log_probability = at_token - ops.logsumexp(logits, axis=-1)
        open_ = ops.logical_and(self._open(state, index, limits), at_token > BANNED / 2)
        token = ops.where(open_, drawn, limits.pad_id)
        new = {
            "uniforms": state["uniforms"],
            "tokens": write(state["tokens"], index, token),
            "lengths": state["lengths"] + ops.cast(open_, "int32"),
            "token_scores": write(state["token_scores"], index, ops.where(open_, log_probability, 0.0)),
            "finished": ops.logical_or(state["finished"], ops.logical_and(open_, drawn == limits.eos_id)),
        }
        return token, None, new

    def _draw(self, logits, uniform):
        """Draw from logits `[B, W, V]` by the inverse of the cumulative distribution at `[B, W, 1]`."""
        if self.top_k is not None:
            best = min(self.top_k, logits.shape[-1])
            logits, tokens = top_k(logits, best)
            place = _inverse(self._cut(logits), uniform)
            return ops.squeeze(ops.take_along_axis(tokens, place, axis=-1), -1)
        return ops.squeeze(_inverse(self._cut(logits), uniform), -1)

    def _cut(self, logits):
        """Return the probabilities to draw from, unnormalised."""
        top = ops.max(logits, axis=-1, keepdims=True)
        # Divided when the best is 0, so that it stays so however small the temperature is.
        scaled = (logits - top) / max(self.temperature, _COLDEST)
        weights = ops.where(logits > BANNED / 2, ops.exp(scaled), 0.0)
        if self.top_p is None or self.top_p == 1.0:
            return weights
        # The largest threshold that keeps enough, found by halving: no sort over the vocabulary.
        wanted = self.top_p * ops.sum(weights, axis=-1, keepdims=True)
        low, high = ops.zeros_like(top), ops.ones_like(top)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            enough = ops.sum(ops.where(weights >= middle, weights, 0.0), axis=-1, keepdims=True) >= wanted
            low, high = ops.where(enough, middle, low), ops.where(enough, high, middle)
        return ops.where(weights >= low, weights, 0.0)

    def tokens(self, state):
        """Return the tokens so far, `[B, W, L]`."""
        return state["tokens"]

    def _open(self, state, index, limits):
        """Say which have neither ended nor reached their limit nor a dead end, bool `[B, W]`."""
        open_ = ops.logical_and(ops.logical_not(state["finished"]), state["lengths"] == index)
        return ops.logical_and(open_, ops.expand_dims(index < limits.row_limit, 1))

    def open_rows(self, state, index, limits):
        """Say which sources have an open hypothesis, bool `[B]`."""
        return ops.any(self._open(state, index, limits), axis=1)

    def done(self, state, index, limits):
        """Say whether no source is open."""
        return ops.logical_not(ops.any(self.open_rows(state, index, limits)))

    def result(self, state, limits):
        """Return the samples of each source, finished ones first, the most probable first."""
        scores = ops.sum(state["token_scores"], axis=-1)
        parts = state["tokens"], state["lengths"], scores, state["finished"], state["token_scores"]
        return SearchResult(*parts).best(self.n)


def _inverse(weights, uniform):
    """Return where the cumulative sum of `[B, W, V]` first exceeds `uniform` of the whole, `[B, W, 1]`."""
    sums = ops.cumsum(weights, axis=-1)
    passed = ops.sum(ops.cast(sums <= uniform * sums[..., -1:], "int32"), axis=-1, keepdims=True)
    # Rounding must not lead past the last token that has any weight.
    size = weights.shape[-1]
    last = ops.max(ops.where(weights > 0, ops.arange(size, dtype="int32"), 0), axis=-1, keepdims=True)
    return ops.minimum(passed, last)
