"""The loop, greedy search and constraints, on a scripted model."""

import numpy as np
import pytest
from scripted import BOS, EOS, PAD, ScriptedModel, assert_same, found, run, tables

from keras_seq2seq.search import Beam, ForbiddenTokens, Greedy, NoRepeatedNgram, Sampling

MODES = ["eager", "graph", "xla"]
SOURCES = np.arange(20, dtype="int32")[:, None]


@pytest.fixture(scope="module")
def model() -> ScriptedModel:
    return ScriptedModel(tables(20, 9, seed=7))


def greedy_by_hand(model: ScriptedModel, source: int, limit: int) -> tuple[list[int], float]:
    tokens: list[int] = []
    score = 0.0
    while len(tokens) < limit and tokens[-1:] != [EOS]:
        step = model.log_probabilities(source, tokens)
        tokens.append(int(step.argmax()))
        score += step.max()
    return tokens, score


@pytest.mark.parametrize("mode", MODES)
def test_greedy_takes_the_best_token(model, mode: str) -> None:
    result = run(mode, model, SOURCES, Greedy(), max_length=8)
    assert result.tokens.shape == (20, 1, 8)
    assert 0 < result.finished.sum() < 20
    for row in range(20):
        tokens, score = greedy_by_hand(model, row, 8)
        (ours,) = found(result, row)
        assert list(ours.tokens) == tokens
        assert ours.score == pytest.approx(score, rel=1e-5)


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_greedy_rows_end_at_their_own_limit(model, mode: str) -> None:
    limits = np.arange(20, dtype="int32") % 9
    result = run(mode, model, SOURCES, Greedy(), max_length=8, row_limit=limits)
    for row, limit in enumerate(limits):
        tokens, score = greedy_by_hand(model, row, int(limit))
        (ours,) = found(result, row)
        assert list(ours.tokens) == tokens
        assert ours.score == pytest.approx(score, rel=1e-5)


@pytest.mark.parametrize(
    ("mode", "strategy"),
    [("eager", Greedy()), ("eager", Beam(1)), ("eager", Beam(2)), ("graph", Beam(2)), ("xla", Beam(2))],
)
def test_pad_and_bos_are_banned_before_normalising(mode: str, strategy) -> None:
    """Of pad=10, a=1, b=0, eos=-1 the answer is a, with log(e / (e + 1 + 1/e)) = -0.4076, not -9.0."""
    row = np.full((1, 1, 6), -1e4, "float32")
    row[..., PAD], row[..., BOS], row[..., 4], row[..., 5], row[..., EOS] = 10.0, 12.0, 1.0, 0.0, -1.0
    result = run(mode, ScriptedModel(row), np.zeros((1, 1), "int32"), strategy, max_length=1)
    (best,) = found(result, 0)
    assert best.tokens == (4,)
    assert best.score == pytest.approx(-0.4076, abs=1e-4)


def test_min_length_bans_eos_and_nothing_else() -> None:
    """The last id of the vocabulary stays allowed, and EOS is let go at once where it may come."""
    table = np.zeros((1, 1, 7), "float32")
    table[..., EOS], table[..., 6] = 5.0, 4.0
    scripted, source = ScriptedModel(table), np.zeros((1, 1), "int32")
    for min_length in (1, 2, 4):
        result = run("eager", scripted, source, Greedy(), max_length=6, min_length=min_length)
        assert found(result, 0)[0].tokens == (6,) * (min_length - 1) + (EOS,)
    free = run("eager", scripted, source, Greedy(), max_length=6)
    others = np.log(np.exp(5.0) / (np.exp(5.0) + np.exp(4.0) + 3))  # unk and two more at 0
    assert free.scores[0, 0] == pytest.approx(others, rel=1e-5)


@pytest.mark.parametrize("strategy", [Greedy(), Beam(4, n_best=4)])
def test_constraints_apply_in_every_step(model, strategy) -> None:
    free = run("eager", model, SOURCES, strategy, max_length=8)
    assert (free.tokens == 5).any()
    bound = run("eager", model, SOURCES, strategy, max_length=8, constraints=[ForbiddenTokens((5, 8)), later])
    assert not np.isin(bound.tokens, (5, 8)).any()
    assert not (bound.tokens[..., :2] == 4).any()
    assert (bound.tokens[..., 2:] == 4).any()


def later(logits, progress):
    """Ban id 4 in the first two steps."""
    return logits + np.eye(9, dtype="float32")[4] * -1e9 * (np.asarray(progress.index) < 2)


def ngrams(tokens: list[int], size: int) -> list[tuple[int, ...]]:
    return [tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)]


@pytest.mark.parametrize("mode", ["eager", "graph", "xla"])
@pytest.mark.parametrize(
    "strategy", [Greedy(), Beam(3, n_best=3), Sampling(3, seed=1)], ids=lambda s: type(s).__name__
)
def test_no_ngram_comes_twice(model, strategy, mode: str) -> None:
    """Without the rule some do, and with it greedy search takes the best of what is left in each step."""
    limit, size = 10, 2
    options = {"max_length": limit, "min_length": limit}
    free = run(mode, model, SOURCES, strategy, **options)
    bound = run(mode, model, SOURCES, strategy, constraints=[NoRepeatedNgram(size)], **options)
    repeats = 0
    for row, source in enumerate(SOURCES[:, 0]):
        for before, after, length in zip(
            free.tokens[row], bound.tokens[row], bound.lengths[row], strict=True
        ):
            repeats += len(ngrams(before.tolist(), size)) - len(set(ngrams(before.tolist(), size)))
            seen = ngrams(after[:length].tolist(), size)
            assert len(set(seen)) == len(seen)
        if isinstance(strategy, Greedy):
            tokens: list[int] = []
            while len(tokens) < bound.lengths[row, 0]:
                chances = model.log_probabilities(source, tokens, limit)
                for gram in ngrams(tokens, size):
                    if gram[:-1] == tuple(tokens[len(tokens) - size + 1 :]):
                        chances[gram[-1]] = -np.inf
                tokens.append(int(chances.argmax()))
            assert bound.tokens[row, 0, : len(tokens)].tolist() == tokens
    assert repeats > 0


@pytest.mark.parametrize("size", [5, 6, 7, 30])
@pytest.mark.parametrize("strategy", [Greedy(), Beam(3, n_best=3)], ids=repr)
def test_an_ngram_longer_than_any_text_rules_nothing_out(model, strategy, size: int) -> None:
    free = run("graph", model, SOURCES, strategy, max_length=5)
    bound = run("graph", model, SOURCES, strategy, max_length=5, constraints=[NoRepeatedNgram(size)])
    np.testing.assert_array_equal(free.tokens, bound.tokens)


def test_a_token_may_be_kept_from_coming_twice(model) -> None:
    result = run("graph", model, SOURCES, Greedy(), max_length=5, constraints=[NoRepeatedNgram(1)])
    for tokens, length in zip(result.tokens[:, 0], result.lengths[:, 0], strict=True):
        assert len(set(tokens[:length].tolist())) == length


@pytest.mark.parametrize("strategy", [Greedy(), Beam(3)])
def test_other_special_ids(strategy) -> None:
    """Ids are arguments: with pad=5, eos=0 the search bans 5 and ends at 0."""
    table = np.zeros((1, 1, 6), "float32")
    table[..., 5], table[..., 0] = 9.0, 3.0
    result = run(
        "eager",
        ScriptedModel(table),
        np.zeros((1, 1), "int32"),
        strategy,
        max_length=3,
        pad_id=5,
        bos_id=1,
        eos_id=0,
    )
    assert result.tokens[0, 0].tolist() == [0, 5, 5]
    assert bool(result.finished[0, 0])


@pytest.mark.parametrize("strategy", [Greedy(), Beam(3)])
def test_the_prompt_is_read_and_not_counted(model, strategy) -> None:
    """The scripted model reads the last token of its prompt: another one gives another answer."""
    bos, other = (
        run("eager", _Prompted(model, prompt), SOURCES, strategy, max_length=6) for prompt in (BOS, 7)
    )
    assert bos.tokens.shape == other.tokens.shape == (20, 1, 6)
    assert (bos.tokens != other.tokens).any()


class _Prompted(ScriptedModel):
    """The scripted model with a prompt of its own."""

    def __init__(self, model: ScriptedModel, token: int) -> None:
        super().__init__(model.table)
        self.token = token

    def start(self, inputs, max_length, hypotheses=1):
        state = super().start(inputs, max_length, hypotheses)
        return state._replace(token=state.token * 0 + self.token)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_length": 0}, "max_length=0"),
        ({"max_length": 3, "min_length": 4}, "max_length=3.*min_length=4"),
        ({"max_length": 3, "min_length": -1}, "min_length must be at least 0, received -1"),
        ({"max_length": 3.0}, "max_length must be an integer, received 3.0"),
        ({"max_length": True}, "max_length must be an integer, received True"),
        ({"max_length": np.array([3])}, r"max_length must be an integer, received the shape \(1,\)"),
        ({"max_length": 3, "min_length": 1.5}, r"min_length must be an integer or int32 \[B\], received 1.5"),
        ({"max_length": 3, "min_length": np.ones((20, 1), int)}, r"min_length .* the shape \(20, 1\)"),
        ({"max_length": 3, "min_length": np.ones(20)}, "min_length must be an integer or int32"),
        ({"max_length": 3, "row_limit": 2}, r"row_limit must be int32 \[B\], received the shape \(\)"),
        ({"max_length": 3, "row_limit": [2] * 20}, r"row_limit must be int32 \[B\], received \[2"),
        ({"max_length": 3, "seeds": np.zeros((20, 2), int)}, r"seeds must be int32 \[B\].*\(20, 2\)"),
    ],
)
def test_bad_limits_are_named(model, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run("eager", model, SOURCES, Greedy(), **options)


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (None, "constraints must be a list of callables, received None"),
        (ForbiddenTokens((5,)), r"constraints must be a list of callables, received ForbiddenTokens\(ids"),
        ([3], "constraints must be a list of callables, received 3 in it"),
        (
            [NoRepeatedNgram],
            "constraints must be a list of callables, received <class .*NoRepeatedNgram'> in",
        ),
        ([ForbiddenTokens(5)], "ids must be a tuple of integers, received 5"),  # type: ignore[arg-type]
        ([ForbiddenTokens(("a",))], r"ids must be a tuple of integers, received \('a',\)"),  # type: ignore[arg-type]
        ([NoRepeatedNgram(0)], "size must be an integer of at least 1, received 0"),
        ([NoRepeatedNgram(2.0)], "size must be an integer of at least 1, received 2.0"),  # type: ignore[arg-type]
    ],
)
def test_bad_constraints_are_named(model, constraints, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        run("eager", model, SOURCES, Greedy(), max_length=2, constraints=constraints)


@pytest.mark.parametrize("strategy", ["beam", None, Beam])
def test_what_is_no_strategy_is_named(model, strategy) -> None:
    with pytest.raises(
        TypeError, match=r"strategy must be one of keras_seq2seq.search such as Beam\(4\), rec"
    ):
        run("eager", model, SOURCES, strategy, max_length=2)


def test_a_strategy_that_lacks_a_part_is_named(model) -> None:
    class Half:
        width = 1
        advance = begin = done = tokens = result = Greedy.advance

    with pytest.raises(TypeError, match=r"strategy must have width, .* without open_rows\.$"):
        run("eager", model, SOURCES, Half(), max_length=2)


def test_a_misspelt_option_is_named(model) -> None:
    with pytest.raises(TypeError, match="min_lenght"):
        run("eager", model, SOURCES, Greedy(), max_length=3, min_lenght=2)
    with pytest.raises(TypeError, match="temprature"):
        Sampling(temprature=2.0)  # type: ignore[call-arg]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("strategy", [Greedy(), Beam(3, n_best=3), Sampling(2, seed=1)], ids=repr)
def test_each_row_has_its_own_minimum_and_maximum(model, strategy, mode: str) -> None:
    """Where the minimum is above the maximum the latter wins, and the row may end with its last token."""
    least, most = np.arange(20, dtype="int32") % 6, np.arange(20, dtype="int32") % 7
    options = {"max_length": 8, "min_length": least, "row_limit": most}
    together = run(mode, model, SOURCES, strategy, **options)
    seeds = np.asarray(Sampling(seed=1).row_seeds(np.arange(20, dtype="int32")))
    assert (together.lengths <= most[:, None]).all()
    for row in range(20):
        if most[row] == 0:
            continue
        alone = run(
            "eager",
            model,
            SOURCES[row : row + 1],
            strategy,
            max_length=int(most[row]),
            min_length=int(min(least[row], most[row])),
            seeds=seeds[row : row + 1],
        )
        assert_same(found(alone, 0), found(together, row))
        exists = together.lengths[row] > 0
        assert (together.lengths[row][exists] >= min(least[row], most[row])).all()
    assert together.finished[least > most].any()


@pytest.mark.parametrize("strategy", [Greedy(), Beam(3, n_best=3), Sampling(2, seed=1)], ids=repr)
def test_a_minimum_may_be_given_either_way(model, strategy) -> None:
    one, rows = (
        run("graph", model, SOURCES, strategy, max_length=8, min_length=least)
        for least in (4, np.full(20, 4, "int32"))
    )
    np.testing.assert_array_equal(one.tokens, rows.tokens)
    np.testing.assert_array_equal(one.scores, rows.scores)


def test_a_row_limit_above_the_maximum_changes_nothing(model) -> None:
    free, wide = (
        run("graph", model, SOURCES, Beam(3, stop="bound"), max_length=8, row_limit=limit)
        for limit in (None, np.full(20, 99, "int32"))
    )
    np.testing.assert_array_equal(free.tokens, wide.tokens)


def test_greedy_keeps_one_hypothesis() -> None:
    with pytest.raises(ValueError, match="width=2"):
        Greedy(width=2)
