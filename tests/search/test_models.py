"""The search over real models with random weights: rows stand alone, and lists are in order."""

import numpy as np
import pytest
from families import LIMIT, ROWS, STRATEGIES, VOCABULARY, Family
from scripted import BOS, EOS, PAD, found

from keras_seq2seq.search import Beam, Greedy, SearchResult


@pytest.fixture(scope="module", params=STRATEGIES)
def strategy(request: pytest.FixtureRequest):
    return STRATEGIES[request.param]


def trimmed(rows: np.ndarray) -> np.ndarray:
    return rows[:, : int((rows != PAD).sum(1).max())]


def assert_rows(part: SearchResult, whole: SearchResult, rows: slice) -> None:
    np.testing.assert_array_equal(part.tokens, whole.tokens[rows])
    np.testing.assert_array_equal(part.lengths, whole.lengths[rows])
    np.testing.assert_array_equal(part.finished, whole.finished[rows])
    np.testing.assert_allclose(part.scores, whole.scores[rows], atol=1e-4)
    np.testing.assert_allclose(part.token_scores, whole.token_scores[rows], atol=1e-4)


def test_the_rows_differ_enough_to_tell(family: Family, strategy) -> None:
    """Outputs vary and some end, or the tests below would prove nothing."""
    together = family.whole(strategy)
    assert len(np.unique(together.tokens[:, 0], axis=0)) > ROWS // 3
    assert together.finished[:, 0].mean() > 0.1
    assert len(np.unique(together.lengths[:, 0])) > 2


@pytest.mark.parametrize("batch", [1, 7])
def test_a_row_does_not_depend_on_its_batch(family: Family, strategy, batch: int) -> None:
    """Three rows of unlike lengths among them, so that each must read its own."""
    together = family.whole(strategy)
    for start in range(0, 15 if batch == 1 else ROWS, batch):
        rows = slice(start, min(start + batch, ROWS))
        inputs = {family.varying: trimmed(family.rows[rows])}
        part = family.decode(inputs, strategy, seeds=range(rows.start, rows.stop))
        assert_rows(part, together, rows)


def test_a_row_does_not_depend_on_a_long_neighbour(family: Family, strategy) -> None:
    """Next to 200 tokens, before or after it."""
    neighbour = np.random.default_rng(2).integers(EOS + 1, VOCABULARY, (1, 200))
    if family.varying == "target":
        neighbour[0, 0] = BOS
    wide = np.concatenate([np.pad(family.rows[:5], ((0, 0), (0, 191))), neighbour])
    together = family.whole(strategy)
    for order in (np.arange(6), np.array([0, 5, 1, 2, 3, 4])):
        result = family.decode({family.varying: wide[order]}, strategy, seeds=order)
        back = np.argsort(order)[:5]
        assert_rows(SearchResult(*(part[back] for part in result)), together, slice(0, 5))


def test_n_best_are_distinct_and_sorted_and_well_formed(family: Family) -> None:
    together = family.whole(STRATEGIES["beam"])
    for row in range(ROWS):
        hypotheses = [h for h in found(together, row) if h.tokens]
        assert len({h.tokens for h in hypotheses}) == len(hypotheses) == 5
        order = [(not h.finished, -h.score) for h in hypotheses]
        assert order == sorted(order)


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
def test_a_beam_of_one_is_greedy(family: Family, penalty: float) -> None:
    inputs = {family.varying: family.rows}
    greedy, beam = family.whole(Greedy()), family.decode(inputs, Beam(1, length_penalty=penalty))
    np.testing.assert_array_equal(beam.tokens, greedy.tokens)
    np.testing.assert_array_equal(beam.finished, greedy.finished)
    np.testing.assert_allclose(beam.scores * beam.lengths**penalty, greedy.scores, rtol=1e-4, atol=1e-4)


def test_a_prompt_does_not_count_for_the_lengths(family: Family) -> None:
    """At the limit there are as many new tokens after eight tokens as after none."""
    target = np.zeros((2, 9), "int32")
    target[0] = [BOS, 5, 9, 12, 6, 5, 8, 4, 7]
    target[1, 0] = BOS
    inputs = {"target": target}
    if family.varying == "source":
        inputs["source"] = family.rows[:2]
    result = family.decode(inputs, Greedy(), least=LIMIT)
    assert (result.lengths == LIMIT).all()
