"""Weight decay leaves norms and biases alone."""

import keras
import numpy as np
import pytest
from references import randomize

from keras_seq2seq.models import rnn_seq2seq, transformer_seq2seq
from keras_seq2seq.training import decay_matrices_only

MODELS = {
    "transformer": lambda: transformer_seq2seq(11, num_layers=1, model_dim=8, num_heads=2, dropout=0.0),
    "rms": lambda: transformer_seq2seq(
        11, num_layers=1, model_dim=8, num_heads=2, normalization="rms", positions="relative"
    ),
    "rnn": lambda: rnn_seq2seq(11, units=6, embedding_dim=6),
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("wrapped", [False, True])
def test_only_matrices_decay(kind, wrapped):
    model = MODELS[kind]()
    randomize(model)
    optimizer = keras.optimizers.AdamW(0.1, weight_decay=0.5)
    if wrapped:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=1.0)
    assert decay_matrices_only(optimizer, model) is optimizer
    before = [v.numpy() for v in model.trainable_variables]
    optimizer.apply(
        [np.zeros(v.shape, "float32") for v in model.trainable_variables], model.trainable_variables
    )
    decayed = set()
    for variable, old in zip(model.trainable_variables, before, strict=True):
        if "kernel" in variable.name or not np.array_equal(variable.numpy(), old):
            np.testing.assert_allclose(variable.numpy(), 0.95 * old, rtol=1e-5, err_msg=variable.path)
            decayed.add(variable.name)
    assert {"kernel", "embeddings"} <= decayed
    assert not decayed & {"bias", "gamma", "beta", "scale"}


def test_too_late_or_too_early_is_said():
    model = MODELS["transformer"]()
    optimizer = keras.optimizers.AdamW(0.1)
    optimizer.build(model.trainable_variables)
    with pytest.raises(ValueError, match="optimizer must not be built yet"):
        decay_matrices_only(optimizer, model)
    with pytest.raises(ValueError, match="model must be built"):
        decay_matrices_only(keras.optimizers.AdamW(0.1), keras.Sequential([keras.layers.Dense(3)]))
