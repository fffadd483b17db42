"""An encoder with a head of one's own, exported from text to tags as in examples/tagging.py."""

import c_loader
import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_seq2seq as ks

WORDS = ["tom", "who", "is", "ill", "was", "it", "a", "test"]
TAGS = ["aa", "Aa", "aa.", "aa,", "Aa?"]
TEXTS = ["tom is ill", "", "a", "who was it", "nobody knows", "it " * 30, "tom"]


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_text_to_tags_runs_in_the_c_loader(exported, count):
    tag, path = exported
    expected = [text.decode() for text in tag(TEXTS[:count])["tags"].numpy()] if count else []
    answer = c_loader.run_signature(path, "serving_default", {"text": TEXTS[:count]}, text_ops=False)
    assert answer["tags"] == expected
    assert [len(row.split()) for row in expected] == [len(text.split()) for text in TEXTS[:count]]


def test_tags_depend_on_no_neighbour_and_vary(exported):
    tag, _ = exported
    together = tag(TEXTS)["tags"].numpy().tolist()
    assert together == [tag([text])["tags"].numpy()[0] for text in TEXTS]
    assert len({word for row in together for word in row.split()}) > 3


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A function from text to tags, and its export."""
    words, tags = ks.text.Words.build(WORDS), ks.text.Words.build(TAGS)
    encoder = ks.models.transformer_encoder(
        words.vocabulary_size, num_layers=1, model_dim=16, num_heads=2, feed_forward_dim=16
    )
    model = keras.Model(encoder.inputs, keras.layers.Dense(tags.vocabulary_size)(encoder.output))
    rng = np.random.default_rng(1)
    for weight in model.trainable_weights:
        if len(weight.shape) > 1:
            weight.assign(rng.normal(0, 0.5, weight.shape))

    def tag(text):
        source = ks.data.encode_sources(words, text)
        best = tf.argmax(model(source)[..., 4:], axis=-1, output_type=tf.int32) + 4
        return {"tags": tags.detokenize(tf.where(source == ks.text.EOS_ID, source, best))}

    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint("serving_default", tag, [tf.TensorSpec([None], tf.string, name="text")])
    path = str(tmp_path_factory.mktemp("tagging") / "1")
    archive.write_out(path, verbose=False)
    return tag, path
