"""The parts of the loop: what a search begins with, whether it goes on, and one step.

`search` runs them in a `while_loop`. A caller who wants each token at once runs them one by one.

Legend: B sources, W hypotheses, V vocabulary.
"""

from typing import Any, NamedTuple

import numpy as np
from keras import ops

from keras_seq2seq.search.checks import check_constraints, check_strategy
from keras_seq2seq.search.constraints import ForbiddenTokens, MinimumLength, Progress
from keras_seq2seq.search.limits import Limits, check_limits, first_slots
from keras_seq2seq.search.prompts import Prompt

__all__ = ["Step", "Task", "advance", "begin", "is_open"]


class Task(NamedTuple):
    """What stays the same in all steps.

    Attributes:
        context: of the model.
        prompt: `Prompt`.
        limits: `Limits`.
        rules: constraints, those of the limits among them.
    """

    context: Any
    prompt: Prompt
    limits: Limits
    rules: list[Any]


class Step(NamedTuple):
    """What a step hands to the next.

    Attributes:
        index: int32 scalar, how many tokens there are.
        token: int32 `[B*W]`, the last ones.
        carry: of the model.
        state: of the strategy.
    """

    index: Any
    token: Any
    carry: Any
    state: Any


def begin(
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
    grows=False,
):
    """Return `Task` and the first `Step`; the arguments are those of `search`.

    With `grows` a `models.protocol.Growing` model begins with room for `first_slots` tokens.
    """
    check_strategy(strategy)
    check_constraints(constraints)
    check_limits(max_length, min_length, row_limit, seeds)
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
    room = {"slots": first_slots(row_limit)} if grows else {}
    start = model.start(inputs, max_length, width, **room)
    token = ops.repeat(start.token, width) if width > 1 else start.token
    step = Step(ops.zeros((), "int32"), token, start.carry, strategy.begin(batch, limits))
    return Task(start.context, prompt, limits, rules), step


def is_open(strategy, task, step):
    """Say whether there is room for another token, and anything that wants it."""
    done = strategy.done(step.state, step.index, task.limits)
    return ops.logical_and(step.index < task.limits.max_length, ops.logical_not(done))


def advance(model, strategy, task, step):
    """Return the next `Step`."""
    index, token, carry, state = step
    logits, carry = model.step(token, index, carry, task.context)
    logits = ops.reshape(logits, (-1, strategy.width, logits.shape[-1]))  # [B, W, V]
    progress = Progress(index, strategy.tokens(state), task.prompt)
    for rule in task.rules:
        logits = rule(logits, progress)
    token, parent, state = strategy.advance(logits, state, index, task.limits)
    if parent is not None:
        carry = model.reorder(carry, parent)
    return Step(index + 1, ops.reshape(token, (-1,)), carry, state)
