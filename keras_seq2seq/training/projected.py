"""Cross-entropy from what the output projection reads, without the logits of a whole batch.

The gradient of the loss with respect to a chunk of logits is known as soon as these are, so that each chunk
is used up while it is in the processor's cache.

Legend: N positions, V vocabulary, D size of what is projected, C positions in a chunk, K chunks.
"""

from typing import Any, NamedTuple

from keras import ops

__all__ = ["Outcome", "note_outcome", "outcome_of", "projected_crossentropy"]

_CHUNK = 1 << 22  # logits, 16 MiB
_FEWEST = 128  # positions, below which products of matrices become slow


class Outcome(NamedTuple):
    """What a loss finds out by the way.

    Attributes:
        cross_entropy: float32, of each position, without label smoothing; 0 where the weight is 0.
        correct: float32, 1 where no logit is higher than the label's, and the weight is not 0.
    """

    cross_entropy: Any
    correct: Any


def note_outcome(labels, logits, outcome):
    """Leave beside logits what a loss found out about these labels, `[B, T]`."""
    logits._loss_outcome = labels, outcome


def outcome_of(labels, logits):
    """Return what `note_outcome` left for these very labels, or None."""
    noted, outcome = getattr(logits, "_loss_outcome", (None, None))
    return outcome if noted is labels else None


def projected_crossentropy(labels, weights, x, kernel, bias, label_smoothing=0.0):
    """Sum w (-sum_v q_v log p_v) with p = softmax(x kernel^T + bias) and q = (1-e) one-hot + e/V.

    Positions of weight 0 cost nothing.

    Args:
        labels: int32 `[N]`, in the vocabulary.
        weights: float32 `[N]`.
        x: float32 `[N, D]`.
        kernel: float32 `[V, D]`.
        bias: float32 `[V]`, or None.
        label_smoothing: e.

    Returns:
        The sum, float32, and its `Outcome`, which has no gradient.
    """
    size = kernel.shape[0]
    uniform = label_smoothing / size
    real = weights != 0

    @ops.custom_gradient
    def loss(x, kernel, *bias):
        # p and q apart: only p is as large as the logits. Of q there is a row of the kernel for each
        # position, and a sum of all rows.
        log_p, correct, by_x, *by_parameters = _softmax_part(labels, weights, real, x, kernel, *bias)
        column_sum = ops.sum(kernel, axis=0, keepdims=True)  # [1, D]
        wanted = ops.expand_dims(weights * (1.0 - label_smoothing), -1)
        weight = ops.expand_dims(weights, -1)
        at_label = ops.take(kernel, labels, axis=0)  # [N, D]
        mean, logit = ops.sum(x * column_sum, -1), ops.sum(x * at_label, -1)
        if bias:
            mean, logit = mean + ops.sum(bias[0]), logit + ops.take(bias[0], labels)
        total = ops.sum(weights * (label_smoothing * (logit - mean / size) - log_p))
        by_x = by_x - wanted * at_label - uniform * weight * column_sum
        place = ops.expand_dims(labels, -1)
        by_parameters[0] = by_parameters[0] - uniform * ops.sum(weight * x, axis=0, keepdims=True)
        by_parameters[0] -= ops.scatter(place, wanted * x, ops.shape(kernel))
        if bias:
            by_parameters[1] = by_parameters[1] - uniform * ops.sum(weights)
            by_parameters[1] -= ops.scatter(place, ops.squeeze(wanted, -1), (size,))

        def gradient(*args, upstream=None):
            scale = args[0] if upstream is None else upstream[0]
            return tuple(scale * part for part in (by_x, *by_parameters))

        return (total, -log_p, correct), gradient

    total, *outcome = loss(x, kernel, *(() if bias is None else (bias,)))
    return total, Outcome(*map(ops.stop_gradient, outcome))


def _softmax_part(labels, weights, real, x, kernel, bias=None):
    """Go through the real positions in chunks.

    Returns:
        log p of the label, float32 `[N]`; whether it is right, float32 `[N]`; and the sums of w p by x, by
        the kernel and, if there is one, by the bias.
    """
    count = ops.shape(x)[0]
    order = ops.argsort(ops.cast(ops.logical_not(real), "int32"))  # the real ones first
    size = ops.minimum(max(_CHUNK // kernel.shape[0], _FEWEST), ops.maximum(count, 1))
    place = ops.arange((count + size - 1) // size * size)
    rows = ops.reshape(ops.take(order, ops.minimum(place, count - 1)), (-1, size))  # [K, C]
    weights = ops.where(ops.reshape(place < count, (-1, size)), ops.take(weights, rows), 0.0)
    labels = ops.expand_dims(ops.take(labels, rows), -1)
    inputs = ops.take(x, rows, axis=0)  # [K, C, D]
    used = (ops.sum(ops.cast(real, "int32")) + size - 1) // size
    parameters = (kernel,) if bias is None else (kernel, bias)

    def step(i, found, by_x, *sums):
        logits = ops.matmul(inputs[i], ops.transpose(kernel))  # [C, V]
        logits = logits if bias is None else logits + bias
        highest = ops.max(logits, axis=-1, keepdims=True)
        powers = ops.exp(logits - highest)
        normalizer = ops.sum(powers, axis=-1, keepdims=True)
        at_label = ops.take_along_axis(logits, labels[i], axis=-1)
        log_p = at_label - highest - ops.log(normalizer)
        correct = ops.cast(at_label >= highest, "float32")
        weighted = powers * (ops.expand_dims(weights[i], -1) / normalizer)  # w p
        found = _put(found, i, ops.concatenate([log_p, correct], axis=-1))
        by_x = _put(by_x, i, ops.matmul(weighted, kernel))
        parts = [ops.matmul(ops.transpose(weighted), inputs[i]), ops.sum(weighted, axis=0)]
        return i + 1, found, by_x, *(a + b for a, b in zip(sums, parts, strict=False))

    start = ops.zeros((*ops.shape(rows), 2)), ops.zeros_like(inputs), *map(ops.zeros_like, parameters)
    first = ops.zeros((), "int32")
    _, found, by_x, *sums = ops.while_loop(lambda i, *_: i < used, step, (first, *start))
    back = ops.argsort(order)
    found = ops.take(ops.reshape(found, (-1, 2)), back, axis=0)  # [N, 2]
    found = ops.where(ops.expand_dims(real, -1), found, 0.0)
    by_x = ops.take(ops.reshape(by_x, (-1, x.shape[-1])), back, axis=0)
    return found[:, 0], found[:, 1], by_x, *sums


def _put(stack, i, row):
    """Write one row of a stack."""
    return ops.scatter_update(stack, ops.reshape(i, (1, 1)), ops.expand_dims(row, 0))
