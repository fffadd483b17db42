"""A loop over what is there: without the sources that are done, and with no more room than is needed.

Each time half of the sources are done the others move together, and each time the caches are full their room
doubles. Only a graph whose sizes are not fixed can do it. What it costs is one gather each time, and there
are at most log2(B) + log2(L / 16) of them.

Legend: B sources, n of them still in the loop, W hypotheses, L maximum length.
"""

import keras
from keras import ops

from keras_seq2seq.search.limits import first_slots
from keras_seq2seq.search.steps import Step, advance, is_open

__all__ = ["compacting_loop"]

_FEW = 4  # sources; fewer cost no less than these


def compacting_loop(model, strategy, task, first):
    """Run the search to its end.

    Args:
        model: a `Decodable`.
        strategy: has `open_rows`.
        task: `Task`, what stays the same.
        first: the first `Step`.

    Returns:
        The last state of all B sources.
    """
    constants, grows = _rows_of(task), hasattr(model, "grow")
    most = ops.cast(task.limits.max_length, "int32")
    slots = first_slots(task.limits.row_limit) if grows else most

    def anything_open(rows, slots, constants, step, whole):
        return is_open(strategy, _with_rows(task, constants), Step(*step))

    def run_and_compact(rows, slots, constants, step, whole):
        here = _with_rows(task, constants)

        def crowded(*step):
            step = Step(*step)
            is_row_open = strategy.open_rows(step.state, step.index, here.limits)
            size = ops.shape(is_row_open)[0]
            enough = 2 * ops.sum(ops.cast(is_row_open, "int32")) > size
            worth = ops.logical_and(step.index < slots, ops.logical_or(enough, size <= _FEW))
            return ops.logical_and(is_open(strategy, here, step), worth)

        step = Step(
            *ops.while_loop(crowded, lambda *step: tuple(advance(model, strategy, here, Step(*step))), step)
        )
        whole = keras.tree.map_structure(
            lambda all_, part: ops.scatter_update(all_, ops.expand_dims(rows, 1), part), whole, step.state
        )
        keep = ops.nonzero(strategy.open_rows(step.state, step.index, here.limits))[0]
        keep = ops.cast(keep, "int32")
        size = ops.shape(rows)[0]
        token, carry, state, constants = keras.tree.map_structure(
            lambda leaf: _take(leaf, keep, size), (step.token, step.carry, step.state, constants)
        )
        if grows:
            slots = ops.where(step.index < slots, slots, ops.minimum(2 * slots, most))
            carry = model.grow(carry, _with_rows(task, constants).context, slots)
        return ops.take(rows, keep, axis=0), slots, constants, (step.index, token, carry, state), whole

    rows = ops.arange(ops.shape(task.limits.row_limit)[0], dtype="int32")
    begin = rows, slots, constants, tuple(first), first.state
    *_, whole = ops.while_loop(anything_open, run_and_compact, begin)
    return whole


def _take(leaf, keep, size):
    """Take the sources `keep` of a leaf that has one row, or W, for each of `size` sources."""
    if not _has_rows(leaf):
        return leaf
    each = ops.shape(leaf)[0] // ops.maximum(size, 1)
    rows = ops.expand_dims(keep * each, 1) + ops.arange(each)
    return ops.take(leaf, ops.reshape(rows, (-1,)), axis=0)


def _has_rows(leaf):
    """Tell what has an entry for each source from what all sources share, whose size is fixed."""
    return ops.is_tensor(leaf) and len(leaf.shape) > 0 and leaf.shape[0] is None


def _rows_of(task):
    """List the tensors of a task that have an entry for each source."""
    return [leaf for leaf in keras.tree.flatten(task) if _has_rows(leaf)]


def _with_rows(task, tensors):
    """Put tensors in the place of those that `_rows_of` listed."""
    tensors = iter(tensors)
    return keras.tree.map_structure(lambda leaf: next(tensors) if _has_rows(leaf) else leaf, task)
