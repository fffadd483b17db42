"""Which checkpoints are kept, what they hold, and what is refused."""

import os

import keras
import numpy as np
import pytest
from token_batches import as_dataset, make_batch, small_model

from keras_seq2seq.training import (
    Checkpoints,
    SmoothedCrossentropy,
    TokenAccuracy,
    best_checkpoints,
    checkpoint_files,
    checkpoints,
    last_checkpoints,
)

DATA = as_dataset([make_batch([4, 1, 6], seed) for seed in range(4)])


class Losses(keras.callbacks.Callback):
    """Logs what the test wants."""

    def __init__(self, values):
        super().__init__()
        self.values = values

    def on_epoch_end(self, epoch, logs=None):
        logs["val_loss"] = self.values[epoch]


def compiled(optimizer="adam", **options) -> keras.Model:
    model = small_model(dropout=0.2, **options)
    model.compile(optimizer, SmoothedCrossentropy(), weighted_metrics=[TokenAccuracy()], run_eagerly=True)
    return model


def steps(directory):
    return [each.step for each in checkpoints(directory)]


def test_the_last_and_the_best_are_kept(tmp_path):
    folder, model = tmp_path / "run", compiled()
    values = [3.0, 1.0, 2.0, float("nan"), 1.5]
    keep = Checkpoints(folder, keep=2, monitor="val_loss")
    model.fit(DATA, epochs=5, verbose=0, callbacks=[Losses(values), keep])
    assert steps(folder) == [8, 16, 20]
    assert last_checkpoints(folder, 2) == [str(folder / f"step-{n:08d}.weights.h5") for n in (16, 20)]
    assert [path[-12] for path in best_checkpoints(folder, 2)] == ["8", "0"]
    with pytest.raises(ValueError, match=r"run' has 3 checkpoints in all, 4 are needed"):
        last_checkpoints(folder, 4)
    with pytest.raises(ValueError, match=r"run' has 2 checkpoints with 'val_loss', 3 are needed"):
        best_checkpoints(folder, 3)
    fresh = small_model()
    fresh.load_weights(last_checkpoints(folder, 1)[0])  # as any file of weights
    for ours, theirs in zip(fresh.trainable_variables, model.trainable_variables, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    assert sorted(os.listdir(tmp_path)) == ["run"]


def test_patience_counts_across_a_restart(tmp_path):
    values, ran = [1.0, 2.0, 2.0, 2.0, 2.0, 0.5], []
    count = keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: ran.append(epoch))
    for epochs in (2, 6, 6):  # the third time there is nothing to do
        keep = Checkpoints(tmp_path, monitor="val_loss", patience=3)
        compiled().fit(DATA, epochs=epochs, verbose=0, callbacks=[Losses(values), count, keep])
    assert ran == [0, 1, 2, 3]


def test_every_n_steps_across_epochs_and_executions(tmp_path):
    model = compiled()
    model.fit(DATA, epochs=3, verbose=0, callbacks=[Checkpoints(tmp_path, 3, keep=9)])
    assert steps(tmp_path) == [3, 6, 9, 12]
    assert [(each.epoch, each.batch) for each in checkpoints(tmp_path)] == [(0, 3), (1, 2), (2, 1), (2, 4)]


def test_another_run_is_refused(tmp_path):
    compiled().fit(DATA, verbose=0, callbacks=[Checkpoints(tmp_path)])
    for model, message in (
        (compiled(layers=2), "the optimizer has|another architecture"),
        (compiled("sgd"), "it was written with another optimizer"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(DATA, verbose=0, callbacks=[Checkpoints(tmp_path)])
    small_model().save_weights(tmp_path / "step-00000099.weights.h5")
    with pytest.raises(ValueError, match=r"is no checkpoint of a training run: it holds weights alone"):
        compiled().fit(DATA, verbose=0, callbacks=[Checkpoints(tmp_path)])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"every": 0}, "every must be an integer of at least 1, received 0"),
        ({"every": "step"}, "every must be an integer of at least 1, received 'step'"),
        ({"keep": 0}, "keep must be an integer of at least 1, received 0"),
        ({"patience": 2}, "patience needs a monitor, received None"),
        ({"mode": "best"}, 'mode must be "min" or "max", received \'best\''),
    ],
)
def test_impossible_arguments_are_named(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        Checkpoints(tmp_path, **options)


def test_a_monitor_that_nobody_logs_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"monitor must be one of \['loss', .*\], received 'val_bleu'"):
        compiled().fit(DATA, verbose=0, callbacks=[Checkpoints(tmp_path, monitor="val_bleu")])


def test_a_checkpoint_removed_while_it_is_listed_is_left_out(tmp_path, monkeypatch):
    """HDF5 does not always say FileNotFoundError of a file that goes away while it opens it."""
    model = compiled()
    for step in (1, 2):
        checkpoint_files.save(model, tmp_path, checkpoint_files.Checkpoint(step=step))
    opened = checkpoint_files.h5py.File

    def removed_meanwhile(path, mode):
        if "00000001" in str(path):
            os.remove(path)
            raise OSError("can't retrieve stat info for file")
        return opened(path, mode)

    monkeypatch.setattr(checkpoint_files.h5py, "File", removed_meanwhile)
    assert [each.step for each in checkpoints(tmp_path)] == [2]


def test_a_checkpoint_that_cannot_be_read_is_not_passed_over(tmp_path):
    (tmp_path / "step-00000001.weights.h5").write_bytes(b"no HDF5")
    with pytest.raises(OSError, match="file signature not found"):
        checkpoints(tmp_path)
