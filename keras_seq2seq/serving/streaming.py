"""One text, token by token: a search run step by step, and the text that no later token can change."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from keras_seq2seq.search import Greedy, Sampling
from keras_seq2seq.search.steps import advance, is_open
from keras_seq2seq.text import PAD_ID

__all__ = ["Steps", "check_streams", "chunks"]

_UNCERTAIN = "\ufffd"  # what incomplete characters are shown as


def check_streams(strategy: Any) -> None:
    """Raise a ValueError unless the strategy never takes back a token."""
    if not isinstance(strategy, (Greedy, Sampling)) or strategy.width != 1:
        raise ValueError(
            "strategy must be Greedy() or Sampling() with n=1 to stream, because others choose among "
            f"hypotheses at the end, received {strategy}."
        )


class Steps:
    """A search of one text as two compiled functions, its beginning and one step; they are kept.

    Args:
        begin: from ids `[1, length]` to what `search.steps.begin` returns.
        model: a `Decodable`.
        strategy: with one hypothesis.
    """

    def __init__(self, begin: Callable[..., tuple[Any, Any]], model: Any, strategy: Any):
        self._begin, self._model, self._strategy = begin, model, strategy
        self._functions: dict[int, tuple[Any, Any]] = {}

    def __call__(self, *ids: Any) -> Iterator[int]:
        """Yield the tokens, EOS too, each as soon as it is there."""
        if len(ids) not in self._functions:
            self._functions[len(ids)] = self._trace(len(ids))
        start, proceed = self._functions[len(ids)]
        task, step, goes_on = start(*map(tf.convert_to_tensor, ids))
        while bool(goes_on):
            step, token, goes_on = proceed(*task, *step)
            if int(token) != PAD_ID:  # which stands for no token, where every one is ruled out
                yield int(token)

    def _trace(self, count: int) -> tuple[Any, Any]:
        """Make both functions. Tensors pass between them; all else is the same in every call."""
        packed: list[_Packed] = []
        strategy = self._strategy

        def start(*ids: Any) -> Any:
            parts = self._begin(*ids)
            packed[:] = map(_Packed, parts)
            return *(each.tensors for each in packed), is_open(strategy, *parts)

        def proceed(*tensors: Any) -> Any:
            task_parts, step_parts = packed
            size = len(task_parts.tensors)
            task = task_parts.unpack(tensors[:size])
            step = advance(self._model, strategy, task, step_parts.unpack(tensors[size:]))
            return _Packed(step).tensors, step.token[0], is_open(strategy, task, step)

        ids = [tf.TensorSpec([None, None], tf.int32)] * count
        started = tf.function(start, ids, autograph=False).get_concrete_function()
        specs = [tf.TensorSpec(each.shape, each.dtype) for part in packed for each in part.tensors]
        return started, tf.function(proceed, specs, autograph=False).get_concrete_function()


class _Packed:
    """A structure as the list of its tensors, to and fro."""

    def __init__(self, structure: Any):
        self._structure, self._leaves = structure, tf.nest.flatten(structure)
        self.tensors = [leaf for leaf in self._leaves if tf.is_tensor(leaf)]

    def unpack(self, tensors: Sequence[Any]) -> Any:
        """Return the structure with other tensors in it."""
        rest = iter(tensors)
        leaves = [next(rest) if tf.is_tensor(leaf) else leaf for leaf in self._leaves]
        return tf.nest.pack_sequence_as(self._structure, leaves)


def chunks(tokens: Iterator[int], text_of: Callable[[list[int]], str]) -> Iterator[str]:
    """Yield the text of tokens as it grows.

    An incomplete character is shown as U+FFFD until it is complete. So what ends in U+FFFD waits for the
    token that settles it.

    Args:
        tokens: the ids, one after the other.
        text_of: from all ids so far to their text.

    Raises:
        RuntimeError: a tokenizer with which a later token changed what had been yielded.
    """
    ids: list[int] = []
    given = ""
    for token in tokens:
        ids.append(token)
        certain = text_of(ids).rstrip(_UNCERTAIN)
        if len(certain) > len(given) and certain.startswith(given):
            yield certain[len(given) :]
            given = certain
    text = text_of(ids)
    if not text.startswith(given):
        raise RuntimeError(f"the tokenizer turned {given!r}, which was given, into {text!r}.")
    if len(text) > len(given):
        yield text[len(given) :]
