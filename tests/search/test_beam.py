"""The beam, judged by enumeration and by a beam in plain Python, on a scripted model."""

import numpy as np
import pytest
from scripted import (
    EOS,
    Found,
    ScriptedModel,
    assert_same,
    enumerate_all,
    found,
    plain_beam,
    run,
    tables,
)

from keras_seq2seq.search import Beam, Greedy

ROWS, LIMIT = 20, 7
PENALTIES = [("average", 0.0), ("average", 0.6), ("average", 1.0), ("gnmt", 0.6), ("gnmt", 2.0)]
SOURCES = np.arange(ROWS, dtype="int32")[:, None]


@pytest.fixture(scope="module")
def model() -> ScriptedModel:
    return ScriptedModel(tables(ROWS, 9))


@pytest.mark.parametrize("stop", ["first", "bound"])
@pytest.mark.parametrize(("penalty", "a"), PENALTIES)
def test_full_width_finds_what_enumeration_finds(penalty: str, a: float, stop: str) -> None:
    """Of 3 tokens and EOS there are 40 ended sequences and 81 others up to length 4: 108 prunes none."""
    small = ScriptedModel(tables(3, 6, seed=1))
    strategy = Beam(108, length_penalty=a, penalty=penalty, n_best=108, stop=stop)
    result = run("eager", small, SOURCES[:3], strategy, max_length=4)
    for row in range(3):
        everything = enumerate_all(small, row, 4, penalty, a)
        assert [h.finished for h in everything].count(True) == 40
        assert_same(found(result, row), everything[:108])


@pytest.mark.parametrize("stop", ["first", "bound"])
@pytest.mark.parametrize(("penalty", "a"), PENALTIES)
@pytest.mark.parametrize("width", [1, 2, 3, 5, 8])
def test_equals_a_plain_beam(model, width: int, penalty: str, a: float, stop: str) -> None:
    strategy = Beam(width, length_penalty=a, penalty=penalty, n_best=width, stop=stop)
    result = run("eager", model, SOURCES, strategy, max_length=LIMIT)
    for row in range(ROWS):
        expected = plain_beam(model, row, width, LIMIT, penalty=penalty, a=a, stop=stop)
        assert_same(found(result, row), expected[:width])


@pytest.mark.parametrize("mode", ["graph", "xla"])
@pytest.mark.parametrize(("stop", "penalty", "a"), [("first", "average", 1.0), ("bound", "gnmt", 0.6)])
def test_equals_a_plain_beam_when_compiled(model, mode: str, stop: str, penalty: str, a: float) -> None:
    strategy = Beam(4, length_penalty=a, penalty=penalty, n_best=3, stop=stop)
    result = run(mode, model, SOURCES, strategy, max_length=LIMIT, min_length=2)
    for row in range(ROWS):
        expected = plain_beam(model, row, 4, LIMIT, penalty=penalty, a=a, stop=stop, min_length=2)
        assert_same(found(result, row), expected[:3])


@pytest.mark.parametrize(("penalty", "a"), PENALTIES)
def test_the_bound_loses_nothing(model, penalty: str, a: float) -> None:
    """Stopping by the bound finds what a beam finds that never stops before the limit."""
    strategy = Beam(3, length_penalty=a, penalty=penalty, n_best=3, stop="bound")
    result = run("eager", model, SOURCES, strategy, max_length=LIMIT)
    for row in range(ROWS):
        never = plain_beam(model, row, 3, LIMIT, penalty=penalty, a=a, stop="never")
        assert_same(found(result, row), never[:3])


def test_the_stop_rules_differ_where_they_should(model) -> None:
    """Otherwise the tests above would judge only one of them."""
    first, bound = (
        run("eager", model, SOURCES, Beam(3, length_penalty=1.0, stop=stop), max_length=20)
        for stop in ("first", "bound")
    )
    assert (first.tokens != bound.tokens).any()
    assert (bound.scores >= first.scores - 1e-6).all()


@pytest.mark.parametrize(
    ("mode", "penalty", "a"), [("graph", "gnmt", 0.6), *(("eager", *penalty) for penalty in PENALTIES)]
)
def test_beam_of_one_is_greedy(mode: str, penalty: str, a: float) -> None:
    many = ScriptedModel(tables(100, 8, seed=2))
    source = np.arange(100, dtype="int32")[:, None]
    greedy = run(mode, many, source, Greedy(), max_length=LIMIT)
    beam = run(mode, many, source, Beam(1, length_penalty=a, penalty=penalty), max_length=LIMIT)
    np.testing.assert_array_equal(greedy.tokens, beam.tokens)
    np.testing.assert_array_equal(greedy.finished, beam.finished)
    np.testing.assert_array_equal(greedy.lengths, beam.lengths)
    length = beam.lengths.astype("float32")
    factor = (length if penalty == "average" else (5 + length) / 6) ** a
    np.testing.assert_allclose(greedy.scores, beam.scores * factor, rtol=1e-5)
    assert 0 < greedy.finished.sum() < 100


@pytest.mark.parametrize("stop", ["first", "bound"])
def test_rows_end_at_their_own_limit(model, stop: str) -> None:
    limits = np.arange(ROWS, dtype="int32") % (LIMIT + 1)
    result = run("eager", model, SOURCES, Beam(3, n_best=3, stop=stop), max_length=LIMIT, row_limit=limits)
    for row, limit in enumerate(limits):
        if limit:
            expected = plain_beam(model, row, 3, int(limit), stop=stop)[:3]
            expected += [Found((), -1e9, False)] * (3 - len(expected))
            assert_same(found(result, row), expected)
        else:
            assert [h.tokens for h in found(result, row)] == [()] * 3


@pytest.mark.parametrize("stop", ["first", "bound"])
def test_rows_do_not_depend_on_their_neighbours(model, stop: str) -> None:
    strategy = Beam(4, n_best=4, stop=stop)
    together = run("eager", model, SOURCES, strategy, max_length=LIMIT)
    for batch, starts in ((1, (0, 5, 19)), (7, (0, 7, 13))):
        for start in starts:
            part = run("eager", model, SOURCES[start : start + batch], strategy, max_length=LIMIT)
            for row in range(len(part.tokens)):
                assert_same(found(part, row), found(together, start + row), 1e-6)


def test_n_best_are_distinct_and_sorted(model) -> None:
    result = run("eager", model, SOURCES, Beam(5, n_best=5), max_length=12)
    for row in range(ROWS):
        hypotheses = found(result, row)
        assert len({h.tokens for h in hypotheses}) == 5
        order = [(not h.finished, -h.score) for h in hypotheses]
        assert order == sorted(order)


def never_ends(rows: int, vocabulary: int) -> ScriptedModel:
    table = tables(rows, vocabulary, seed=3)
    table[..., EOS] = -50.0
    return ScriptedModel(table)


@pytest.mark.parametrize("stop", ["first", "bound"])
def test_when_nothing_ends_there_are_n_results_flagged(stop: str) -> None:
    result = run("eager", never_ends(2, 8), SOURCES[:2], Beam(4, n_best=4, stop=stop), max_length=5)
    assert result.tokens.shape == (2, 4, 5)
    assert not result.finished.any()
    assert (result.lengths == 5).all()
    for row in range(2):
        assert_same(found(result, row), plain_beam(never_ends(2, 8), row, 4, 5, stop=stop)[:4])


def test_finished_come_before_unfinished() -> None:
    """An ended hypothesis of low probability leads; the better open ones fill the other places."""
    table = tables(6, 8, seed=4)
    table[..., EOS] -= 2.0
    scripted = ScriptedModel(table)
    result = run("eager", scripted, SOURCES[:6], Beam(4, n_best=4), max_length=4)
    mixed = [f for f in result.finished.tolist() if 0 < sum(f) < 4]
    assert mixed
    assert all(f == sorted(f, reverse=True) for f in result.finished.tolist())
    assert any(
        scores[sum(f) - 1] < scores[sum(f)]
        for f, scores in zip(result.finished.tolist(), result.scores, strict=True)
        if 0 < sum(f) < 4
    )


@pytest.mark.parametrize("min_length", [2, 4, LIMIT])
@pytest.mark.parametrize("strategy", [Greedy(), Beam(3, n_best=3)])
def test_min_length_counts_generated_tokens_with_eos(model, strategy, min_length: int) -> None:
    result = run("eager", model, SOURCES, strategy, max_length=LIMIT, min_length=min_length)
    assert (result.lengths >= min_length).all()
    for row in range(ROWS):
        expected = plain_beam(model, row, strategy.width, LIMIT, min_length=min_length)
        ours = [h.tokens for h in found(result, row)]
        assert ours == [h.tokens for h in expected[: len(ours)]]


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_fewer_candidates_than_places(limit: int) -> None:
    """Two tokens and EOS cannot fill a beam of 8: what does not exist comes out empty, and last."""
    tiny = ScriptedModel(tables(4, 5, seed=5))
    result = run("eager", tiny, SOURCES[:4], Beam(8, n_best=8), max_length=limit)
    for row in range(4):
        expected = plain_beam(tiny, row, 8, limit)[:8]
        assert limit > 2 or len(expected) < 8
        ours = found(result, row)
        assert_same(ours[: len(expected)], expected)
        assert [h.tokens for h in ours[len(expected) :]] == [()] * (8 - len(expected))
        assert not any(h.finished for h in ours[len(expected) :])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0}, "width.*received 0"),
        ({"width": 1.5}, "width must be an integer, received 1.5"),
        ({"width": "4"}, "width must be an integer, received '4'"),
        ({"width": 4, "n_best": 2.0}, "n_best must be an integer, received 2.0"),
        ({"width": 4, "length_penalty": float("nan")}, "length_penalty.*finite.*nan"),
        ({"width": 4, "length_penalty": None}, "length_penalty.*finite.*None"),
        ({"width": 4, "length_penalty": True}, "length_penalty.*finite.*True"),
        ({"width": 4, "n_best": 5}, "n_best.*width of 4.*received 5"),
        ({"width": 4, "n_best": 0}, "n_best.*received 0"),
        ({"width": 4, "penalty": "google"}, "penalty.*'google'"),
        ({"width": 4, "stop": "never"}, "stop.*'never'"),
    ],
)
def test_bad_arguments_are_named(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Beam(**options)
    with pytest.raises(TypeError, match="lenght_penalty"):
        Beam(4, lenght_penalty=1.0)  # type: ignore[call-arg]
