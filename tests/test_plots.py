"""Pictures are drawn without a screen, with the right labels and numbers."""

from pathlib import Path

import numpy as np
import pytest

from keras_seq2seq.evaluate import LengthBin, Score
from keras_seq2seq.plots import attention_heatmap, scores_by_length, training_curves


def test_a_heatmap_has_the_tokens_on_its_axes(tmp_path: Path) -> None:
    weights = np.array([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]])
    axes = attention_heatmap(weights, ["the", "old", "dog"], ["der", "Hund"], title="Bahdanau")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["the", "old", "dog"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["der", "Hund"]
    np.testing.assert_allclose(axes.images[0].get_array(), weights, atol=1e-6)
    axes.figure.savefig(tmp_path / "heatmap.png")
    assert (tmp_path / "heatmap.png").stat().st_size > 5000


def test_a_heatmap_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"2 target tokens.*1 source tokens.*received shape \(1, 2\)"):
        attention_heatmap(np.ones((1, 2)), ["a"], ["b", "c"])


def test_curves_show_training_and_validation(tmp_path: Path) -> None:
    history = {"loss": [3.0, 2.0, 1.5], "val_loss": [3.1, 2.4, 2.2], "token_accuracy": [0.1, 0.2, 0.3]}
    axes = training_curves(history, ["loss"])
    assert [line.get_label() for line in axes.lines] == ["loss", "val loss"]
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), history["val_loss"])
    axes.figure.savefig(tmp_path / "curves.png")
    with pytest.raises(ValueError, match="received 'bleu'"):
        training_curves(history, ["bleu"])


def test_scores_by_length_have_a_line_for_each_system(tmp_path: Path) -> None:
    def bins(*values: float) -> list[LengthBin]:
        return [LengthBin(5.0 * i, 50 + i, Score("BLEU", v, ""), v - 2, v + 3) for i, v in enumerate(values)]

    axes = scores_by_length({"none": bins(30, 20), "Luong": bins(31, 29)})
    assert [line.get_label() for line in axes.lines] == ["none", "Luong"]
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [30, 20])
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), [0, 5])
    assert "at least 50 sentences" in axes.get_xlabel()
    axes.figure.savefig(tmp_path / "lengths.png")
    with pytest.raises(ValueError, match="received none"):
        scores_by_length({})
