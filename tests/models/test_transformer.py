"""The Transformer's masks, depths, sizes and sharing, on the full pass."""

import numpy as np
import pytest
import tensorflow as tf
from references import attention, randomize

from keras_seq2seq import models
from keras_seq2seq.layers import LinearBias, PositionalEmbedding
from keras_seq2seq.models.presets import dimensions

V, D, H = 19, 16, 4
SIZES = {"model_dim": D, "feed_forward_dim": 20, "num_heads": H}
SOURCE = np.array([[5, 9, 4, 3, 0, 0, 0], [8, 17, 3, 0, 0, 0, 0]], "int32")  # length 7, pads behind
TARGET = np.array([[2, 6, 11, 4], [2, 7, 7, 9]], "int32")


def make(**options) -> models.Seq2Seq:
    model = models.transformer_seq2seq(V, **{"num_layers": 2, **SIZES, **options})
    randomize(model)
    return model


def difference(a, b) -> float:
    return float(np.abs(np.asarray(a) - np.asarray(b)).max())


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "relative"])
def test_cross_attention_masks_source_pads_alone(positions: str) -> None:
    """Target and source differ in length; pads of the source are invisible, those of the target harmless."""
    model = make(positions=positions)
    logits = model({"source": SOURCE, "target": TARGET})
    assert logits.shape == (2, 4, V)
    longer = np.pad(SOURCE, ((0, 0), (0, 10)))
    assert difference(model({"source": longer, "target": TARGET}), logits) < 1e-5
    padded = np.pad(TARGET, ((0, 0), (0, 3)))
    assert difference(model({"source": SOURCE, "target": padded})[:, :4], logits) < 1e-5
    # A real token more does change them.
    longer[:, 3] = 12
    assert difference(model({"source": longer, "target": TARGET}), logits) > 1e-3


def test_what_stands_under_source_pads_is_never_seen() -> None:
    model = make(share_embeddings=False)
    before = model({"source": SOURCE, "target": TARGET})
    matrix = model.encoder.embedding.tokens.embeddings
    matrix.assign(np.asarray(matrix) + 100.0 * (np.arange(V) == 0)[:, None])  # the vector of PAD
    assert difference(model({"source": SOURCE, "target": TARGET}), before) < 1e-5


def test_a_later_target_changes_nothing_before_it() -> None:
    model = make()
    logits = model({"source": SOURCE, "target": TARGET})
    changed = TARGET.copy()
    changed[:, 2:] = 13
    again = model({"source": SOURCE, "target": changed})
    assert difference(again[:, :2], logits[:, :2]) < 1e-5
    assert difference(again[:, 2:], logits[:, 2:]) > 1e-2
    for options in ({"dropout": 0.5, "attention_dropout": 0.5}, {"num_key_value_heads": 1}):
        model = make(**options)
        first, second = (model({"source": SOURCE, "target": t}, training=False) for t in (TARGET, changed))
        assert difference(first[:, :2], second[:, :2]) < 1e-5


def test_a_source_of_pads_alone_gives_finite_logits_and_gradients() -> None:
    """Servers fill batches with such rows."""
    model = make()
    source = np.concatenate([SOURCE[:1], np.zeros((1, 7), "int32")])
    with tf.GradientTape() as tape:
        logits = model({"source": source, "target": TARGET})
        total = tf.reduce_sum(logits**2)
    assert np.isfinite(logits).all()
    for gradient in tape.gradient(total, [v.value for v in model.trainable_variables]):
        assert np.isfinite(tf.convert_to_tensor(gradient)).all()
    alone = model({"source": SOURCE[:1], "target": TARGET[:1]})
    assert difference(logits[:1], alone) < 1e-5


def test_every_source_position_sees_every_real_one() -> None:
    model = make()
    memory = np.asarray(model.encoder(SOURCE))
    changed = SOURCE.copy()
    changed[0, 3] = 15
    assert np.abs(np.asarray(model.encoder(changed)) - memory)[0, :4].max(-1).min() > 1e-3
    assert difference(model.encoder(changed)[1], memory[1]) < 1e-6


def test_without_positions_permuting_the_source_permutes_the_memory(rng: np.random.Generator) -> None:
    source = rng.integers(4, V, (2, 6)).astype("int32")
    order = rng.permutation(6)
    for positions, equal in ((None, True), ("sinusoidal", False), ("alibi", False)):
        encoder = make(positions=positions).encoder
        gap = difference(encoder(source[:, order]), np.asarray(encoder(source))[:, order])
        assert (gap < 1e-5) == equal


def test_a_block_is_its_equation() -> None:
    """One pre-norm block without its feed-forward sublayer by hand: x + attention(norm(x)) W_o."""
    embedding = PositionalEmbedding(V, D, positions=None)
    decoder = models.TransformerDecoder(
        embedding,
        1,
        cross_attention=False,
        positions=LinearBias(1),
        block={"num_heads": 1, "feed_forward_dim": 4},
    )
    decoder.build((None, None))
    block = decoder.blocks[0]
    randomize(decoder)
    silent = block.feed_forward.output_dense
    silent.kernel.assign(np.zeros(silent.kernel.shape))
    silent.bias.assign(np.zeros(silent.bias.shape))
    x = np.asarray(embedding.tokens.embeddings)[TARGET] * D**0.5

    def norm(x, layer):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6)
        return scaled * np.asarray(layer.gamma) + np.asarray(layer.beta)

    dense = block.self_attention.query_key_value_dense
    q, k, v = np.split(
        norm(x, block.self_add_norm.norm) @ np.asarray(dense.kernel) + np.asarray(dense.bias), 3, -1
    )
    distance = np.arange(4)[:, None] - np.arange(4)
    context, _ = attention(q, k, v, distance >= 0, -(2.0**-8) * distance)
    out = block.self_attention.output_dense
    x = x + context @ np.asarray(out.kernel) + np.asarray(out.bias)
    expected = norm(x, decoder.final_norm) @ np.asarray(embedding.tokens.embeddings).T
    np.testing.assert_allclose(decoder(TARGET), expected, atol=1e-4)


def test_depths_of_encoder_and_decoder_are_apart() -> None:
    model = make(num_layers=3, decoder_layers=1)
    assert (len(model.encoder.blocks), len(model.decoder.blocks)) == (3, 1)
    assert len(make(num_layers=2).decoder.blocks) == 2


def test_sizes_are_the_published_ones() -> None:
    sizes = {size: dimensions(size) for size in ("tiny", "small", "base", "big")}
    assert sizes == {
        "tiny": (4, 128, 256, 4),
        "small": (6, 256, 1024, 4),
        "base": (6, 512, 2048, 8),
        "big": (6, 1024, 4096, 16),
    }
    assert dimensions("tiny", num_layers=1, num_heads=2) == (1, 128, 256, 2)


def test_tiny_has_the_published_number_of_parameters() -> None:
    """Counted by hand: 4 + 4 layers of width 128 with 256 inside, one matrix for 100 ids."""
    model = models.transformer_seq2seq(100, size="tiny")
    attention_, feed, norm = 4 * (128 * 128 + 128), 2 * 128 * 256 + 256 + 128, 2 * 128
    encoder = 4 * (attention_ + feed + 2 * norm) + norm
    decoder = 4 * (2 * attention_ + feed + 3 * norm) + norm
    assert model.count_params() == 100 * 128 + encoder + decoder


def test_pre_norm_ends_in_a_norm_and_post_norm_does_not() -> None:
    assert make(placement="pre").decoder.final_norm is not None
    assert make(placement="post").decoder.final_norm is None


@pytest.mark.parametrize(("share", "tie"), [(True, True), (True, False), (False, True), (False, False)])
def test_sharing_and_tying(share: bool, tie: bool) -> None:
    model = make(share_embeddings=share, tie_embeddings=tie)
    assert (model.decoder.embedding is model.encoder.embedding) == share
    assert len([v for v in model.variables if V in v.shape]) == 3 - share - tie


def test_vocabularies_may_differ() -> None:
    model = models.transformer_seq2seq(V, V + 5, num_layers=1, **SIZES)
    assert model({"source": SOURCE, "target": TARGET}).shape == (2, 4, V + 5)
    with pytest.raises(ValueError, match=r"source_vocabulary_size=19.*target_vocabulary_size=24"):
        models.transformer_seq2seq(V, V + 5, num_layers=1, share_embeddings=True, **SIZES)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": "huge"}, "size must be one of 'tiny'.*'huge'"),
        ({"positions": "absolute"}, "positions must be one of.*'absolute'"),
        ({"positions": "learned"}, "max_length=None"),
        ({"placement": "sandwich"}, "placement.*'sandwich'"),
        ({"num_key_value_heads": 3}, "num_key_value_heads=3"),
        ({"num_layer": 3}, "num_layer.*3"),
        ({"num_layers": 0}, "num_layers.*received 0"),
        ({"decoder_layers": 0}, "num_layers.*received 0"),
        ({"model_dim": 0}, "model_dim.*received 0"),
        ({"target_vocabulary_size": 0}, "vocabulary_size.*received 0"),
        ({"share_embeddings": True, "target_vocabulary_size": 0}, "target_vocabulary_size=0"),
    ],
)
def test_bad_options_are_named(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        models.transformer_seq2seq(V, **{**SIZES, "num_layers": 1, **options})
