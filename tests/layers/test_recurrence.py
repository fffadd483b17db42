"""Recurrent cells against Keras' own, and states under padding wherever it stands."""

import keras
import numpy as np
import pytest
from references import randomize

from keras_seq2seq.layers import PositionalEmbedding
from keras_seq2seq.layers.cells import make_cell
from keras_seq2seq.layers.recurrence import run_cell
from keras_seq2seq.models import RecurrentEncoder

B, T, D, U = 3, 7, 4, 5
KERAS = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU, "rnn": keras.layers.SimpleRNN}
# Keras' order of an LSTM's gates is i, f, g, o, ours i, f, o, g, which leaves one sigmoid for three.
ORDER = {"lstm": [0, 1, 3, 2], "gru": [0, 1, 2], "rnn": [0]}


def reordered(kernel: np.ndarray, name: str) -> np.ndarray:
    return np.concatenate([np.split(kernel, len(ORDER[name]), -1)[i] for i in ORDER[name]], -1)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", KERAS)
def test_a_cell_equals_the_one_of_keras(name: str, reverse: bool, rng: np.random.Generator) -> None:
    x = rng.normal(size=(B, T, D)).astype("float32")
    theirs = KERAS[name](U, return_sequences=True, return_state=True, go_backwards=reverse)
    theirs.build(x.shape)
    randomize(theirs)
    cell = make_cell(name, U)
    cell.build(x.shape)
    kernel, recurrent, bias = (np.asarray(weight) for weight in theirs.get_weights())
    cell.input_dense.kernel.assign(reordered(kernel, name))
    cell.recurrent_dense.kernel.assign(reordered(recurrent, name))
    cell.input_dense.bias.assign(reordered(bias[0] if name == "gru" else bias, name))
    if name == "gru":
        cell.recurrent_dense.bias.assign(bias[1])
    outputs, *states = theirs(x)
    ours, every = run_cell(cell, x, reverse=reverse)
    expected = np.asarray(outputs)[:, ::-1] if reverse else outputs  # ours stay where their inputs are
    np.testing.assert_allclose(every, expected, atol=1e-5)
    for state, other in zip(ours, states, strict=True):
        np.testing.assert_allclose(state, other, atol=1e-5)


def encoder(cell: str, bidirectional: bool) -> RecurrentEncoder:
    embedding = PositionalEmbedding(11, D, positions=None, scale=False)
    layer = RecurrentEncoder(embedding, cell, U, num_layers=2, bidirectional=bidirectional)
    layer.build((None, None))
    randomize(layer)
    return layer


def flat(memory: dict) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in keras.tree.flatten(memory["states"])]


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("cell", KERAS)
def test_a_short_row_ends_at_its_last_real_token(cell: str, bidirectional: bool, rng) -> None:
    """Padding on the right, on the left and in gaps: outputs and states are those of the sentence alone."""
    layer = encoder(cell, bidirectional)
    sentences = [rng.integers(4, 11, n) for n in (7, 3, 1)]
    places = {
        "right": [list(range(len(s))) for s in sentences],
        "left": [list(range(T - len(s), T)) for s in sentences],
        "gaps": [sorted(rng.choice(T, len(s), replace=False)) for s in sentences],
    }
    for where in places.values():
        batch = np.zeros((B, T), "int32")
        for row, (sentence, place) in enumerate(zip(sentences, where, strict=True)):
            batch[row, place] = sentence
        together = layer(batch)
        for row, (sentence, place) in enumerate(zip(sentences, where, strict=True)):
            alone = layer(sentence[None].astype("int32"))
            np.testing.assert_allclose(
                np.asarray(together["outputs"])[row, place], alone["outputs"][0], atol=1e-5
            )
            for state, other in zip(flat(together), flat(alone), strict=True):
                np.testing.assert_allclose(state[row], other[0], atol=1e-5)


def test_recurrent_dropout_acts_in_training_alone(rng) -> None:
    layer = encoder("gru", True)
    layer.recurrent_dropout = 0.5
    batch = rng.integers(4, 11, (B, T)).astype("int32")
    plain = layer(batch)["outputs"]
    np.testing.assert_array_equal(layer(batch, training=False)["outputs"], plain)
    dropped = np.asarray(layer(batch, training=True)["outputs"])
    assert np.abs(dropped - plain).max() > 0.01


def test_an_unknown_cell_is_named() -> None:
    with pytest.raises(ValueError, match="cell must be one of 'lstm', 'gru', 'rnn', received 'sru'"):
        make_cell("sru", 3)
