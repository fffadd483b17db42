"""The contract between models and search: what a decoder offers to be decoded step by step.

Legend: B sources, W hypotheses for each, P prompt length, V vocabulary. Hypothesis w of source b is row
b*W + w.
"""

from typing import Any, NamedTuple, Protocol

import keras
from keras import ops

__all__ = ["Decodable", "DecodeState", "Growing", "reorder_rows"]


class DecodeState(NamedTuple):
    """What `start` hands to the loop.

    Attributes:
        context: any structure; constant in the loop and one entry per source, never repeated for hypotheses.
        carry: any structure of dicts, lists and tuples; changes in the loop and belongs to the model. The
            first axis of a tensor, here and in the context, counts sources or hypotheses, as the search takes
            rows out; what all sources share has a first axis of a fixed size, or none.
        token: int32 `[B]`, the last token of each row's prompt, which the first step reads.
    """

    context: Any
    carry: Any
    token: Any


class Decodable(Protocol):
    """A model that can be searched. The step's logits equal the full pass's, for every prompt.

    A search with a coverage penalty also needs `has_alignment`, which is True, and
    `align(inputs, hypotheses=W)`: attention weights `[B*W, H, T, S]` of whole targets; see `Seq2Seq.align`.
    """

    def start(self, inputs: dict, max_length: int, hypotheses: int = 1) -> DecodeState:
        """Process the sources and the prompts once.

        Args:
            inputs: the model's inputs; `target` int32 `[B, P]` is the prompt, right-padded, BOS first.
            max_length: how many tokens may follow.
            hypotheses: W.
        """

    def step(self, token: Any, index: Any, carry: Any, context: Any) -> tuple[Any, Any]:
        """Read one token for each row.

        Args:
            token: int32 `[B*W]`.
            index: int32 scalar, how many tokens were generated before.
            carry: from `start` or the step before.
            context: from `start`.

        Returns:
            Unnormalised float32 logits `[B*W, V]`, and the next carry.
        """

    def reorder(self, carry: Any, parent: Any) -> Any:
        """Let hypothesis w of source b continue hypothesis `parent[b, w]`, int32 `[B, W]`."""


class Growing(Decodable, Protocol):
    """A model whose carry makes room as a search goes on, so that a step costs what has been generated.

    Where shapes are fixed, as under XLA, a search asks for all the room at once and calls no `grow`.
    """

    def start(self, inputs: dict, max_length: int, hypotheses: int = 1, slots: Any = None) -> DecodeState:
        """Process the sources and the prompts once, as `Decodable` has it.

        Args:
            inputs: the model's inputs.
            max_length: how many tokens may follow.
            hypotheses: W.
            slots: an int32 scalar, for how many of them to make room; default `max_length`.
        """

    def grow(self, carry: Any, context: Any, slots: Any) -> Any:
        """Return the carry with room for `slots` tokens, an int32 scalar, no fewer than it had room for.

        Args:
            carry: the carry.
            context: the context of the same rows.
            slots: how many tokens there shall be room for, those of the past included.
        """


def reorder_rows(carry, parent):
    """Gather every leaf `[B*W, ...]` of `carry` by `parent` `[B, W]`: the `reorder` of any model."""
    batch, width = ops.shape(parent)[0], parent.shape[1]
    rows = ops.reshape(ops.expand_dims(ops.arange(batch) * width, 1) + parent, (-1,))
    return keras.tree.map_structure(lambda leaf: ops.take(leaf, rows, axis=0), carry)
