"""Transformer encoder and decoder (Vaswani et al. 2017).

`call`, the prompt's full pass and `step` run the same body, on activations `[B*T, D]`; only where keys and
values come from differs. In a step the hypotheses of a source stand on the time axis.

Legend: B batch, S source length, T target length, D model, H heads, G key/value heads, K head size,
W hypotheses, L maximum length, V vocabulary.
"""

from functools import partial
from typing import Any

import keras
from keras import layers, ops

from keras_seq2seq.layers import Positions
from keras_seq2seq.layers.add_norm import make_norm
from keras_seq2seq.layers.attend import Segment
from keras_seq2seq.layers.dropout import Dropout
from keras_seq2seq.layers.masks import causal_mask, combine_masks, padding_mask
from keras_seq2seq.models import cache
from keras_seq2seq.models.projection import remember_projection
from keras_seq2seq.models.protocol import DecodeState
from keras_seq2seq.models.transformer_block import TransformerBlock

__all__ = ["TransformerDecoder", "TransformerEncoder"]

_register = keras.saving.register_keras_serializable(package="keras_seq2seq")


class _Stack(layers.Layer):
    """What encoder and decoder share: embedding, blocks, and the final norm of pre-norm stacks."""

    cross = False

    def __init__(self, embedding, num_layers, *, positions=None, dropout=0.0, block=None, **kwargs):
        super().__init__(**kwargs)
        self.embedding = embedding
        if not isinstance(num_layers, int) or num_layers < 1:
            raise ValueError(f"num_layers must be an integer of at least 1, received {num_layers!r}.")
        self.num_layers = num_layers
        self.positions = positions or Positions(dtype=self.dtype_policy)
        self.dropout = dropout
        self.block = dict(block or {})
        for name in ("kernel_initializer", "output_initializer"):
            if isinstance(self.block.get(name), keras.initializers.Initializer):
                self.block[name] = keras.initializers.serialize(self.block[name])
        self.blocks = [
            TransformerBlock(
                cross_attention=self.cross,
                dropout=dropout,
                dtype=self.dtype_policy,
                name=f"block_{i}",
                **self.block,
            )
            for i in range(num_layers)
        ]
        self.dropout_layer = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.final_norm = None
        if self.block.get("placement", "pre") == "pre":
            normalization = self.block.get("normalization", "layer")
            self.final_norm = make_norm(normalization, dtype=self.dtype_policy, name="final_norm")

    def _build_stack(self, memory_shape=None):
        model_dim = self.embedding.model_dim
        if not self.embedding.built:
            self.embedding.build((None, None))
        if not self.positions.built:
            self.positions.build((None, None, model_dim))
        for block in self.blocks:
            block.build((None, model_dim), memory_shape)
        if self.final_norm is not None:
            self.final_norm.build((None, model_dim))

    def _embed(self, ids, positions, training=None):
        """Embed ids `[B, T]` and flatten to `[B*T, D]`."""
        x = self.embedding.embed(ids, positions)
        x = ops.reshape(x, (-1, self.embedding.model_dim))
        return self.dropout_layer(x, training=training) if self.dropout else x

    def _full_pass(self, ids, mask, causal, memory=None, training=None, weights=None):
        """Run all blocks over whole sequences.

        Args:
            ids: int32 `[B, T]`.
            mask: bool `[B or 1, T or 1, T]` or None.
            causal: whether later positions are hidden.
            memory: one cross-attention `Segment` per block, or None.
            weights: a list that receives each block's cross-attention weights, or None.

        Returns:
            `[B*T, D]`, and each block's keys and values `[B, G, T, K]`.
        """
        length = ops.shape(ids)[1]
        at = ops.expand_dims(ops.arange(length), 0)
        mask = combine_masks(mask, causal_mask(length) if causal else None)
        mask = None if mask is None else ops.expand_dims(mask, 1)
        bias = self.positions.bias(at, at, bidirectional=not causal)

        def rotate(heads):
            return self.positions.rotate(heads, at)

        def own(key, value):
            return [Segment(key, value, mask, bias)], (key, value)

        x, kept = self._embed(ids, at, training), []
        for i, block in enumerate(self.blocks):
            cross = None if memory is None else memory[i]
            x, pair = block.run(x, length, rotate, own, cross, training, weights)
            kept.append(pair)
        return self._finish(x), kept

    def _finish(self, x):
        return x if self.final_norm is None else self.final_norm(x)

    def get_config(self):
        """Return every constructor argument."""
        serialize = keras.saving.serialize_keras_object
        return {
            **super().get_config(),
            "embedding": None if self.embedding is None else serialize(self.embedding),
            "num_layers": self.num_layers,
            "positions": serialize(self.positions),
            "dropout": self.dropout,
            "block": dict(self.block),
        }

    @classmethod
    def from_config(cls, config):
        """Rebuild the layer and its parts."""
        config = dict(config)
        for name in ("embedding", "positions"):
            if config.get(name) is not None:
                config[name] = keras.saving.deserialize_keras_object(config[name])
        return cls(**config)


@_register
class TransformerEncoder(_Stack):
    """Encode ids to a memory; every position sees every real one.

    Args:
        embedding: a `PositionalEmbedding`.
        num_layers: how many blocks.
        positions: an encoding whose `rotate` and `bias` act in every self-attention; default none.
        dropout: rate on the embeddings and on the output of every sublayer.
        block: a dict of the remaining arguments of `TransformerBlock`.

    Call arguments:
        source: int32 `[B, S]`, 0 is padding.

    Returns:
        `[B, S, D]`.
    """

    def build(self, source_shape):
        """Build embedding and blocks."""
        self._build_stack()

    def call(self, source, training=None):
        """Encode `[B, S]`."""
        mask = combine_masks(padding_mask(source))
        x, _ = self._full_pass(source, mask, causal=False, training=training)
        return ops.reshape(x, (-1, ops.shape(source)[1], self.embedding.model_dim))

    def compute_output_spec(self, source, training=None):
        """`[B, S]` -> `[B, S, D]`."""
        return keras.KerasTensor((*source.shape, self.embedding.model_dim), self.compute_dtype)


@_register
class TransformerDecoder(_Stack):
    """Predict each next token from the ones before and, where there is one, from a memory.

    Args:
        embedding: a `PositionalEmbedding`; None in a `Seq2Seq` that is to give the decoder the encoder's.
        num_layers: how many blocks.
        positions: an encoding whose `rotate` and `bias` act in every self-attention; default none.
        dropout: rate on the embeddings and on the output of every sublayer.
        block: a dict of the remaining arguments of `TransformerBlock`.
        cross_attention: whether there is a memory; without one this is a language model.
        tie_embeddings: use the embedding matrix for the output projection too.

    Call arguments:
        target: int32 `[B, T]`, 0 is padding.
        memory: `[B, S, Dm]`.
        memory_mask: bool `[B, S]`, True where there is a real source token.

    Returns:
        Logits, float32 `[B, T, V]`.
    """

    def __init__(
        self, embedding, num_layers, *, cross_attention=True, tie_embeddings=True, dropout=0.0, **kwargs
    ):
        self.cross = cross_attention
        super().__init__(embedding, num_layers, dropout=dropout, **kwargs)
        self.tie_embeddings = tie_embeddings
        self.output_dense: Any = None
        self.given_embedding = embedding is not None

    def build(self, target_shape, memory_shape=None, memory_mask_shape=None):
        """Build embedding, blocks and the output projection."""
        self._build_stack(memory_shape)
        if not self.tie_embeddings:
            self.output_dense = layers.Dense(
                self.embedding.vocabulary_size, use_bias=False, dtype="float32", name="output"
            )
            self.output_dense.build((None, self.embedding.model_dim))

    def call(self, target, memory=None, memory_mask=None, training=None):
        """Predict the successor of every position of `[B, T]`."""
        cross = None if memory is None else self._project_memory(memory, memory_mask)
        x, _ = self._full_pass(target, None, causal=True, memory=cross, training=training)
        logits = ops.reshape(self._logits(x), (-1, ops.shape(target)[1], self.embedding.vocabulary_size))
        if training is True:
            layer = self.embedding.tokens if self.tie_embeddings else self.output_dense
            remember_projection(logits, x, layer)
        return logits

    def compute_output_spec(self, target, memory=None, memory_mask=None, training=None):
        """`[B, T]` -> `[B, T, V]`."""
        return keras.KerasTensor((*target.shape, self.embedding.vocabulary_size), "float32")

    def start(self, target, memory=None, memory_mask=None, *, max_length, hypotheses=1, slots=None):
        """Project the memory and run over all but the last real token of each prompt, once.

        Args:
            target: int32 `[B, P]`, the prompts, right-padded.
            memory: `[B, S, Dm]` or None.
            memory_mask: bool `[B, S]` or None.
            max_length: L, how many tokens may follow.
            hypotheses: W.
            slots: for how many of these the cache has room until it grows; default `max_length`.

        Returns:
            `DecodeState`.
        """
        slots = max_length if slots is None else slots
        self._check_limit(target.shape[1], max_length)
        batch = ops.shape(target)[0]
        cross = None if memory is None else self._project_memory(memory, memory_mask)
        context = {"cross": cross, "prompt": None, "offset": ops.zeros((batch,), "int32")}
        token = target[:, 0]
        if target.shape[1] is None:
            # Prompts of BOS alone leave nothing for a full pass, and no shape can be inferred from nothing.
            target = ops.pad(target, ((0, 0), (0, 1)))
        if target.shape[1] != 1:
            lengths = ops.sum(ops.cast(padding_mask(target), "int32"), axis=1)
            context["offset"] = ops.maximum(lengths - 1, 0)
            last = ops.expand_dims(context["offset"], 1)
            token = ops.squeeze(ops.take_along_axis(target, last, axis=1), axis=1)
            read = ops.expand_dims(ops.arange(ops.shape(target)[1] - 1), 0) < last  # [B, P-1]
            _, pairs = self._full_pass(target[:, :-1], None, causal=True, memory=cross, training=False)
            context["prompt"] = (pairs, ops.reshape(read, (batch, 1, 1, -1)))
        caches = [
            cache.empty_cache(
                batch,
                block.self_attention.groups,
                slots,
                hypotheses,
                block.key_dim,
                block.compute_dtype,
            )
            for block in self.blocks
        ]
        ancestors = cache.start_ancestors(batch, hypotheses, slots)
        return DecodeState(context, {"caches": caches, "ancestors": ancestors}, token)

    def step(self, token, index, carry, context):
        """Read one token for each row; see `models.protocol`."""
        width = carry["ancestors"].shape[1]
        at = ops.expand_dims(context["offset"], 1) + index  # [B, 1]
        ancestors = cache.claim_slot(carry["ancestors"], index)
        mask = cache.lane_mask(ancestors, index)
        slots = ops.expand_dims(ops.arange(ops.shape(ancestors)[2]), 0)
        now = ops.reshape(ops.cast(index, "int32"), (1, 1))
        bias = cache.lane_bias(self.positions.bias(now, slots, bidirectional=False), width)
        prompts = self._prompt_segments(context["prompt"], at)

        def rotate(heads):
            return self.positions.rotate(heads, at)

        def own(i, key, value):
            keys, values = carry["caches"][i]
            keys, values = cache.write(keys, index, key), cache.write(values, index, value)
            return [*prompts(i), cache.cache_segment(keys, values, mask, bias)], (keys, values)

        x, caches = self._embed(ops.reshape(token, (-1, width)), at, training=False), []
        for i, block in enumerate(self.blocks):
            cross = None if context["cross"] is None else context["cross"][i]
            x, pair = block.run(x, width, rotate, partial(own, i), cross, training=False)
            caches.append(pair)
        return self._logits(self._finish(x)), {"caches": caches, "ancestors": ancestors}

    def reorder(self, carry, parent):
        """Move hypotheses by their table of ancestors; the caches stay where they are."""
        return {**carry, "ancestors": cache.reorder_ancestors(carry["ancestors"], parent)}

    def grow(self, carry, context, slots):
        """Make room for `slots` tokens; see `models.protocol.Growing`."""
        return keras.tree.map_structure(lambda part: cache.grow(part, slots), carry)

    def align(self, target, memory, memory_mask=None, *, layer=-1):
        """Return where each position looks in the source.

        Args:
            target: int32 `[B, T]`.
            memory: `[B, S, Dm]`.
            memory_mask: bool `[B, S]` or None.
            layer: which block, counted from 0, or from the end if negative.

        Returns:
            The cross-attention weights of its heads, float32 `[B, H, T, S]`.

        Raises:
            ValueError: there is no such block.
        """
        if not -self.num_layers <= layer < self.num_layers:
            raise ValueError(f"layer must name one of {self.num_layers} blocks, received {layer}.")
        cross = self._project_memory(memory, memory_mask)
        weights: list = []
        self._full_pass(target, None, causal=True, memory=cross, training=False, weights=weights)
        return weights[layer]

    def _prompt_segments(self, prompt, at):
        """Return a function from a block's number to the segments of the prompt's keys and values."""
        if prompt is None:
            return lambda i: []
        pairs, mask = prompt
        places = ops.expand_dims(ops.arange(ops.shape(mask)[-1]), 0)
        bias = self.positions.bias(at, places, bidirectional=False)
        return lambda i: [Segment(pairs[i][0], pairs[i][1], mask, bias)]

    def _check_limit(self, prompt_length, max_length):
        limit = self.embedding.positions.max_length
        if limit is not None and (prompt_length or 1) - 1 + max_length > limit:
            raise ValueError(
                f"the learned positions end at max_length={limit}, received max_length={max_length} "
                f"after prompts of length {prompt_length}."
            )

    def _project_memory(self, memory, memory_mask):
        """Return each block's cross-attention segment, `[B, G, S, K]`."""
        mask = None if memory_mask is None else memory_mask[:, None, None, :]
        pairs = (block.cross_attention.project_memory(memory) for block in self.blocks)
        return [Segment(key, value, mask) for key, value in pairs]

    def _logits(self, x):
        logits = self.embedding.logits(x) if self.tie_embeddings else self.output_dense(x)
        return ops.cast(logits, "float32")

    def get_config(self):
        """Return every constructor argument."""
        config = super().get_config()
        if not self.given_embedding:
            config["embedding"] = None
        return {**config, "cross_attention": self.cross, "tie_embeddings": self.tie_embeddings}

    def get_build_config(self):
        """Return what to build from; without an embedding of its own only a `Seq2Seq` can build the layer."""
        return super().get_build_config() if self.given_embedding else None
