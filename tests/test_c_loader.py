"""The C loader runs honest exports, and fails on the traps that Python's loader hides."""

import io

import keras
import keras_nlp
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from c_loader import CLoaderError, run_signature, run_signatures

TEXTS = ["the cat sat", "", "a dog", "naïve café 你好 🙂"]


@pytest.fixture(scope="module")
def tokenizer():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the cat sat on the mat", "a dog and a cat"] * 10),
        model_writer=model, vocab_size=300, hard_vocab_limit=False, minloglevel=2,
        byte_fallback=True, pad_id=0, unk_id=1, bos_id=2, eos_id=3,
    )  # fmt: skip
    return keras_nlp.tokenizers.SentencePieceTokenizer(proto=model.getvalue())


class Scorer(tf.Module):
    """A Dense layer, held as an export must hold it, or with one of the faults it may have."""

    def __init__(self, hold_variables=True, trap=None, jit_compile=False):
        super().__init__()
        self.model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
        self.model.layers[-1].bias.assign([1.0, 2.0, 3.0])
        if hold_variables:
            self.variables_ = [variable.value for variable in self.model.variables]

        def score(x):
            return {"y": self.model(x if trap is None else trap(x))}

        signature = [tf.TensorSpec([None, 4], tf.float32, "x")]
        self.score = tf.function(score, input_signature=signature, jit_compile=jit_compile)


class Copier(Scorer):
    """Text to ids and back as well."""

    def __init__(self, tokenizer):
        super().__init__()
        self.tokenizer = tokenizer

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string, "text"), tf.TensorSpec([], tf.int64, "add")]
    )
    def copy(self, text, add):
        ids = self.tokenizer(text)
        return {
            "copy": self.tokenizer.detokenize(ids),
            "length": tf.cast(ids.row_lengths(), tf.int32),
            "sum": tf.cast(tf.reduce_sum(ids, axis=-1), tf.int64) + add,
            "pairs": tf.stack([text, text], axis=1),
        }


def save(module, directory, *signatures):
    functions = {name: getattr(module, name) for name in signatures}
    tf.saved_model.save(module, str(directory), signatures=functions)
    return directory


@pytest.fixture(scope="module")
def exported(tokenizer, tmp_path_factory):
    module = Copier(tokenizer)
    return module, save(module, tmp_path_factory.mktemp("saved_model"), "copy", "score")


def test_one_process_answers_several_requests_as_python_does(exported):
    module, directory = exported
    x = np.arange(8, dtype=np.float32).reshape(2, 4) / 7
    requests: list = [
        ("copy", {"text": TEXTS, "add": 5}),
        ("copy", {"text": [], "add": 0}),
        ("score", {"x": x}),
        ("score", {"x": x[:1]}),
    ]
    copied, nothing, scored, alone = run_signatures(directory, requests)
    expected = module.copy(tf.constant(TEXTS), tf.constant(5, tf.int64))
    assert copied["copy"] == TEXTS
    assert copied["pairs"] == [[text, text] for text in TEXTS]
    assert copied["length"] == expected["length"].numpy().tolist()
    assert copied["sum"] == expected["sum"].numpy().tolist()
    assert nothing == {"copy": [], "length": [], "sum": [], "pairs": []}
    np.testing.assert_allclose(scored["y"], module.score(x)["y"], rtol=1e-6)
    np.testing.assert_allclose(alone["y"], scored["y"][:1], rtol=1e-6)


def test_bytes_long_texts_and_nul_travel_unharmed(exported):
    texts = [b"ab\xffc", b"a\0b", b"x" * 100_000]
    pairs = run_signature(exported[1], "copy", {"text": texts, "add": 0})["pairs"]
    assert [pair[0].encode("utf-8", "surrogateescape") for pair in pairs] == texts


def test_wrong_requests_are_named(exported):
    with pytest.raises(CLoaderError, match="no signature 'translate'"):
        run_signature(exported[1], "translate", {"text": []})
    with pytest.raises(CLoaderError, match=r"copy takes the inputs \['add', 'text'\], not \['text'\]"):
        run_signature(exported[1], "copy", {"text": []})


def test_a_directory_without_a_model_is_named(tmp_path):
    with pytest.raises(CLoaderError, match=tmp_path.name):
        run_signature(tmp_path, "score", {})


def test_a_missing_op_library_names_the_op(exported):
    with pytest.raises(CLoaderError, match="SentencepieceOp"):
        run_signature(exported[1], "score", {"x": [[0, 0, 0, 0]]}, text_ops=False)


def test_variables_that_are_not_held_are_missed(tmp_path):
    module = Scorer(hold_variables=False)
    save(module, tmp_path, "score")
    again = tf.saved_model.load(str(tmp_path))
    again.score(tf.zeros([1, 4]))  # Python's loader hides the fault
    with pytest.raises(CLoaderError, match="Could not find variable"):
        run_signature(tmp_path, "score", {"x": [[0, 0, 0, 0]]})


def slice_update(x):
    return keras.ops.slice_update(x, [0, 1], keras.ops.zeros_like(x[:, :1]))


@pytest.mark.parametrize(
    "options", [{"trap": slice_update}, {"jit_compile": True}], ids=["slice_update", "jit"]
)
def test_xla_is_off(options, tmp_path):
    save(Scorer(**options), tmp_path, "score")
    with pytest.raises(CLoaderError, match="XLA compilation disabled"):
        run_signature(tmp_path, "score", {"x": [[1, 2, 3, 4]]})


def test_xla_can_be_left_on(tmp_path):
    module = Scorer(jit_compile=True)
    save(module, tmp_path, "score")
    answer = run_signature(tmp_path, "score", {"x": [[1, 2, 3, 4]]}, xla=True)
    np.testing.assert_allclose(answer["y"], module.score(tf.constant([[1.0, 2, 3, 4]]))["y"], rtol=1e-6)
