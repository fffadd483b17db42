"""Training in half precision: the loss falls, and stays finite, in float32."""

import keras
import numpy as np
import pytest
from token_batches import as_dataset, make_batch, small_model

from keras_seq2seq.training import SmoothedCrossentropy, TokenAccuracy

DATA = as_dataset([make_batch([4, 1, 6, 3], seed) for seed in range(3)])


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_the_loss_falls(restore_dtype_policy, policy):
    keras.config.set_dtype_policy(policy)
    model = small_model(width=16)
    optimizer = keras.optimizers.Adam(0.02, epsilon=1e-5)
    model.compile(optimizer, SmoothedCrossentropy(0.1), weighted_metrics=[TokenAccuracy()], run_eagerly=True)
    scaled = isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
    assert scaled == (policy == "mixed_float16")
    losses = np.array(model.fit(DATA, epochs=6, verbose=0).history["loss"])
    assert np.isfinite(losses).all()
    assert losses[-1] < 0.8 * losses[0]
    inputs, labels, weights = make_batch([4, 1, 6, 3])
    logits = model(inputs)
    assert logits.dtype == "float32"
    assert SmoothedCrossentropy(0.1)(labels, logits, weights).dtype == "float32"
    assert {variable.dtype for variable in model.trainable_variables} == {"float32"}
    if scaled:
        assert 0 < float(model.optimizer.dynamic_scale) <= 2.0**15
        assert int(model.optimizer.iterations) > 12  # few steps were skipped to find the scale
