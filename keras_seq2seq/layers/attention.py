"""The attention of recurrent models: scores of the literature, one class for each family.

A new score is a subclass of `ScoreAttention` with `build` and `score`.

Legend: B batch, T query length, S key length, Dq query size, Dk key size, Dv value size, U units.
"""

import math

import keras
from keras import layers, ops

from keras_seq2seq.layers.attend import masked_softmax
from keras_seq2seq.layers.dropout import Dropout
from keras_seq2seq.layers.masks import combine_masks

__all__ = ["BahdanauAttention", "LuongAttention", "ScoreAttention"]

_register = keras.saving.register_keras_serializable(package="keras_seq2seq")


class ScoreAttention(layers.Layer):
    """softmax(score(q, k)) v, whatever the score: what a subclass adds is `build` and `score`.

    Args:
        dropout: rate on the attention weights.

    Call arguments:
        query: `[B, T, Dq]`.
        value: `[B, S, Dv]`.
        key: `[B, S, Dk]`; default `value`.
        attention_mask: bool `[B, S]` or `[B, T, S]`, True = may attend.
        return_attention_scores: also return the weights.

    Returns:
        The context `[B, T, Dv]`; with `return_attention_scores` also the weights, float32 `[B, T, S]`. A
        query that may attend to nothing has zero weights and zero context.
    """

    def __init__(self, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"dropout must be in [0, 1), received {dropout}.")
        self.dropout = dropout
        self.dropout_layer = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.input_spec = layers.InputSpec(ndim=3)

    def project_key(self, key):
        """Do once for each source what the score needs of the keys: `[B, S, Dk]` -> `[B, S, K]`."""
        return key

    def score(self, query, projected):
        """Return the scores `[B, T, S]` of queries `[B, T, Dq]` and projected keys `[B, S, K]`."""
        raise NotImplementedError

    def attend(self, query, projected, value, mask=None, training=None):
        """Attend with keys that are projected already.

        Args:
            query: `[B, T, Dq]`.
            projected: what `project_key` returned, `[B, S, K]`.
            value: `[B, S, Dv]`.
            mask: bool `[B or 1, T or 1, S]` or None.
            training: whether dropout is active.

        Returns:
            The context `[B, T, Dv]`, and the weights float32 `[B, T, S]`.
        """
        weights, alive = masked_softmax(self.score(query, projected), mask)
        if alive is not None:
            weights = weights * alive
        dropped = self.dropout_layer(weights, training=training) if self.dropout else weights
        return ops.matmul(ops.cast(dropped, value.dtype), value), weights

    def call(self, query, value, key=None, attention_mask=None, return_attention_scores=False, training=None):
        """Attend from `query` to `value`."""
        projected = self.project_key(value if key is None else key)
        context, weights = self.attend(query, projected, value, combine_masks(attention_mask), training)
        return (context, weights) if return_attention_scores else context

    def compute_mask(self, query, mask=None):
        """Forward the mask that arrives with the queries."""
        return mask

    def compute_output_spec(
        self, query, value, key=None, attention_mask=None, return_attention_scores=False, training=None
    ):
        """Declare both outputs, so that scores can be asked for when a model is built."""
        context = keras.KerasTensor((*query.shape[:2], value.shape[-1]), self.compute_dtype)
        if not return_attention_scores:
            return context
        return context, keras.KerasTensor((*query.shape[:2], value.shape[1]), "float32")

    def get_config(self):
        """Return every constructor argument."""
        return {**super().get_config(), "dropout": self.dropout}

    def _dense(self, fan_in, units, name):
        dense = layers.Dense(units, use_bias=False, dtype=self.dtype_policy, name=name)
        dense.build((None, fan_in))
        return dense


def dot_scores(query, key):
    """Return q.k for all pairs, `[B, T, S]`."""
    return ops.einsum("btk,bsk->bts", query, key)


@_register
class LuongAttention(ScoreAttention):
    """Multiplicative attention (Luong et al. 2015, section 3.1), and the scores that grew from it.

    - "dot": q.k, for queries and keys of one size.
    - "scaled_dot": q.k / sqrt(size) (Vaswani et al. 2017).
    - "general": q.(W k), of any sizes; with `rank` r the low-rank form (U q).(V k) with matrices of r rows,
      r (Dq + Dk) parameters instead of Dq Dk.
    - "concat": v.tanh(W [q; k]) with `units` rows in W.

    Args:
        score: "dot", "scaled_dot", "general" or "concat".
        rank: r, for "general".
        units: for "concat"; default Dq.
        dropout: rate on the attention weights.

    Call arguments, returns: see `ScoreAttention`.

    Raises:
        ValueError: an unknown score; `rank` or `units` for a score that has none; a dot product of unequal
            sizes.

    Example:
        >>> attention, mask = ks.layers.LuongAttention("general"), np.array([[True, True, False]])
        >>> query, memory = np.ones((1, 1, 4)), np.ones((1, 3, 6))
        >>> context, weights = attention(query, memory, attention_mask=mask, return_attention_scores=True)
        >>> np.asarray(weights).tolist()
        [[[0.5, 0.5, 0.0]]]
    """

    def __init__(self, score="dot", rank=None, units=None, dropout=0.0, **kwargs):
        super().__init__(dropout, **kwargs)
        if score not in ("dot", "scaled_dot", "general", "concat"):
            raise ValueError(f'score must be "dot", "scaled_dot", "general" or "concat", received {score!r}.')
        for name, value, owner in (("rank", rank, "general"), ("units", units, "concat")):
            if value is not None and score != owner:
                raise ValueError(f'{name} belongs to score="{owner}", received score={score!r}.')
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, received {value}.")
        self.score_name = score
        self.rank = rank
        self.units = units

    def build(self, query_shape, value_shape, key_shape=None):
        """Build the matrices of the score."""
        query_dim, key_dim = query_shape[-1], (key_shape or value_shape)[-1]
        if self.score_name in ("dot", "scaled_dot") and query_dim != key_dim:
            raise ValueError(
                f'score="{self.score_name}" needs queries and keys of one size, received {query_dim} and '
                f'{key_dim}; "general" takes unequal sizes.'
            )
        if self.score_name == "general":
            self.key_dense = self._dense(key_dim, self.rank or query_dim, "key")
            if self.rank is not None:
                self.query_dense = self._dense(query_dim, self.rank, "query")
        if self.score_name == "concat":
            _build_additive(self, query_dim, key_dim, self.units or query_dim)

    def project_key(self, key):
        """Multiply the keys by the matrix of the score, where there is one."""
        return self.key_dense(key) if self.score_name in ("general", "concat") else key

    def score(self, query, projected):
        """Return the scores `[B, T, S]`."""
        if self.score_name == "concat":
            return _additive_scores(self, query, projected)
        if self.score_name == "scaled_dot":
            query = query * ops.cast(1.0 / math.sqrt(query.shape[-1]), query.dtype)
        if self.rank is not None:
            query = self.query_dense(query)
        return dot_scores(query, projected)

    def get_config(self):
        """Return every constructor argument."""
        return {**super().get_config(), "score": self.score_name, "rank": self.rank, "units": self.units}


@_register
class BahdanauAttention(ScoreAttention):
    """Additive attention: score(q, k) = v.tanh(W q + U k) (Bahdanau et al. 2015, appendix A.1.2).

    Args:
        units: rows of W and U, size of v.
        dropout: rate on the attention weights.

    Call arguments, returns: see `ScoreAttention`.

    Example:
        >>> query, memory = np.ones((2, 1, 4)), np.ones((2, 5, 6))
        >>> attention = ks.layers.BahdanauAttention(8)
        >>> context, weights = attention(query, memory, return_attention_scores=True)
        >>> tuple(context.shape), tuple(weights.shape)
        ((2, 1, 6), (2, 1, 5))
    """

    def __init__(self, units, dropout=0.0, **kwargs):
        super().__init__(dropout, **kwargs)
        if units < 1:
            raise ValueError(f"units must be at least 1, received {units}.")
        self.units = units

    def build(self, query_shape, value_shape, key_shape=None):
        """Build W, U and v."""
        _build_additive(self, query_shape[-1], (key_shape or value_shape)[-1], self.units)

    def project_key(self, key):
        """Return U k."""
        return self.key_dense(key)

    def score(self, query, projected):
        """Return the scores `[B, T, S]`."""
        return _additive_scores(self, query, projected)

    def get_config(self):
        """Return every constructor argument."""
        return {**super().get_config(), "units": self.units}


def _build_additive(layer, query_dim, key_dim, units):
    layer.query_dense = layer._dense(query_dim, units, "query")
    layer.key_dense = layer._dense(key_dim, units, "key")
    layer.score_dense = layer._dense(units, 1, "score")


def _additive_scores(layer, query, projected):
    pairs = ops.expand_dims(layer.query_dense(query), 2) + ops.expand_dims(projected, 1)  # [B, T, S, U]
    return ops.squeeze(layer.score_dense(ops.tanh(pairs)), -1)
