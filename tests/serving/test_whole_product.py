"""Model families by searches, and by tokenizers, in the C loader with XLA off: the answers of memory."""

from pathlib import Path

import c_loader
import numpy as np
import pytest
import tensorflow as tf
from served_families import FAMILIES, SEEDS, STRATEGIES, TEXTS, make
from tokenizer_kinds import LINES, MAKE


def check(family: str, kind: str, strategy: str, directory: Path) -> None:
    """Ask for everything at once, for single texts and, with seeds, for samples."""
    served = make(family, MAKE[kind](LINES), STRATEGIES[strategy])
    path = served.export(directory / "base", samples=TEXTS[:1])
    requests: list = [("serving_default", {"text": TEXTS}), ("sample", {"text": TEXTS, "seed": SEEDS})]
    requests += [("serving_default", {"text": [text]}) for text in TEXTS]
    whole, drawn, *single = c_loader.run_signatures(path, requests)
    name = "completion" if family == "language model" else "translation"
    search = served.generate if name == "completion" else served.translate
    # Without a seed as input, each text is answered as if it were alone.
    found = [search([text])[0] for text in TEXTS] if strategy == "sampling" else search(TEXTS)
    expected = [hypotheses[0] for hypotheses in found]
    assert whole[name] == [each.text for each in expected]
    assert np.allclose(whole["score"], [each.score for each in expected], atol=1e-4)
    assert [answer[name][0] for answer in single] == whole[name]
    in_memory = served.sample(TEXTS, SEEDS)
    assert drawn[name] == [each.text for each in in_memory]
    assert np.allclose(drawn["score"], [each.score for each in in_memory], atol=1e-4)
    assert len(set(whole[name])) > 2
    check_saved_again(path, directory, requests[:1], whole)


def check_saved_again(path: str, directory: Path, requests: list, expected: dict[str, list]) -> None:
    """A user of the export may load it and save it again."""
    loaded = tf.saved_model.load(path)
    tf.saved_model.save(loaded, str(directory / "again"), signatures=loaded.signatures)
    assert c_loader.run_signatures(directory / "again", requests) == [expected]


def possible(family: str, strategy: str) -> bool:
    """A coverage penalty needs attention to a source."""
    return strategy != "covering" or family not in ("no attention", "language model")


# What other files of this folder do not export: see test_exported, test_generator_exported and
# test_sampling_exported.
FEW = [
    ("bahdanau", "sentence_piece", "greedy"),
    ("luong", "characters", "covering"),
    ("transformer", "words", "sampling"),
]
ALL = [
    (family, kind, strategy)
    for family in FAMILIES
    for kind in MAKE
    for strategy in STRATEGIES
    if possible(family, strategy)
]


@pytest.mark.parametrize(("family", "kind", "strategy"), FEW)
def test_a_few_exports_answer_as_in_memory(family: str, kind: str, strategy: str, tmp_path: Path) -> None:
    check(family, kind, strategy, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "kind", "strategy"), ALL)
def test_every_export_answers_as_in_memory(family: str, kind: str, strategy: str, tmp_path: Path) -> None:
    check(family, kind, strategy, tmp_path)
