"""The one loop that decodes every model with every strategy. It compiles nothing and keeps nothing."""

import numpy as np
from keras import ops

from keras_seq2seq.search.constraints import ForbiddenTokens, MinimumLength, Progress
from keras_seq2seq.search.coverage import check_alignment, rerank
from keras_seq2seq.search.limits import Limits, check_limits
from keras_seq2seq.search.prompts import Prompt

__all__ = ["search"]


def search(
    model,
    inputs,
    strategy,
    *,
    max_length,
    min_length=0,
    row_limit=None,
    constraints=(),
    seeds=None,
    pad_id=0,
    bos_id=2,
    eos_id=3,
):
    """Find good hypotheses for each source.

    Args:
        model: a `Decodable`.
        inputs: a dict of the model's inputs. `target` int32 `[B, P]` is each row's forced prefix or prompt,
            BOS first, right-padded; without it every row starts from BOS. It is no part of the result.
        strategy: `Greedy`, `Beam`, `Sampling`, or any object with their methods and `width`.
        max_length: L, the most tokens to generate, EOS included. Nothing is forced at the limit.
        min_length: the fewest tokens to generate, EOS included: an integer, or int32 `[B]`. Where it is more
            than the row's limit, the limit wins: the row may end with its last token.
        row_limit: int32 `[B]`, the most tokens for each row, at most `max_length`; default `max_length`.
        constraints: callables from (logits `[B, W, V]`, `Progress`) to logits.
        seeds: int32 `[B]`, for `Sampling`: a source's samples depend on its seed; default: on the strategy's
            seed and on the row.
        pad_id: never generated.
        bos_id: never generated.
        eos_id: ends a hypothesis.

    Returns:
        `SearchResult`.

    Raises:
        ValueError: `max_length` below 1, or `min_length` above it; limits of another kind or shape; a
            coverage penalty for a model without attention to a source.
    """
    check_limits(max_length, min_length, row_limit, seeds)
    covers = getattr(strategy, "coverage_penalty", 0.0) > 0
    if covers:
        check_alignment(model)
    inputs = dict(inputs)
    batch = ops.shape(next(iter(inputs.values())))[0]
    if inputs.get("target") is None:
        inputs["target"] = ops.full((batch, 1), bos_id, dtype="int32")
    prompt = Prompt.of(inputs["target"], pad_id)
    if row_limit is None:
        row_limit = ops.full((batch,), max_length, dtype="int32")
    row_limit = ops.minimum(ops.cast(row_limit, "int32"), max_length)
    limits = Limits(max_length, row_limit, pad_id, eos_id, seeds)
    rules = [ForbiddenTokens(tuple({pad_id, bos_id} - {eos_id})), *constraints]
    if not isinstance(min_length, (int, np.integer)) or min_length > 1:
        rules.append(MinimumLength(ops.minimum(ops.cast(min_length, "int32"), row_limit), eos_id))
    width = strategy.width
    start = model.start(inputs, max_length, width)
    token = ops.repeat(start.token, width) if width > 1 else start.token

    def is_open(index, token, carry, state):
        return ops.logical_and(index < max_length, ops.logical_not(strategy.done(state, index, limits)))

    def advance(index, token, carry, state):
        logits, carry = model.step(token, index, carry, start.context)
        logits = ops.reshape(logits, (-1, width, logits.shape[-1]))  # [B, W, V]
        progress = Progress(index, strategy.tokens(state), prompt)
        for rule in rules:
            logits = rule(logits, progress)
        token, parent, state = strategy.advance(logits, state, index, limits)
        if parent is not None:
            carry = model.reorder(carry, parent)
        return index + 1, ops.reshape(token, (-1,)), carry, state

    index = ops.zeros((), "int32")
    state = strategy.begin(batch, limits)
    *_, state = ops.while_loop(is_open, advance, (index, token, start.carry, state))
    result = strategy.result(state, limits)
    return rerank(model, inputs, prompt, result, strategy, pad_id) if covers else result
