"""The checks that every layer and model of `conformance.ENTRIES` passes."""

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from conformance import ENTRIES, INSIDE_OTHERS, Entry, functional
from references import randomize

import keras_seq2seq as ks
from keras_seq2seq.models import LanguageModel, Seq2Seq

BY_NAME = {entry.name: entry for entry in ENTRIES}
VECTORS = [entry for entry in ENTRIES if next(iter(entry.inputs.values())).dtype == "float32"]


def parameters(items: list[Entry]):
    return pytest.mark.parametrize("entry", items, ids=[entry.name for entry in items])


@pytest.fixture(scope="module")
def built() -> dict[str, keras.Model]:
    """Make every entry once, with random weights."""
    made = {entry.name: functional(entry) for entry in ENTRIES}
    for model in made.values():
        randomize(model)
    return made


def leaves(outputs) -> list[np.ndarray]:
    return [np.asarray(tf.cast(leaf, tf.float32)) for leaf in keras.tree.flatten(outputs)]


def assert_close(ours, expected, tolerance: float = 1e-5) -> None:
    """Compare structures of tensors, relative to the scale of each."""
    for a, b in zip(leaves(ours), leaves(expected), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(1.0, float(np.abs(b).max())))


def parts(layer) -> Iterator[keras.layers.Layer]:
    """Yield a model's layers of this library, each of their parts too."""
    for part in layer._flatten_layers():
        if type(part).__module__.startswith("keras_seq2seq"):
            yield part


def test_the_table_is_complete() -> None:
    """Every public class and builder has an entry, or a reason why not."""
    tested = {type(part).__name__ for entry in ENTRIES for part in parts(functional(entry))}
    functions = set(BY_NAME)
    public = {*ks.layers.__all__, *ks.models.__all__}
    assert public - tested - functions - set(INSIDE_OTHERS) == set()
    assert len(BY_NAME) == len(ENTRIES)


def as_json(layer) -> dict:
    return json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))


@parameters(ENTRIES)
def test_config_holds_every_constructor_argument(entry: Entry) -> None:
    for part in parts(functional(entry)):
        config = part.get_config()
        for base in type(part).__mro__:
            if base.__module__.startswith("keras_seq2seq") and "__init__" in vars(base):
                arguments = set(inspect.signature(vars(base)["__init__"]).parameters) - {
                    "self",
                    "kwargs",
                    "args",
                }
                assert arguments <= set(config), type(part).__name__
        first = as_json(part)
        again = keras.saving.deserialize_keras_object(first)
        assert type(again) is type(part)
        assert as_json(again) == first


LOAD = """
import json, sys
import numpy as np
import keras_seq2seq
import keras
loaded = {}
for name, path in json.load(open(sys.argv[1])).items():
    try:
        model = keras.saving.load_model(path + ".keras", safe_mode=True)
        with np.load(path + ".npz") as inputs:
            outputs = keras.tree.flatten(model({key: inputs[key] for key in inputs.files}))
        np.savez(path + ".out.npz", *[keras.ops.convert_to_numpy(x) for x in outputs])
        loaded[name] = len(model.variables)
    except Exception as error:
        loaded[name] = repr(error)
print(json.dumps(loaded))
"""


@pytest.fixture(scope="module")
def reloaded(built: dict[str, keras.Model], tmp_path_factory: pytest.TempPathFactory):
    """Save every entry and load all in one new process, which imports nothing but the library."""
    folder = tmp_path_factory.mktemp("saved")
    paths = {name: str(folder / name) for name in built}
    for name, model in built.items():
        model.save(paths[name] + ".keras")
        np.savez(paths[name] + ".npz", allow_pickle=False, **BY_NAME[name].inputs)
    (folder / "paths.json").write_text(json.dumps(paths))
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(folder / "paths.json")],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder, json.loads(done.stdout.splitlines()[-1])


@parameters(ENTRIES)
def test_loads_in_a_fresh_process(entry: Entry, built: dict[str, keras.Model], reloaded) -> None:
    folder, variables = reloaded
    model = built[entry.name]
    assert variables[entry.name] == len(model.variables)
    with np.load(folder / f"{entry.name}.out.npz") as outputs:
        again = [outputs[name] for name in outputs.files]
    for ours, theirs in zip(leaves(model(entry.inputs)), again, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.usefixtures("restore_dtype_policy")
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
@parameters(ENTRIES)
def test_mixed_precision(entry: Entry, policy: str, built: dict[str, keras.Model]) -> None:
    """Finite, near float32, and the logits are float32."""
    keras.config.set_dtype_policy(policy)
    model = functional(entry)
    model.set_weights(built[entry.name].get_weights())
    outputs = model(entry.inputs)
    assert_close(outputs, built[entry.name](entry.inputs), 0.02 if policy == "mixed_float16" else 0.1)
    if isinstance(model, Seq2Seq | LanguageModel) or entry.name.startswith("decoder"):
        assert outputs.dtype == tf.float32
    else:
        assert keras.tree.flatten(outputs)[0].dtype == policy.removeprefix("mixed_")


@parameters(ENTRIES)
def test_graph_and_xla_equal_eager(entry: Entry, built: dict[str, keras.Model]) -> None:
    model = built[entry.name]
    inputs = {name: tf.constant(value) for name, value in entry.inputs.items()}
    eager = model(inputs)
    assert_close(tf.function(model)(inputs), eager)
    if entry.xla:
        assert_close(tf.function(model, jit_compile=True)(inputs), eager, 1e-4)


@parameters(ENTRIES)
def test_gradients_are_finite_and_reach_every_variable(entry: Entry, built: dict[str, keras.Model]) -> None:
    model = built[entry.name]
    with tf.GradientTape() as tape:
        outputs = keras.tree.flatten(model(entry.inputs))
        # Not the plain sum: that of a softmax or a layer norm is constant.
        noise = [np.random.default_rng(1).normal(size=out.shape) for out in outputs]
        total = sum(tf.reduce_sum(out * w.astype("float32")) for out, w in zip(outputs, noise, strict=True))
    gradients = tape.gradient(total, [v.value for v in model.trainable_variables])
    for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
        if variable.name in entry.no_gradient:
            continue
        assert gradient is not None, variable.path
        gradient = np.asarray(tf.convert_to_tensor(gradient))
        assert np.isfinite(gradient).all(), variable.path
        assert gradient.any(), variable.path


@parameters([entry for entry in ENTRIES if entry.pads])
def test_padding_changes_nothing_real(entry: Entry, built: dict[str, keras.Model]) -> None:
    model = built[entry.name]
    short = leaves(model(entry.inputs))
    long = leaves(model(entry.padded()))
    assert any(a.shape != b.shape for a, b in zip(short, long, strict=True)) or "target" not in entry.inputs
    assert_close([b[tuple(map(slice, a.shape))] for a, b in zip(short, long, strict=True)], short)


@parameters(VECTORS)
def test_a_mask_that_arrives_is_forwarded(entry: Entry) -> None:
    inputs = [tf.constant(value) for value in entry.inputs.values()]
    arriving = tf.constant([[True] * 5, [True] * 3 + [False] * 2])
    inputs[0]._keras_mask = arriving
    output = keras.tree.flatten(entry.call(entry.make(), *inputs))[0]
    assert output._keras_mask is arriving


@parameters(ENTRIES)
def test_batch_of_one_and_length_one_keep_their_rank(entry: Entry, built: dict[str, keras.Model]) -> None:
    model, inputs = built[entry.name], entry.inputs
    assert_close(model({k: v[:1] for k, v in inputs.items()}), [a[:1] for a in leaves(model(inputs))])
    short = {k: v[:, :1, :1] if v.ndim == 3 and v.dtype == bool else v[:, :1] for k, v in inputs.items()}
    two = leaves(model(short))
    assert [a.ndim for a in two] == [a.ndim for a in leaves(model(inputs))]
    assert all(a.shape[0] == 2 and 1 in a.shape[1:] for a in two)
    assert_close(model({k: v[:1] for k, v in short.items()}), [a[:1] for a in two])


def test_two_replicas_add_up_to_one_device(two_replicas: tf.distribute.Strategy) -> None:
    """Loss and gradients of all entries at once: each replica takes its row. (`fit` is tested below.)"""
    entries = [entry for entry in ENTRIES if functional(entry).trainable_variables]

    def make() -> list[keras.Model]:
        models = [functional(entry) for entry in entries]
        for model in models:
            randomize(model)
        return models

    def step(models: list[keras.Model], inputs: list[dict]):
        with tf.GradientTape() as tape:
            outputs = [keras.tree.flatten(m(i)) for m, i in zip(models, inputs, strict=True)]
            loss = tf.add_n([tf.reduce_sum(tf.sin(out)) for outs in outputs for out in outs])
        variables = [v.value for model in models for v in model.trainable_variables]
        zero = tf.UnconnectedGradients.ZERO
        return loss, [
            tf.convert_to_tensor(g) for g in tape.gradient(loss, variables, unconnected_gradients=zero)
        ]

    inputs = [{k: tf.constant(v) for k, v in entry.inputs.items()} for entry in entries]
    loss, gradients = step(make(), inputs)
    with two_replicas.scope():
        models = make()
    rows = two_replicas.experimental_distribute_values_from_function(
        lambda context: keras.tree.map_structure(lambda x: x[context.replica_id_in_sync_group :][:1], inputs)
    )
    losses, parts = two_replicas.run(step, (models, rows))
    assert len(two_replicas.experimental_local_results(losses)) == 2
    assert float(two_replicas.reduce("SUM", losses, axis=None)) == pytest.approx(float(loss), rel=1e-5)
    for part, whole in zip(parts, gradients, strict=True):
        assert_close(sum(two_replicas.experimental_local_results(part)), whole)


@parameters([BY_NAME[name] for name in ("seq2seq", "language_model", "rnn_seq2seq_luong")])
def test_fit_on_two_replicas_equals_one_device(entry: Entry, two_replicas: tf.distribute.Strategy) -> None:
    """The whole of `fit`, with rows of unequal length and weights that sum to 1 over the global batch."""
    labels = np.roll(entry.inputs["target"], -1, axis=1)
    labels[:, -1] = 0
    weights = (labels != 0).astype("float32")
    data = (entry.inputs, labels, weights / weights.sum())

    def train(model: keras.Model) -> tuple[list[float], list[np.ndarray]]:
        randomize(model)
        model.compile(keras.optimizers.SGD(0.5), ks.training.SmoothedCrossentropy(0.1))
        history = model.fit(tf.data.Dataset.from_tensors(data), epochs=3, verbose=0).history
        return history["loss"], model.get_weights()

    with keras.device("cpu:0"):
        one = train(without_dropout(entry))
    with two_replicas.scope():
        two = train(without_dropout(entry))
    np.testing.assert_allclose(one[0], two[0], rtol=1e-5)
    assert one[0][2] < one[0][0]
    for a, b in zip(one[1], two[1], strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def without_dropout(entry: Entry) -> keras.Model:
    model = functional(entry)
    for part in model._flatten_layers():
        for name in {"dropout", "recurrent_dropout"} & set(vars(part)):
            setattr(part, name, 0.0)
    return model


def test_weights_of_another_depth_are_refused(tmp_path: Path) -> None:
    def make(layers: int, **options) -> keras.Model:
        return ks.models.transformer_seq2seq(
            11, num_layers=layers, model_dim=8, feed_forward_dim=9, num_heads=2, **options
        )

    path = tmp_path / "two.weights.h5"
    make(2).save_weights(path)
    make(2).load_weights(path)
    for options in (
        {},
        {"layers": 3},
        {"decoder_layers": 1},
        {"decoder_layers": 3},
        {"tie_embeddings": False},
    ):
        with pytest.raises(ValueError, match="could not be loaded"):
            make(**{"layers": 1 if not options else 2, **options}).load_weights(path)
    make(2, tie_embeddings=False).save_weights(path)
    with pytest.raises(ValueError, match="another architecture"):
        make(2).load_weights(path)


def test_a_tie_survives_reloading_and_training(tmp_path: Path) -> None:
    """One matrix serves both embeddings and the output: in the file, after loading, after a step."""
    model = BY_NAME["transformer_seq2seq"].make()
    model.save(tmp_path / "tied.keras")
    again = keras.saving.load_model(tmp_path / "tied.keras")
    assert len(again.variables) == len(model.variables)
    data = BY_NAME["transformer_seq2seq"].inputs
    again.compile("sgd", ks.training.SmoothedCrossentropy())
    again.fit(data, np.maximum(data["target"], 1), batch_size=2, verbose=0)
    matrices = [v for v in again.variables if 11 in v.shape]
    assert len(matrices) == 1
    assert again.decoder.embedding is again.encoder.embedding
    matrix = np.asarray(matrices[0])
    assert np.abs(matrix - np.asarray(model.encoder.embedding.tokens.embeddings)).max() > 1e-4
    x = np.random.default_rng(0).normal(size=(3, 8)).astype("float32")
    np.testing.assert_allclose(again.decoder.embedding.logits(x), x @ matrix.T, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(again.decoder.embedding.tokens(np.arange(11)), matrix)
