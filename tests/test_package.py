"""The top of the package: public names, lazy rooms, no TensorFlow where Keras needs none."""

import os
import subprocess
import sys

import pytest

import keras_seq2seq as ks


def run_python(code: str, **environment: str) -> str:
    """Run code in a fresh process and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_layers_do_not_import_tensorflow_on_jax():
    code = (
        "import sys, keras_seq2seq as ks; ks.layers, ks.models, ks.training, ks.search;"
        "print([name for name in sys.modules if name.split('.')[0].startswith('tensorflow')])"
    )
    assert run_python(code, KERAS_BACKEND="jax", JAX_PLATFORMS="cpu") == "[]"


def test_what_saved_models_need_is_imported_and_the_rest_is_not():
    code = (
        "import sys, keras_seq2seq;"
        "print([n for n in ('layers', 'models', 'training') if 'keras_seq2seq.' + n not in sys.modules],"
        "[n for n in ('data', 'text', 'serving', 'plots') if 'keras_seq2seq.' + n in sys.modules],"
        "[n for n in ('tensorflow_text', 'keras_nlp', 'sacrebleu') if n in sys.modules])"
    )
    assert run_python(code) == "[] [] []"


def test_public_names_are_there():
    assert set(ks.__all__) <= set(dir(ks))
    assert ks.evaluate.__name__ == "keras_seq2seq.evaluate"
    assert ks.__version__.count(".") == 2


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'keras_seq2seq' has no attribute 'nonsense'"):
        ks.nonsense  # noqa: B018


def test_every_public_name_is_there() -> None:
    for name in ks.__all__:
        assert getattr(ks, name) is not None
