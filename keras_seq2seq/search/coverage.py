"""The coverage penalty: hypotheses that leave source tokens untranslated score less.

Legend: B sources, W hypotheses, N returned ones, H heads, S source length, P prompt length, L maximum length.
"""

from keras import ops

__all__ = ["check_alignment", "coverage", "rerank"]

_LEAST = 1e-9  # of the attention that a source token gets, so that its logarithm is finite


def check_alignment(model):
    """Raise a ValueError for a model that has no attention to a source."""
    if not getattr(model, "has_alignment", False):
        raise ValueError(
            "coverage_penalty must be 0 for a model without attention to a source that `align` can return, "
            f"received a {type(model).__name__}."
        )


def coverage(model, inputs, prompt, result, pad_id):
    """Return sum_j log(min(sum_i a_ij, 1)) of each hypothesis (Wu et al. 2016, equation 14).

    a_ij is how much target token i attends to source token j in the last layer, mean over heads. i runs over
    a forced prefix, the hypothesis and its EOS; j over the real source tokens, EOS too. One full pass.

    Args:
        model: has `align`.
        inputs: `source` int32 `[B, S]`, and what else the model reads.
        prompt: `Prompt`.
        result: `SearchResult` of W hypotheses.
        pad_id: no real token.

    Returns:
        float32 `[B, W]`, 0 for an empty hypothesis.
    """
    source, width = inputs["source"], result.tokens.shape[1]
    target = prompt.join(result.tokens)  # [B, W, P+L]
    size = ops.shape(target)[2] - 1
    rows = ops.reshape(target[:, :, :-1], (-1, size))  # [B*W, P+L-1]: the last token is predicted, not read
    weights = model.align({**inputs, "target": rows}, hypotheses=width)  # [B*W, H, P+L-1, S]
    weights = ops.mean(ops.cast(weights, "float32"), axis=1)
    weights = ops.reshape(weights, (-1, width, size, ops.shape(source)[1]))
    count = ops.expand_dims(prompt.lengths - 1, 1) + result.lengths  # [B, W]
    real = ops.arange(size) < ops.expand_dims(count, -1)
    total = ops.sum(ops.where(ops.expand_dims(real, -1), weights, 0.0), axis=2)  # [B, W, S]
    logs = ops.log(ops.clip(total, _LEAST, 1.0))
    penalty = ops.sum(ops.where(ops.expand_dims(source != pad_id, 1), logs, 0.0), axis=-1)
    return ops.where(result.lengths > 0, penalty, 0.0)


def rerank(model, inputs, prompt, result, strategy, pad_id):
    """Add the penalty to the scores of a beam's W hypotheses, and return the N best."""
    penalty = strategy.coverage_penalty * coverage(model, inputs, prompt, result, pad_id)
    return result._replace(scores=result.scores + penalty).best(strategy.n_best)
