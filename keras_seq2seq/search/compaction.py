"""A loop that leaves out the sources that are done: each time half of them are, the others move together.

Only a graph whose batch has no fixed size can do it. What it costs is one gather each time, and there are at
most log2(B) of them.

Legend: B sources, n of them still in the loop, W hypotheses.
"""

import keras
from keras import ops

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
    constants = _rows_of(task)

    def anything_open(rows, constants, step, whole):
        return is_open(strategy, _with_rows(task, constants), Step(*step))

    def run_and_compact(rows, constants, step, whole):
        here = _with_rows(task, constants)

        def crowded(*step):
            step = Step(*step)
            is_row_open = strategy.open_rows(step.state, step.index, here.limits)
            size = ops.shape(is_row_open)[0]
            enough = 2 * ops.sum(ops.cast(is_row_open, "int32")) > size
            return ops.logical_and(is_open(strategy, here, step), ops.logical_or(enough, size <= _FEW))

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
        return ops.take(rows, keep, axis=0), constants, (step.index, token, carry, state), whole

    rows = ops.arange(ops.shape(task.limits.row_limit)[0], dtype="int32")
    *_, whole = ops.while_loop(anything_open, run_and_compact, (rows, constants, tuple(first), first.state))
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
