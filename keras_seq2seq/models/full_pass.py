"""Search with any Keras model: without a `step` of its own, the whole prefix is read anew for every token.

Legend: B sources, W hypotheses, R = B*W rows, P prompt length, L maximum length, V vocabulary.
"""

import keras
from keras import ops

from keras_seq2seq.layers.masks import padding_mask
from keras_seq2seq.models.protocol import DecodeState, reorder_rows

__all__ = ["FullPass", "decodable"]


class FullPass:
    """Give a model of whole sequences the contract of step-by-step decoding.

    It is right for every causal model and slow for long outputs: a step costs a full pass. A model with
    caches of its own follows `models.protocol.Decodable` instead.

    Args:
        model: a Keras model from a dict of inputs, `target` int32 `[B, T]` (BOS first, 0 is padding) among
            them, to logits `[B, T, V]`; the logits of a position must not depend on later ones.

    Raises:
        ValueError: the model has no input named "target".
    """

    def __init__(self, model):
        names = [tensor.name for tensor in model.inputs]
        if "target" not in names:
            raise ValueError(f'model must have an input named "target" to be searched, it has {names}.')
        self.model = model

    def start(self, inputs, max_length, hypotheses=1, slots=None):
        """Keep the prompts, with room for what follows; see `Decodable`."""
        prompt = ops.cast(inputs["target"], "int32")
        lengths = ops.sum(ops.cast(padding_mask(prompt), "int32"), axis=1)
        offset = ops.maximum(lengths - 1, 0)
        token = ops.squeeze(ops.take_along_axis(prompt, ops.expand_dims(offset, 1), axis=1), axis=1)
        room = max_length if slots is None else slots
        room = ops.zeros((ops.shape(prompt)[0], room), dtype="int32")
        tokens = ops.repeat(ops.concatenate([prompt, room], axis=1), hypotheses, axis=0)
        others = {name: value for name, value in inputs.items() if name != "target"}
        return DecodeState({"inputs": others, "offset": offset}, {"tokens": tokens}, token)

    def step(self, token, index, carry, context):
        """Put the token in its place and run the model; see `Decodable`."""
        width = ops.shape(token)[0] // ops.maximum(ops.shape(context["offset"])[0], 1)

        def widen(value):
            return ops.repeat(value, width, axis=0)

        place = ops.expand_dims(widen(context["offset"]) + index, 1)  # [R, 1]
        slots = ops.expand_dims(ops.arange(ops.shape(carry["tokens"])[1]), 0)
        tokens = ops.where(slots == place, ops.expand_dims(token, 1), carry["tokens"])
        inputs = keras.tree.map_structure(widen, context["inputs"])
        logits = self.model({**inputs, "target": tokens}, training=False)  # [R, P+L, V]
        here = ops.take_along_axis(logits, ops.expand_dims(place, -1), axis=1)
        return ops.cast(ops.squeeze(here, axis=1), "float32"), {"tokens": tokens}

    def grow(self, carry, context, slots):
        """Make room for `slots` tokens behind the longest prompt; see `Growing`."""
        tokens = carry["tokens"]
        more = ops.max(context["offset"]) + 1 + slots - ops.shape(tokens)[1]
        return {"tokens": ops.pad(tokens, ((0, 0), (0, ops.maximum(more, 0))))}

    def reorder(self, carry, parent):
        """Gather the rows; see `Decodable`."""
        return reorder_rows(carry, parent)


def decodable(model):
    """Return a model that can be searched: the model itself if it can, else a `FullPass` of it."""
    return model if hasattr(model, "step") and hasattr(model, "start") else FullPass(model)
