"""Averages of checkpoints, and moving averages: right in every variable, and models like any other."""

import os
import shutil

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf
from references import randomize
from token_batches import as_dataset, make_batch, small_model

import keras_seq2seq as ks
from keras_seq2seq.training import SmoothedCrossentropy, average_checkpoints

DATA = as_dataset([make_batch([4, 1, 6])])


def trained(**options) -> keras.Model:
    model = small_model(**options)
    model.compile(keras.optimizers.Adam(1e-2), SmoothedCrossentropy())
    model.fit(DATA, verbose=0)
    return model


@pytest.fixture(scope="module")
def model() -> keras.Model:
    return trained()


@pytest.fixture(params=[".weights.h5", ".keras"])
def write(request, tmp_path, model):
    """Return a function that keeps the model as it is now, and the ending."""

    def save(name):
        path = tmp_path / f"{name}{request.param}"
        (model.save if request.param == ".keras" else model.save_weights)(path)
        return path

    save.ending = request.param  # type: ignore[attr-defined]
    return save


def check_export(model, folder):
    letters = ks.text.Characters.build("abcdefghij")
    translator = ks.Translator(model, letters, strategy=ks.search.Greedy(), max_length=8)
    served = tf.saved_model.load(translator.export(folder / "served")).signatures["serving_default"]
    assert served(text=tf.constant(["abc"]))["translation"].numpy()[0].decode() == translator("abc")


def loaded(path, like: keras.Model) -> keras.Model:
    if str(path).endswith(".keras"):
        return keras.saving.load_model(path)
    fresh = small_model()
    fresh.compile(type(like.optimizer)(1e-2), SmoothedCrossentropy())
    fresh.optimizer.build(fresh.trainable_variables)
    fresh.load_weights(path)
    return fresh


def test_the_mean_is_the_mean(write, model, tmp_path):
    first, values = write("a"), [[v.numpy() for v in model.trainable_variables]]
    for _ in range(2):
        model.fit(DATA, verbose=0)
        values.append([v.numpy() for v in model.trainable_variables])
        last = write(f"b{len(values)}")
    out = average_checkpoints([first, tmp_path / f"b2{write.ending}", last], tmp_path / f"mean{write.ending}")
    assert out == str(tmp_path / f"mean{write.ending}")
    again = loaded(out, model)
    for variable, *each in zip(again.trainable_variables, *values, strict=True):
        np.testing.assert_allclose(variable.numpy(), np.mean(each, axis=0), atol=1e-7, err_msg=variable.path)
    # The optimizer's state is the last one's, its integers among them.
    for ours, theirs in zip(again.optimizer.variables, model.optimizer.variables, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    again.fit(DATA, verbose=0)


def test_the_mean_of_one_is_itself(write, model, tmp_path):
    path = write("a")
    same = loaded(average_checkpoints([path, path, path], tmp_path / f"mean{write.ending}"), model)
    for ours, theirs in zip(same.variables, model.variables, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    before = path.stat().st_size
    assert average_checkpoints([path], path) == str(path)  # in place
    assert abs(path.stat().st_size - before) < 0.1 * before


def test_an_average_loads_into_a_model_that_is_not_compiled(model, tmp_path):
    model.save_weights(tmp_path / "a.weights.h5")
    fresh = small_model(seed=5)
    fresh.load_weights(average_checkpoints([tmp_path / "a.weights.h5"], tmp_path / "b.weights.h5"))
    for ours, theirs in zip(fresh.weights, model.weights, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_half_precision_is_averaged_in_its_own_type(tmp_path):
    layer = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, dtype="bfloat16")])
    values = []
    for name in "ab":
        randomize(layer)
        values.append(keras.ops.convert_to_numpy(layer.weights[0]).astype("float32"))
        layer.save_weights(tmp_path / f"{name}.weights.h5")
    layer.load_weights(
        average_checkpoints([tmp_path / f"{n}.weights.h5" for n in "ab"], tmp_path / "c.weights.h5")
    )
    found = keras.ops.convert_to_numpy(layer.weights[0])
    assert found.dtype.name == "bfloat16"
    np.testing.assert_array_equal(found, np.mean(values, axis=0).astype(found.dtype))


def test_unlike_models_are_refused(tmp_path):
    paths = [tmp_path / f"{name}.weights.h5" for name in "abc"]
    small_model().save_weights(paths[0])
    for options, message in (
        ({"layers": 2}, r"must hold the same variables, only .*b.* has '.*transformer_block_1"),
        ({"width": 16}, r"received '.*' with shape \(.*\) in .*a.* and \(.*\) in .*b"),
    ):
        small_model(**options).save_weights(paths[1])
        with pytest.raises(ValueError, match=message):
            average_checkpoints(paths[:2], paths[2])
    assert sorted(os.listdir(tmp_path)) == ["a.weights.h5", "b.weights.h5"]  # nothing half done


def test_another_number_of_weights_or_type_is_refused(tmp_path):
    small_model().save_weights(tmp_path / "a.weights.h5")
    shutil.copy(tmp_path / "a.weights.h5", tmp_path / "b.weights.h5")
    with h5py.File(tmp_path / "b.weights.h5", "a") as file:
        file["vars/weight_count"][()] = 7
    with pytest.raises(ValueError, match=r"one model, received 'vars/weight_count' = \d+ in .* and 7 in"):
        average_checkpoints([tmp_path / "a.weights.h5", tmp_path / "b.weights.h5"], tmp_path / "c.weights.h5")
    with h5py.File(tmp_path / "b.weights.h5", "a") as file:
        del file["vars/weight_count"]
        file["vars/weight_count"] = 7.0
    with pytest.raises(ValueError, match=r"'vars/weight_count' with type int32 in .* and float64 in"):
        average_checkpoints([tmp_path / "a.weights.h5", tmp_path / "b.weights.h5"], tmp_path / "c.weights.h5")


def test_odd_paths_are_refused(tmp_path):
    with pytest.raises(ValueError, match="at least one checkpoint, received none"):
        average_checkpoints([], tmp_path / "c.weights.h5")
    with pytest.raises(ValueError, match=r"must end in \.weights\.h5 or \.keras, received '.*c\.h5'"):
        average_checkpoints(["a.weights.h5"], tmp_path / "c.h5")
    with pytest.raises(ValueError, match=r"must end like the output '.*c\.keras', received 'a\.weights\.h5'"):
        average_checkpoints(["a.weights.h5"], tmp_path / "c.keras")
    with pytest.raises(FileNotFoundError):
        average_checkpoints([tmp_path / "none.weights.h5"], tmp_path / "c.weights.h5")


class Note(keras.callbacks.Callback):
    """Keeps the weights after every step."""

    def __init__(self):
        super().__init__()
        self.steps = []

    def on_train_batch_end(self, batch, logs=None):
        self.steps.append([v.numpy() for v in self.model.trainable_variables])


def moving_average(steps, momentum):
    average = steps[0]
    for values in steps[1:]:
        average = [momentum * a + (1 - momentum) * v for a, v in zip(average, values, strict=True)]
    return average


def test_a_moving_average_is_evaluated_kept_loaded_and_exported(tmp_path):
    """Keras' `use_ema` with its callback: what is evaluated, kept and left at the end is the average."""
    model, note = small_model(), Note()
    model.compile(keras.optimizers.SGD(0.5, use_ema=True, ema_momentum=0.8), SmoothedCrossentropy())
    path = str(tmp_path / "epoch{epoch}.weights.h5")
    callbacks = [
        note,
        keras.callbacks.SwapEMAWeights(swap_on_epoch=True),
        keras.callbacks.ModelCheckpoint(path, save_weights_only=True),
    ]
    history = model.fit(DATA.repeat(3), epochs=2, validation_data=DATA, verbose=0, callbacks=callbacks)
    middle = small_model()
    middle.load_weights(path.format(epoch=1))
    for found, count in ((middle, 3), (model, 6)):
        expected = moving_average(note.steps[:count], 0.8)
        for variable, value in zip(found.trainable_variables, expected, strict=True):
            np.testing.assert_allclose(variable.numpy(), value, atol=1e-5, err_msg=variable.path)
    middle.compile(loss=SmoothedCrossentropy())
    losses = [m.evaluate(DATA, verbose=0, return_dict=True)["loss"] for m in (middle, model)]
    np.testing.assert_allclose(history.history["val_loss"], losses, rtol=1e-5)
    model.save(tmp_path / "average.keras")
    again = keras.saving.load_model(tmp_path / "average.keras")
    assert again.evaluate(DATA, verbose=0, return_dict=True)["loss"] == losses[1]
    check_export(again, tmp_path)
