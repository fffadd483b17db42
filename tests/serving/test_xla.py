"""XLA gives what the graph gives: in memory, where two halves of a batch run at a time, and in an export."""

import json
from pathlib import Path
from typing import Any

import c_loader
import numpy as np
import pytest
from served_families import SEEDS, STRATEGIES, TEXTS, make
from tokenizer_kinds import LINES, MAKE

import keras_seq2seq as ks

SMALL = ks.serving.XLABuckets(batch_sizes=(1, 4), lengths=(8, 16))
LONG = "the quick brown fox sells shells by the shore of the sea and the lazy dog sleeps"
FEW = [("language model", "greedy")]
MORE = [("bahdanau", "beam"), ("transformer", "sampling"), ("no attention", "greedy"), ("luong", "covering")]
CASES = [*FEW, *(pytest.param(*case, marks=pytest.mark.slow) for case in MORE)]


def served(family: str, strategy: str) -> Any:
    return make(family, MAKE["words"](LINES), STRATEGIES[strategy])


def best(each: Any, texts: list[str]) -> list[Any]:
    rows = each.translate(texts) if isinstance(each, ks.Translator) else each.generate(texts)
    return [row[0] for row in rows]


@pytest.mark.parametrize(("family", "strategy"), MORE[:2])
def test_halves_of_a_batch_are_put_together_in_order(family: str, strategy: str) -> None:
    plain = served(family, strategy)
    options = {**vars(plain.settings), "jit_compile": True}
    fast = plain.with_settings(type(plain.settings)(**options))
    texts = [*TEXTS, LONG] * 3
    found, expected = best(fast, texts), best(plain, texts)
    assert [each.tokens for each in found] == [each.tokens for each in expected]
    assert np.allclose([e.score for e in found], [e.score for e in expected], atol=1e-4)
    assert len({each.text for each in found}) > 3


@pytest.mark.parametrize(("family", "strategy"), CASES)
def test_an_xla_export_answers_batches_in_and_outside_its_buckets(
    family: str, strategy: str, tmp_path: Path
) -> None:
    each = served(family, strategy)
    path = Path(each.export(tmp_path / "base", samples=TEXTS[:1], xla=SMALL))
    # Too many rows, too long a row, and what fits: 0 to 3 rows.
    batches = [TEXTS, [LONG, "the sea"], [], TEXTS[:1], TEXTS[:3]]
    requests: list[tuple[str, dict[str, Any]]] = [("serving_default", {"text": batch}) for batch in batches]
    requests += [("sample", {"text": TEXTS[:3], "seed": SEEDS[:3]})]
    *answers, drawn = c_loader.run_signatures(path, requests, xla=True)
    name = "completion" if family == "language model" else "translation"
    for batch, answer in zip(batches, answers, strict=True):
        # Without a seed as input, each text is answered as if it were alone.
        found = [best(each, [text])[0] for text in batch] if strategy == "sampling" else best(each, batch)
        assert answer[name] == [one.text for one in found]
        assert np.allclose(answer["score"], [one.score for one in found], atol=1e-4)
    assert drawn[name] == [one.text for one in each.sample(TEXTS[:3], SEEDS[:3])]
    card = json.loads((path / "assets.extra" / "model.json").read_text())
    assert card["xla"] == {"batch_sizes": [1, 4], "lengths": [8, 16]}


@pytest.mark.parametrize("sizes", [(), (8, 4), (2, 2), (0,), (1.5,), (True,), 3, None])
@pytest.mark.parametrize("name", ["batch_sizes", "lengths"])
def test_buckets_that_are_none_are_refused(name: str, sizes: Any) -> None:
    with pytest.raises(ValueError, match=rf"^{name} must be rising integers of at least 1, received"):
        ks.serving.XLABuckets(**{name: sizes})


def test_other_values_of_xla_are_refused(tmp_path: Path) -> None:
    each = served("transformer", "greedy")
    with pytest.raises(TypeError, match="xla must be True, False or XLABuckets, received 8"):
        each.export(tmp_path / "base", xla=8)
    assert not (tmp_path / "base").exists()
