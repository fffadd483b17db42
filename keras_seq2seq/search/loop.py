"""The one loop that decodes every model with every strategy. It compiles nothing and keeps nothing."""

from keras import ops

from keras_seq2seq.search.compaction import compacting_loop
from keras_seq2seq.search.coverage import check_alignment, rerank
from keras_seq2seq.search.steps import Step, advance, begin, is_open

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
    compact=False,
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
        constraints: a list of callables from (logits `[B, W, V]`, `Progress`) to logits. Where they leave a
            hypothesis no token at all, it goes no further: a beam drops it for others, and a source that
            has no other comes back with what there was, unfinished.
        seeds: int32 `[B]`, for `Sampling`: a source's samples depend on its seed; default: on the strategy's
            seed and on the row.
        pad_id: never generated.
        bos_id: never generated.
        eos_id: ends a hypothesis.
        compact: leave sources that are done out of the loop, so that they cost nothing, and let caches grow
            with the hypotheses instead of having `max_length` from the start. Acts in TensorFlow's graphs of
            a batch of unknown size, which XLA cannot compile then. What a constraint knows of the
            rows must come from its `Progress`, or be a tensor in a NamedTuple as that of `MinimumLength` is.

    Returns:
        `SearchResult`.

    Raises:
        ValueError: `max_length` below 1, or `min_length` above it; limits of another kind or shape; a
            coverage penalty for a model without attention to a source.
        TypeError: no strategy, or constraints that are no list of callables.
    """
    covers = getattr(strategy, "coverage_penalty", 0.0) > 0
    if covers:
        check_alignment(model)
    compact = compact and next(iter(inputs.values())).shape[0] is None
    task, first = begin(
        model,
        inputs,
        strategy,
        max_length=max_length,
        min_length=min_length,
        row_limit=row_limit,
        constraints=constraints,
        seeds=seeds,
        pad_id=pad_id,
        bos_id=bos_id,
        eos_id=eos_id,
        grows=compact and hasattr(model, "grow"),
    )
    if compact:
        state = compacting_loop(model, strategy, task, first)
    else:
        *_, state = ops.while_loop(
            lambda *step: is_open(strategy, task, Step(*step)),
            lambda *step: tuple(advance(model, strategy, task, Step(*step))),
            tuple(first),
        )
    result = strategy.result(state, task.limits)
    return rerank(model, inputs, task.prompt, result, strategy, pad_id) if covers else result
