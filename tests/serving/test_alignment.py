"""Alignments through `Translator`: of the right token, of real tokens alone; and what has none."""

import numpy as np
import pytest

import keras_seq2seq as ks
from keras_seq2seq.serving.decoding import Decoding

WORDS = ks.text.Words.build(["one", "two", "three", "four", "five", "six", "seven"])
TEXTS = ["five one three", "two", "six five four three two one", "", "seven seven"]
PLACES = 12


@pytest.fixture(scope="module")
def copying() -> ks.models.Seq2Seq:
    """A Transformer with weights set by hand: position t looks at source position t, and says what is there.

    A vector holds the token (one-hot), the position (one-hot), and what cross-attention found.
    """
    size = WORDS.vocabulary_size
    width = size + PLACES + size
    model = ks.models.transformer_seq2seq(
        size, num_layers=1, model_dim=width, feed_forward_dim=4, num_heads=1, positions="learned",
        max_length=PLACES, dropout=0.0, tie_embeddings=False,
    )  # fmt: skip
    token, place, found = np.split(np.eye(width), [size, size + PLACES])
    weights = {weight.path.split("/", 1)[1]: weight for weight in model.weights}
    for name, weight in weights.items():
        if not name.endswith("gamma"):
            weight.assign(np.zeros(weight.shape))
    for name, weight in {path: each for path, each in weights.items() if "embedding" in path}.items():
        weight.assign(place * width**0.5 if "positions" in name else token)
    cross = {
        name.rsplit("cross_attention/")[-1]: each for name, each in weights.items() if "cross_att" in name
    }
    cross["query/kernel"].assign(10 * place.T @ place)
    cross["key_value/kernel"].assign(np.concatenate([10 * place.T @ place, token.T @ token], axis=1))
    cross["output/kernel"].assign(token.T @ found)
    model.decoder.output_dense.kernel.assign(10 * found.T)
    return model


@pytest.mark.parametrize("strategy", [ks.search.Greedy(), ks.search.Beam(4)], ids=["greedy", "beam"])
def test_a_token_that_was_copied_looks_at_where_it_came_from(copying, strategy):
    translator = ks.Translator(copying, WORDS, strategy=strategy)
    rows = translator.translate(TEXTS, strategy.width, return_alignment=True)
    assert [row[0].text for row in rows] == TEXTS
    for text, row in zip(TEXTS, rows, strict=True):
        source = [*text.split(), "</s>"] if text else []
        assert row[0].pieces == row[0].source_pieces == source
        for each in row:
            assert each.alignment.shape == (len(each.tokens), len(source))
            assert each.alignment.dtype == np.float32
            assert len(each.pieces) == len(each.tokens)
            both = min(len(each.tokens), len(source))
            if both:
                assert each.alignment[:both].argmax(axis=1).tolist() == list(range(both))
            assert np.allclose(each.alignment.sum(axis=1), 1.0, atol=1e-5)


def test_a_prefix_has_its_rows(copying):
    translator = ks.Translator(copying, WORDS, strategy=ks.search.Greedy())
    ((best,),) = translator.translate(TEXTS[2], prefixes=["one two"], return_alignment=True)
    assert best.text == "one two four three two one"
    assert best.pieces == [*best.text.split(), "</s>"]
    assert best.alignment.argmax(axis=1).tolist() == list(range(7))
    assert best.token_scores[:2] == [0.0, 0.0]


def test_batches_change_nothing_and_the_translation_stays(beam, english, texts):
    together = beam.translate(texts[:8], 2, return_alignment=True)
    assert [[each.tokens for each in row] for row in together] == [
        [each.tokens for each in row] for row in beam.translate(texts[:8], 2)
    ]
    (alone,) = beam.translate(texts[3], 2, return_alignment=True)
    for one, other in zip(alone, together[3], strict=True):
        np.testing.assert_allclose(one.alignment, other.alignment, atol=1e-5)
        assert one.alignment.shape == (len(one.tokens), len(english.tokenize(texts[3])) + 1)
        shown = "".join(one.source_pieces).replace("\u2581", "")
        assert shown.removesuffix("</s>") == texts[3].replace(" ", "")


def test_layers_and_heads_can_be_chosen(model, greedy, texts):
    def of(**options) -> np.ndarray:
        return greedy.translate(texts[0], return_alignment=True, **options)[0][0].alignment

    (best,) = greedy.translate(texts[0])[0]
    source = [[*greedy.source_tokenizer.tokenize(texts[0]).numpy(), 3]]
    inputs = {"source": np.array(source), "target": np.array([[2, *best.tokens[:-1]]])}
    for layer in (0, 1):
        weights = np.asarray(model.align(inputs, layer=layer))[0]
        np.testing.assert_allclose(of(alignment_layer=layer), weights.mean(axis=0), atol=1e-6)
    for heads in (1, -1, [1]):
        np.testing.assert_allclose(of(alignment_heads=heads), weights[1], atol=1e-6)
    np.testing.assert_allclose(of(alignment_heads=(0, 1)), of(), atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alignment_layer": 2}, "alignment_layer=2 cannot be used: layer must name one of 2 blocks"),
        ({"alignment_layer": "last"}, "alignment_layer must be an integer, received 'last'"),
        ({"alignment_heads": 2}, r"alignment_heads must name some of 2 heads, received \[2\]"),
        ({"alignment_heads": []}, r"alignment_heads must be None, an integer or a list .*received \[\]"),
        ({"alignment_heads": 0.5}, "alignment_heads must be None, an integer or a list .*received 0.5"),
    ],
)
def test_what_there_is_not_is_named_before_anything_is_translated(greedy, monkeypatch, options, message):
    monkeypatch.setattr(Decoding, "search", lambda *arguments: pytest.fail("searched"))
    with pytest.raises(ValueError, match=message):
        greedy.translate("Hello.", return_alignment=True, **options)


def test_a_model_without_attention_says_so_before_anything_is_translated(monkeypatch):
    monkeypatch.setattr(Decoding, "search", lambda *arguments: pytest.fail("searched"))
    model = ks.models.rnn_seq2seq(WORDS.vocabulary_size, units=4, attention=None)
    with pytest.raises(ValueError, match="return_alignment must be False for a model without attention"):
        ks.Translator(model, WORDS).translate("one", return_alignment=True)


def test_a_recurrent_model_has_one_too():
    attention = ks.layers.LuongAttention("general")
    model = ks.models.rnn_seq2seq(WORDS.vocabulary_size, units=8, attention=attention)
    for (best,) in ks.Translator(model, WORDS, max_length=5).translate(TEXTS[:2], return_alignment=True):
        assert best.alignment.shape == (len(best.pieces), len(best.source_pieces))
        assert np.allclose(best.alignment.sum(axis=1), 1.0, atol=1e-5)


# A machine may have no font for Chinese.
@pytest.mark.filterwarnings("ignore:Glyph .* missing from font:UserWarning")
def test_from_text_to_picture(greedy, texts, tmp_path):
    (best,) = greedy.translate(texts[1], return_alignment=True)[0]
    axes = ks.plots.attention_heatmap(best.alignment, best.source_pieces, best.pieces)
    axes.figure.savefig(tmp_path / "attention.png")
    assert [label.get_text() for label in axes.get_yticklabels()] == best.pieces
