"""Recurrent decoder, without attention or with Bahdanau's or Luong's.

Legend: B sources, S source length, T target length, W hypotheses, R = B*W rows, D embedding size, U units,
F size of what is fed back, V vocabulary.
"""

import keras
from keras import layers, ops

from keras_seq2seq.layers.attention import BahdanauAttention
from keras_seq2seq.layers.cells import make_cell
from keras_seq2seq.layers.dropout import Dropout
from keras_seq2seq.layers.masks import combine_masks, padding_mask
from keras_seq2seq.layers.recurrence import run_cell, scan_rows
from keras_seq2seq.models.bridge import StateBridge
from keras_seq2seq.models.projection import remember_projection
from keras_seq2seq.models.protocol import DecodeState, reorder_rows
from keras_seq2seq.models.recurrent_encoder import LOOPS_GAIN_BY_XLA, recurrent_keep

__all__ = ["RecurrentDecoder"]


@keras.saving.register_keras_serializable(package="keras_seq2seq")
class RecurrentDecoder(layers.Layer):
    """Predict each next token by stacked recurrent layers that start from the encoder's final states.

    - `attention=None`: the output comes from the top layer; of the source it sees the final states alone
      (Sutskever et al. 2014).
    - `BahdanauAttention`: the query is the top layer's state before the step, and the context enters the
      first layer together with the token (Bahdanau et al. 2015, appendix A.2.2); the output is a maxout of
      state, token and context.
    - Any other `ScoreAttention`: the query is the top layer's state after the step, and the output comes
      from the attentional vector tanh(W [context; state]) (Luong et al. 2015, equation 5). With
      `input_feeding` that vector also enters the first layer in the next step (section 3.3); without it all
      steps of a layer, and the attention of all steps, are computed at once.

    Args:
        embedding: a `PositionalEmbedding`; None in a `Seq2Seq` that is to give the decoder the encoder's.
        cell: "lstm", "gru" or "rnn".
        units: U.
        num_layers: how many recurrent layers.
        attention: an attention layer or None.
        input_feeding: see above; default True with an attention that can, as published.
        dropout: rate on embeddings, between layers and before the output projection.
        recurrent_dropout: rate on the outputs that go back into a cell.
        tie_embeddings: use the embedding matrix for the output projection too.

    Call arguments:
        target: int32 `[B, T]`, 0 is padding.
        memory: what `RecurrentEncoder` returns.
        memory_mask: bool `[B, S]`, True where there is a real source token.

    Returns:
        Logits, float32 `[B, T, V]`.

    Raises:
        ValueError: `input_feeding` without an attention that has it.
    """

    def __init__(
        self,
        embedding,
        cell="lstm",
        units=512,
        num_layers=1,
        attention=None,
        input_feeding=None,
        dropout=0.0,
        recurrent_dropout=0.0,
        tie_embeddings=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        early = isinstance(attention, BahdanauAttention)
        can_feed = attention is not None and not early
        if input_feeding and not can_feed:
            raise ValueError(
                "input_feeding feeds the attentional vector of LuongAttention back, received "
                f"input_feeding=True with attention={type(attention).__name__ if attention else None}."
            )
        self.embedding = embedding
        self.given_embedding = embedding is not None
        self.cell = cell
        self.units = units
        self.num_layers = num_layers
        self.attention = attention
        self.early = early
        self.input_feeding = can_feed if input_feeding is None else bool(input_feeding)
        self.dropout = dropout
        self.recurrent_dropout = recurrent_dropout
        self.tie_embeddings = tie_embeddings
        policy = self.dtype_policy
        self.cells = [make_cell(cell, units, dtype=policy, name=f"cell_{i}") for i in range(num_layers)]
        self.bridge = StateBridge(units, num_layers, self.cells[0].states, dtype=policy, name="bridge")
        self.dropout_layer = Dropout(dropout, dtype=policy, name="dropout")
        self.seed_generator = keras.random.SeedGenerator()
        self.supports_jit = LOOPS_GAIN_BY_XLA

    def build(self, target_shape, memory_shape, memory_mask_shape=None):
        """Build everything for a memory of these sizes."""
        if not self.embedding.built:
            self.embedding.build((None, None))
        outputs = memory_shape["outputs"]
        self.bridge.build(memory_shape["states"])
        size = self.embedding.model_dim
        self.cells[0].build((None, size))
        for cell in self.cells[1:]:
            cell.build((None, self.units))
        if self.attention is not None and not self.attention.built:
            self.attention.build((None, None, self.units), outputs)
        self.fed_dim = outputs[-1] if self.early else self.units
        if self.early:
            self.maxout_dense = self._dense(self.units + size + self.fed_dim, size * 2, "maxout", True)
        elif self.attention is not None:
            self.attentional_dense = self._dense(outputs[-1] + self.units, self.units, "attentional")
        if self.early or self.input_feeding:
            self.feed_dense = self._dense(self.fed_dim, self.cells[0].gates * self.units, "feed")
        feature_dim = size if self.early else self.units
        if self.tie_embeddings and feature_dim != size:
            self.to_embedding = self._dense(feature_dim, size, "to_embedding")
        if not self.tie_embeddings:
            self.output_dense = layers.Dense(self.embedding.vocabulary_size, dtype="float32", name="output")
            self.output_dense.build((None, feature_dim))

    def _dense(self, fan_in, units, name, use_bias=False):
        dense = layers.Dense(units, use_bias=use_bias, dtype=self.dtype_policy, name=name)
        dense.build((None, fan_in))
        return dense

    def call(self, target, memory, memory_mask=None, training=None):
        """Predict the successor of every position of `[B, T]` (teacher forcing)."""
        source = self._project_memory(memory, memory_mask)
        features, _ = self._full_pass(target, source, self._first(memory), None, training)
        features = self._to_project(features)
        shape = -1, ops.shape(target)[1], self.embedding.vocabulary_size
        logits = ops.reshape(self._logits(features), shape)
        if training is True:
            layer = self.embedding.tokens if self.tie_embeddings else self.output_dense
            remember_projection(logits, features, layer)
        return logits

    def compute_output_spec(self, target, memory, memory_mask=None, training=None):
        """`[B, T]` -> `[B, T, V]`."""
        return keras.KerasTensor((*target.shape, self.embedding.vocabulary_size), "float32")

    def start(self, target, memory, memory_mask=None, *, max_length, hypotheses=1):
        """Read all but the last real token of each prompt; see `models.protocol`.

        Args:
            target: int32 `[B, P]`, the prompts, right-padded.
            memory: what `RecurrentEncoder` returns.
            memory_mask: bool `[B, S]` or None.
            max_length: how many tokens may follow; nothing here depends on it.
            hypotheses: W.

        Returns:
            `DecodeState`.
        """
        source, carry, token = self._project_memory(memory, memory_mask), self._first(memory), target[:, 0]
        if target.shape[1] != 1:
            real = padding_mask(target)
            last = ops.expand_dims(ops.sum(ops.cast(real, "int32"), axis=1) - 1, 1)
            last = ops.maximum(last, 0)
            token = ops.squeeze(ops.take_along_axis(target, last, axis=1), axis=1)
            # A prompt's last token is read by the first step. The last column is never read, but a loop of no
            # steps, for prompts of BOS alone, has no outputs whose shape TensorFlow would know.
            read = ops.expand_dims(ops.arange(ops.shape(target)[1]), 0) < last
            _, carry = self._full_pass(target, source, carry, read, False)
        if hypotheses > 1:
            carry = keras.tree.map_structure(lambda leaf: ops.repeat(leaf, hypotheses, axis=0), carry)
        return DecodeState({"source": source}, carry, token)

    def step(self, token, index, carry, context):
        """Read one token for each row; see `models.protocol`."""
        x = self.embedding(ops.expand_dims(token, 1))[:, 0]  # [R, D]
        projected = self.cells[0].project(x)
        states, fed = self._advance(projected, carry["states"], carry.get("fed"), context["source"])
        features = self._features(states[-1][0], x, fed, context["source"])
        return self._logits(self._to_project(features)), _carry(states, fed)

    def reorder(self, carry, parent):
        """Gather the rows of the states; see `models.protocol`."""
        return reorder_rows(carry, parent)

    def align(self, target, memory, memory_mask=None, *, layer=-1):
        """Return where each position looks in the source.

        Args:
            target: int32 `[B, T]`.
            memory: what `RecurrentEncoder` returns.
            memory_mask: bool `[B, S]` or None.
            layer: 0 or -1, as there is one attention.

        Returns:
            Its weights, float32 `[B, 1, T, S]`.

        Raises:
            ValueError: the decoder has no attention, or no such layer.
        """
        if self.attention is None:
            raise ValueError("a decoder with attention=None has no alignment.")
        if layer not in (0, -1):
            raise ValueError(f"layer must be 0 or -1, received {layer}.")
        source, first = self._project_memory(memory, memory_mask), self._first(memory)
        query = self._run(target, source, first, training=False)[0]
        if self.early:  # the state before each step
            start = ops.expand_dims(first["states"][-1][0], 1)
            query = ops.concatenate([start, query[:, :-1]], axis=1)
        parts = source["projected"], source["value"], source["mask"]
        _, weights = self.attention.attend(query, *parts, training=False)
        return ops.expand_dims(weights, 1)

    def _first(self, memory):
        """Return the carry before the first token, which is fed a zero vector where it is fed one."""
        states = self.bridge(memory["states"])
        fed = None
        if self.early or self.input_feeding:
            fed = ops.zeros((ops.shape(states[0][0])[0], self.fed_dim), dtype=self.compute_dtype)
        return _carry(states, fed)

    def _project_memory(self, memory, memory_mask):
        """Project the keys once for each source."""
        if self.attention is None:
            return None
        value = memory["outputs"]
        return {
            "projected": self.attention.project_key(value),
            "value": value,
            "mask": combine_masks(memory_mask),
        }

    def _attend(self, query, source, training):
        """Attend from rows `[R, U]`; the hypotheses of a source are its queries."""
        batch = ops.shape(source["value"])[0]
        queries = ops.reshape(query, (batch, -1, self.units))  # [B, W, U]
        context, _ = self.attention.attend(
            queries, source["projected"], source["value"], source["mask"], training
        )
        return ops.reshape(context, (-1, context.shape[-1]))  # [R, E]

    def _full_pass(self, target, source, carry, mask=None, training=None):
        """Read whole sequences `[B, T]`; return features `[B*T, F]` and the carry at each row's end."""
        top, x, fed, carry = self._run(target, source, carry, mask, training)
        top, x, fed = (None if y is None else ops.reshape(y, (-1, y.shape[-1])) for y in (top, x, fed))
        return self._features(top, x, fed, source, training), carry

    def _run(self, target, source, carry, mask=None, training=None):
        """Return top states, embeddings and what was fed (or None), all `[B, T, ...]`, and the carry."""
        x = self._drop(self.embedding(target), training)
        states, fed = carry["states"], carry.get("fed")
        keeps = [
            recurrent_keep(x, self.units, self.recurrent_dropout, self.seed_generator, training)
            for _ in self.cells
        ]
        if fed is None:
            top, states = x, list(states)
            for i, cell in enumerate(self.cells):
                top = self._drop(top, training) if i else top
                states[i], top = run_cell(cell, top, states[i], mask, keep=keeps[i], training=training)
            return top, x, None, _carry(states, None)
        top, fed, carry = self._scan(x, source, states, fed, mask, keeps, training)
        return top, x, fed, carry

    def _scan(self, x, source, states, fed, mask, keeps, training):
        """Take all steps one by one, where each needs what the one before attended to.

        Returns the top layer's states and what was fed, both `[B, T, ...]`, and the last carry.
        """
        count = self.cells[0].states

        def advance(flat, projected):
            states = [tuple(flat[i : i + count]) for i in range(0, len(flat) - 1, count)]
            states, fed = self._advance(projected, states, flat[-1], source, keeps, training)
            return (*(leaf for state in states for leaf in state), fed)

        flat = (*(leaf for state in states for leaf in state), fed)
        last, every = scan_rows(advance, flat, self.cells[0].project(x), mask)
        states = [tuple(last[i : i + count]) for i in range(0, len(last) - 1, count)]
        return every[-1 - count], every[-1], _carry(states, last[-1])

    def _advance(self, projected, states, fed, source, keeps=None, training=False):
        """Take one step of all layers from the projected token `[R, gates*U]`.

        `fed` is Bahdanau's context of this step, Luong's attentional vector of the step before, or None.
        """
        if self.early:
            fed = self._attend(states[-1][0], source, training)
        if fed is not None:
            projected = projected + self.feed_dense(fed)
        new: list[tuple] = []
        for i, (cell, state) in enumerate(zip(self.cells, states, strict=True)):
            if i > 0:
                projected = cell.project(self._drop(new[-1][0], training))
            new.append(tuple(cell.advance(projected, state, None if keeps is None else keeps[i])))
        if self.input_feeding:
            fed = self._attentional(new[-1][0], source, training)
        return new, fed

    def _features(self, top, x, fed, source, training=False):
        """Return what the output projection reads, from rows of top state, embedding and what was fed."""
        if self.early:
            pairs = self.maxout_dense(ops.concatenate([top, x, fed], axis=-1))
            features = ops.max(ops.reshape(pairs, (-1, pairs.shape[-1] // 2, 2)), axis=-1)
        elif self.input_feeding:
            features = fed
        elif self.attention is not None:
            features = self._attentional(top, source, training)
        else:
            features = top
        return self._drop(features, training)

    def _attentional(self, state, source, training):
        """Return tanh(W [context; state]) of rows `[R, U]`."""
        context = self._attend(state, source, training)
        return ops.tanh(self.attentional_dense(ops.concatenate([context, state], axis=-1)))

    def _drop(self, x, training):
        return self.dropout_layer(x, training=training) if self.dropout else x

    def _to_project(self, features):
        """Return what is projected to logits: features, of the embeddings' size where these are shared."""
        fits = not self.tie_embeddings or features.shape[-1] == self.embedding.model_dim
        return features if fits else self.to_embedding(features)

    def _logits(self, x):
        return ops.cast(self.embedding.logits(x) if self.tie_embeddings else self.output_dense(x), "float32")

    def get_config(self):
        """Return every constructor argument."""
        serialize = keras.saving.serialize_keras_object
        return {
            **super().get_config(),
            "embedding": serialize(self.embedding) if self.given_embedding else None,
            "cell": self.cell,
            "units": self.units,
            "num_layers": self.num_layers,
            "attention": None if self.attention is None else serialize(self.attention),
            "input_feeding": self.input_feeding,
            "dropout": self.dropout,
            "recurrent_dropout": self.recurrent_dropout,
            "tie_embeddings": self.tie_embeddings,
        }

    def get_build_config(self):
        """Return what to build from; without an embedding of its own only a `Seq2Seq` can build the layer."""
        return super().get_build_config() if self.given_embedding else None

    @classmethod
    def from_config(cls, config):
        """Rebuild the layer and its parts."""
        config = dict(config)
        for name in ("embedding", "attention"):
            if config.get(name) is not None:
                config[name] = keras.saving.deserialize_keras_object(config[name])
        return cls(**config)


def _carry(states, fed):
    """Put the states of a step together; a loop cannot carry None."""
    states = [tuple(state) for state in states]
    return {"states": states} if fed is None else {"states": states, "fed": fed}
