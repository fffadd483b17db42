"""Bahdanau's and Luong's attention against their published equations, in NumPy."""

import keras
import numpy as np
import pytest
from references import attention, randomize, softmax

from keras_seq2seq.layers import BahdanauAttention, LuongAttention, ScoreAttention

B, T, S = 2, 3, 5


def arrays(query: int = 8, key: int = 8, value: int = 7) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(query + 2 * key)

    def normal(length: int, size: int) -> np.ndarray:
        return rng.normal(size=(B, length, size)).astype("float32")

    return normal(T, query), normal(S, key), normal(S, value)


def built(layer: ScoreAttention, query: np.ndarray, key: np.ndarray, value: np.ndarray) -> ScoreAttention:
    layer.build(query.shape, value.shape, key.shape)
    randomize(layer)
    return layer


def weights_of(layer: ScoreAttention) -> dict[str, np.ndarray]:
    return {v.path.split("/")[-2]: np.asarray(v, "float64") for v in layer.trainable_variables}


def additive(query: np.ndarray, key: np.ndarray, w: dict[str, np.ndarray]) -> np.ndarray:
    scores = np.zeros((B, T, S))
    for b, t, s in np.ndindex(B, T, S):
        scores[b, t, s] = np.tanh(query[b, t] @ w["query"] + key[b, s] @ w["key"]) @ w["score"][:, 0]
    return scores


SCORES = {
    "dot": (lambda: LuongAttention("dot"), 8, 8, lambda q, k, w: q @ k.swapaxes(1, 2)),
    "scaled_dot": (
        lambda: LuongAttention("scaled_dot"),
        8,
        8,
        lambda q, k, w: q @ k.swapaxes(1, 2) / np.sqrt(8),
    ),
    "general": (lambda: LuongAttention("general"), 8, 6, lambda q, k, w: q @ (k @ w["key"]).swapaxes(1, 2)),
    "low_rank": (
        lambda: LuongAttention("general", rank=3),
        8,
        6,
        lambda q, k, w: (q @ w["query"]) @ (k @ w["key"]).swapaxes(1, 2),
    ),
    "concat": (lambda: LuongAttention("concat", units=4), 8, 6, additive),
    "bahdanau": (lambda: BahdanauAttention(4), 8, 6, additive),
}


@pytest.fixture(params=SCORES)
def case(request: pytest.FixtureRequest):
    make, query_size, key_size, reference = SCORES[request.param]
    query, key, value = arrays(query_size, key_size)
    return built(make(), query, key, value), query, key, value, reference


@pytest.mark.parametrize("rank", [None, 2, 3])
def test_context_and_weights_equal_the_equation(case, rank: int | None) -> None:
    layer, query, key, value, reference = case
    mask = None
    if rank == 2:
        mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], bool)
    elif rank == 3:
        mask = np.random.default_rng(5).random((B, T, S)) < 0.6
        mask[:, :, 0] = True
    context, weights = layer(query, value, key, attention_mask=mask, return_attention_scores=True)
    scores = reference(query.astype("float64"), key.astype("float64"), weights_of(layer))
    full = np.ones((B, T, S), bool) if mask is None else np.broadcast_to(mask.reshape(B, -1, S), (B, T, S))
    expected = softmax(np.where(full, scores, -1e30))
    np.testing.assert_allclose(weights, expected, atol=1e-5)
    np.testing.assert_allclose(context, expected @ value, atol=1e-5)
    assert not np.asarray(weights)[~full].any()


def test_a_row_that_may_see_nothing_gets_zeros(case) -> None:
    layer, query, key, value, _ = case
    mask = np.ones((B, T, S), bool)
    mask[0, 1] = False
    context, weights = layer(query, value, key, attention_mask=mask, return_attention_scores=True)
    assert not np.asarray(weights)[0, 1].any()
    assert not np.asarray(context)[0, 1].any()
    np.testing.assert_allclose(np.asarray(weights).sum(-1)[mask.any(-1)], 1.0, atol=1e-5)


def test_keys_projected_once_give_the_same(case) -> None:
    layer, query, key, value, _ = case
    projected = layer.project_key(key)
    steps = [layer.attend(query[:, t : t + 1], projected, value)[0] for t in range(T)]
    np.testing.assert_allclose(np.concatenate(steps, 1), layer(query, value, key), atol=1e-6)


def test_without_a_key_the_value_is_it() -> None:
    query, key, _ = arrays()
    layer = built(LuongAttention("scaled_dot"), query, key, key)
    context, _ = attention(query.astype("float64"), key.astype("float64"), key.astype("float64"))
    np.testing.assert_allclose(layer(query, key), context, atol=1e-5)


def test_scores_exist_symbolically() -> None:
    query, value = keras.Input((None, 8)), keras.Input((None, 8))
    for layer in (LuongAttention("dot"), BahdanauAttention(3)):
        context, weights = layer(query, value, return_attention_scores=True)
        assert (context.shape, weights.shape) == ((None, None, 8), (None, None, None))


def test_dropout_acts_on_the_weights_in_training_alone() -> None:
    query, key, value = arrays()
    layer = built(LuongAttention("dot", dropout=0.5), query, key, value)
    plain = np.asarray(layer(query, value, key))
    np.testing.assert_array_equal(layer(query, value, key, training=False), plain)
    assert np.abs(np.asarray(layer(query, value, key, training=True)) - plain).max() > 0.01
    _, weights = layer(query, value, key, training=True, return_attention_scores=True)
    np.testing.assert_allclose(np.asarray(weights).sum(-1), 1.0, atol=1e-5)  # those before dropout


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision_is_close_and_weights_stay_float32(policy: str) -> None:
    query, key, value = arrays()
    whole = built(BahdanauAttention(4), query, key, value)
    half = built(BahdanauAttention(4, dtype=policy), query, key, value)
    context, weights = half(query, value, key, return_attention_scores=True)
    assert "float32" in str(weights.dtype)
    expected = np.asarray(whole(query, value, key))
    np.testing.assert_allclose(np.asarray(context, "float32"), expected, atol=0.03)


def test_a_low_rank_form_has_that_many_parameters() -> None:
    query, key, value = arrays(8, 6)
    assert built(LuongAttention("general", rank=2), query, key, value).count_params() == 2 * (8 + 6)
    assert built(LuongAttention("general"), query, key, value).count_params() == 8 * 6


@pytest.mark.parametrize("name", ["dot", "scaled_dot"])
def test_a_dot_product_of_unequal_sizes_names_both(name: str) -> None:
    query, key, value = arrays(8, 16)
    with pytest.raises(ValueError, match=r"one size, received 8 and 16"):
        LuongAttention(name)(query, value, key)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LuongAttention("cosine"), r"score must be .* received 'cosine'"),
        (lambda: LuongAttention("dot", rank=2), r'rank belongs to score="general", received score=\'dot\''),
        (lambda: LuongAttention("dot", units=2), r'units belongs to score="concat", received score=\'dot\''),
        (lambda: LuongAttention("general", rank=0), r"rank must be at least 1, received 0"),
        (lambda: BahdanauAttention(0), r"units must be at least 1, received 0"),
        (lambda: BahdanauAttention(3, dropout=1.0), r"dropout must be in \[0, 1\), received 1.0"),
    ],
)
def test_settings_that_a_score_does_not_have_are_refused(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_new_score_is_one_method() -> None:
    class Cosine(ScoreAttention):
        def score(self, query, projected):
            unit = keras.ops.normalize
            return keras.ops.einsum("btk,bsk->bts", unit(query, axis=-1), unit(projected, axis=-1))

    query, key, value = arrays()
    _, weights = Cosine()(query, value, key, return_attention_scores=True)

    def unit(x: np.ndarray) -> np.ndarray:
        return x / np.linalg.norm(x, axis=-1, keepdims=True)

    np.testing.assert_allclose(weights, softmax(unit(query) @ unit(key).swapaxes(1, 2)), atol=1e-5)
