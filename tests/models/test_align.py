"""Alignments: the weights that the steps used, without a shift, for every kind of attention."""

import keras
import numpy as np
import pytest
from references import randomize

from keras_seq2seq.layers import BahdanauAttention, LuongAttention
from keras_seq2seq.models import rnn_seq2seq, transformer_seq2seq

SOURCE = np.array([[5, 6, 7, 8, 3], [9, 10, 3, 0, 0]], "int32")
TARGET = np.array([[2, 4, 5, 6], [2, 7, 8, 9]], "int32")
RNN = {"units": 6, "encoder_layers": 1, "decoder_layers": 2, "dropout": 0.0}


def recurrent(attention, **options) -> keras.Model:
    model = rnn_seq2seq(11, attention=attention, **RNN, **options)
    randomize(model)
    return model


def seen_in_steps(model: keras.Model, monkeypatch) -> np.ndarray:
    """Decode step by step, and record what the attention layer returns."""
    layer, seen = model.decoder.attention, []
    attend = type(layer).attend

    def record(self, *arguments, **options):
        context, weights = attend(self, *arguments, **options)
        seen.append(np.asarray(weights)[:, 0])
        return context, weights

    monkeypatch.setattr(type(layer), "attend", record)
    state = model.start({"source": SOURCE, "target": TARGET[:, :1]}, 4)
    carry = state.carry
    for index in range(4):
        _, carry = model.step(TARGET[:, index], np.int32(index), carry, state.context)
    monkeypatch.undo()
    return np.stack(seen, 1)


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (lambda: BahdanauAttention(4), {}),
        (lambda: LuongAttention("general"), {"input_feeding": True}),
        (lambda: LuongAttention("general"), {"input_feeding": False}),
    ],
    ids=["bahdanau", "luong-fed", "luong"],
)
def test_a_recurrent_alignment_is_what_the_steps_used(make, options: dict, monkeypatch) -> None:
    model = recurrent(make(), **options)
    weights = np.asarray(model.align({"source": SOURCE, "target": TARGET}))
    assert weights.shape == (2, 1, 4, 5)
    np.testing.assert_allclose(weights[:, 0], seen_in_steps(model, monkeypatch), atol=1e-6)
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-5)
    assert not weights[1, :, :, 3:].any()


def test_a_transformer_has_one_for_each_block_and_head() -> None:
    model = transformer_seq2seq(11, num_layers=2, model_dim=8, num_heads=2, feed_forward_dim=8, dropout=0.5)
    randomize(model)
    inputs = {"source": SOURCE, "target": TARGET}
    first, last = (np.asarray(model.align(inputs, layer=layer)) for layer in (0, 1))
    assert first.shape == last.shape == (2, 2, 4, 5)
    np.testing.assert_array_equal(model.align(inputs), last)
    assert np.abs(first - last).max() > 0.01
    np.testing.assert_allclose(last.sum(-1), 1.0, atol=1e-5)
    assert not last[1, :, :, 3:].any()
    # A later token changes no earlier row: row t belongs to what position t predicts.
    later = TARGET.copy()
    later[:, 3] = 4
    np.testing.assert_allclose(
        np.asarray(model.align({**inputs, "target": later}))[:, :, :3], last[:, :, :3], atol=1e-6
    )


def test_what_has_no_alignment_says_so() -> None:
    inputs = {"source": SOURCE, "target": TARGET}
    with pytest.raises(ValueError, match="attention=None has no alignment"):
        recurrent(None).align(inputs)
    with pytest.raises(ValueError, match="layer must be 0 or -1, received 1"):
        recurrent(LuongAttention("general")).align(inputs, layer=1)
    small = transformer_seq2seq(11, num_layers=2, model_dim=8, num_heads=2, feed_forward_dim=8)
    with pytest.raises(ValueError, match="layer must name one of 2 blocks, received 2"):
        small.align(inputs, layer=2)
