"""Cheap proofs of what the papers say about attention, on random numbers."""

import itertools

import numpy as np
import pytest
from references import randomize

from keras_seq2seq.layers import LuongAttention, MultiHeadSelfAttention

B, T, D = 2, 6, 8


@pytest.mark.parametrize("size", [16, 64, 256])
def test_the_variance_of_a_dot_product_is_the_head_size_and_1_after_scaling(
    rng: np.random.Generator, size: int
) -> None:
    query, key = rng.normal(size=(2, 1, 200, size)).astype("float32")
    scores = {}
    for name in ("dot", "scaled_dot"):
        layer = LuongAttention(name)
        layer.build(query.shape, key.shape)
        scores[name] = np.asarray(layer.score(query, layer.project_key(key)))
    assert np.var(scores["dot"]) == pytest.approx(size, rel=0.1)
    assert np.var(scores["scaled_dot"]) == pytest.approx(1.0, rel=0.1)


PATHS = list(itertools.product([False, True], [0.0, 0.5], [None, "keys", "pairs"], [None, False, True]))


@pytest.mark.parametrize(("scores", "dropout", "mask", "training"), PATHS)
def test_no_path_of_a_causal_layer_sees_what_comes_later(
    rng: np.random.Generator, scores: bool, dropout: float, mask: str | None, training: bool | None
) -> None:
    x = rng.normal(size=(B, T, D)).astype("float32")
    changed = x.copy()
    changed[:, 4:] += 1.0
    layer = MultiHeadSelfAttention(2, dropout=dropout)
    layer.build(x.shape)
    randomize(layer)
    masks = {None: None, "keys": np.ones((B, T), bool), "pairs": rng.random((B, T, T)) < 0.8}

    def run(x: np.ndarray) -> np.ndarray:
        if dropout:
            layer.dropout_layer.seed_generator.state.assign([1, 2])  # the same weights are dropped
        options = {"attention_mask": masks[mask], "return_attention_scores": scores, "training": training}
        output = layer(x, use_causal_mask=True, **options)
        if scores:
            output, weights = output
            assert not np.asarray(weights)[:, :, *np.triu_indices(T, 1)].any()
        return np.asarray(output)

    np.testing.assert_allclose(run(changed)[:, :4], run(x)[:, :4], atol=1e-6)
    assert np.abs(run(changed)[:, 4:] - run(x)[:, 4:]).max() > 0.01
