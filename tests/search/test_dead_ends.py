"""Where the rules, or the model, leave no token at all: nothing is written there, and nothing is made up."""

import numpy as np
import pytest
from scripted import EOS, PAD, Blocked, ScriptedModel, assert_same, found, plain_beam, run, tables

from keras_seq2seq.search import Beam, ForbiddenTokens, Greedy, NoRepeatedNgram, Sampling

ROWS, LIMIT = 40, 8
SOURCES = np.arange(ROWS, dtype="int32")[:, None]
STRATEGIES = [Greedy(), Beam(1), Beam(3, n_best=3), Sampling(3, seed=2), Sampling(2, seed=2, top_k=3)]


@pytest.mark.parametrize(
    ("width", "stop", "banned"),
    [(1, "first", -1e9), (2, "bound", -1e9), (3, "first", -np.inf), (3, "bound", -1e9), (8, "first", -1e9)],
)
def test_the_beam_goes_round_dead_ends(width: int, stop: str, banned: float) -> None:
    """A hypothesis without a next token dies; where all do, they are what the search comes back with."""
    model, cut = Blocked(ROWS, banned), 0
    strategy = Beam(width, n_best=width, stop=stop)
    result = run("graph", model, SOURCES, strategy, max_length=LIMIT)
    for row in range(ROWS):
        expected = plain_beam(model, row, width, LIMIT, stop=stop)[:width]
        ours = [h for h in found(result, row) if h.finished or h.score > -1e8]
        assert_same(ours, expected)
        cut += any(not h.finished and len(h.tokens) < LIMIT for h in expected)
    assert cut


@pytest.mark.parametrize("mode", ["eager", "graph", "xla"])
def test_a_beam_of_one_and_greedy_stop_at_the_same(mode: str) -> None:
    greedy, beam = (
        run(mode, Blocked(ROWS), SOURCES, strategy, max_length=LIMIT)
        for strategy in (Greedy(), Beam(1, length_penalty=0.0))
    )
    assert (~greedy.finished & (greedy.lengths < LIMIT)).any()
    for row in range(ROWS):
        assert_same(found(greedy, row), found(beam, row))


@pytest.mark.parametrize("mode", ["graph", "xla"])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_samples_and_all_others_hold_allowed_tokens_alone(strategy, mode: str) -> None:
    model = Blocked(ROWS)
    result = run(mode, model, SOURCES, strategy, max_length=LIMIT)
    for row in range(ROWS):
        for h in found(result, row):
            steps = [model.log_probabilities(row, h.tokens[:i])[token] for i, token in enumerate(h.tokens)]
            assert np.isfinite(steps).all()
    assert (~result.finished & (result.lengths < LIMIT)).any()


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_rules_that_leave_nothing_end_the_search_there(strategy) -> None:
    """Everything forbidden; EOS alone allowed, yet too early; and every token used once, yet too few."""
    model = ScriptedModel(tables(ROWS, 7))
    others = ForbiddenTokens((1, 4, 5, 6))
    cases: list[tuple[dict, int]] = [
        ({"constraints": [others, ForbiddenTokens((EOS,))]}, 0),
        ({"constraints": [others], "min_length": 2}, 0),
        ({"constraints": [NoRepeatedNgram(1)], "min_length": LIMIT}, 4),
    ]
    for options, length in cases:
        result = run("graph", model, SOURCES, strategy, max_length=LIMIT, **options)
        assert not result.finished.any()
        assert (result.lengths[:, 0] == length).all()
        assert np.isin(result.lengths, (0, length)).all()
        for row in range(ROWS):
            found(result, row)
    ends = run("graph", model, SOURCES, strategy, max_length=LIMIT, constraints=[others])
    assert (ends.tokens[:, 0] == [EOS] + [PAD] * (LIMIT - 1)).all()
