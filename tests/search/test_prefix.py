"""Forced prefixes and prompts: what stands before is read as if it had been generated, and is not counted."""

import numpy as np
import pytest
import tensorflow as tf
from families import LIMIT, STRATEGIES, Family
from references import randomize
from scripted import BOS, PAD

from keras_seq2seq.layers import LuongAttention
from keras_seq2seq.models import rnn_seq2seq
from keras_seq2seq.search import Beam, Greedy, NoRepeatedNgram, Prompt, SearchResult, search

ROWS = 12


def beginning(family: Family) -> list[list[int]]:
    """Return what every row begins with: BOS, or the language model's prompt."""
    rows = family.rows[:ROWS].tolist()
    if family.varying == "target":
        return [[token for token in row if token != PAD] for row in rows]
    return [[BOS]] * ROWS


def given(family: Family, prompts: list[list[int]]) -> dict[str, np.ndarray]:
    """Pad prompts of unequal length on the right, and give each its source."""
    target = np.zeros((len(prompts), max(map(len, prompts))), "int32")
    for row, prompt in zip(target, prompts, strict=True):
        row[: len(prompt)] = prompt
    if family.varying == "target":
        return {"target": target}
    return {"source": family.rows[: len(prompts)], "target": target}


def alone(inputs: dict, row: int) -> dict[str, np.ndarray]:
    """Return one row without its pads."""
    one = {name: value[row : row + 1] for name, value in inputs.items()}
    return {name: value[:, : int((value != PAD).sum())] for name, value in one.items()}


def test_in_a_graph_of_unknown_length_the_prompt_may_be_bos_alone(family: Family) -> None:
    """No position is left for the pass over prompts then."""
    inputs = given(family, [[BOS]] * 3)
    result = family.decode(inputs, Greedy())
    eager = search(family.model, inputs, Greedy(), max_length=LIMIT)
    np.testing.assert_array_equal(result.tokens, eager.tokens)
    np.testing.assert_allclose(result.scores, eager.scores, atol=1e-5)


@pytest.mark.parametrize("attention", [None, "dot"])
@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
def test_bos_alone_is_enough_for_recurrent_models_that_feed_nothing_back(cell: str, attention) -> None:
    """They read a prompt as a whole."""
    options = {"attention": LuongAttention(attention), "input_feeding": False} if attention else {}
    model = rnn_seq2seq(9, cell=cell, units=6, bidirectional=False, **options)
    randomize(model)
    source, target = np.array([[5, 6, 3], [7, 3, 0]], "int32"), np.full((2, 1), BOS, "int32")

    def found(source, target):
        inputs = {"source": source, "target": target}
        return search(model, inputs, Greedy(), max_length=LIMIT).tokens

    spec = tf.TensorSpec([None, None], tf.int32)
    compiled = tf.function(found, [spec, spec], autograph=False)
    np.testing.assert_array_equal(compiled(source, target), found(source, None))


def found_greedily(family: Family) -> list[list[int]]:
    result = family.decode(given(family, beginning(family)), Greedy())
    return [tokens[0, :n].tolist() for tokens, n in zip(result.tokens, result.lengths[:, 0], strict=True)]


def test_from_every_beginning_of_what_it_found_greedy_finds_the_rest(family: Family) -> None:
    """y[:k] leads to y again, for every k below its length; k differs from row to row."""
    found, begin = found_greedily(family), beginning(family)
    assert len({len(y) for y in found}) > 1
    for step in range(max(map(len, found))):
        cuts = [(step + row) % len(y) for row, y in enumerate(found)]
        prompts = [[*before, *y[:k]] for before, y, k in zip(begin, found, cuts, strict=True)]
        result = family.decode(given(family, prompts), Greedy())
        for y, k, tokens in zip(found, cuts, result.tokens[:, 0], strict=True):
            assert tokens[: len(y) - k].tolist() == y[k:]


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_unequal_prefixes_in_one_batch_equal_one_by_one(family: Family, strategy) -> None:
    """Some are empty and some have five tokens; each starts from its own state, and pads mean nothing."""
    generator = np.random.default_rng(3)
    lengths = [0, 5, 2, 5, 0, 3, 1, 4, 0, 5, 5, 0]
    prompts = [
        [*before, *generator.integers(4, 20, n)] for before, n in zip(beginning(family), lengths, strict=True)
    ]
    inputs = given(family, prompts)
    together = family.decode(inputs, strategy)
    for row in range(ROWS):
        one = family.decode(alone(inputs, row), strategy, seeds=[row])
        np.testing.assert_array_equal(one.tokens[0], together.tokens[row])
        np.testing.assert_array_equal(one.finished[0], together.finished[row])
        np.testing.assert_allclose(one.scores[0], together.scores[row], atol=1e-4)


def test_every_hypothesis_of_a_beam_continues_the_prefix(family: Family) -> None:
    """Its token scores are those that a full pass over prefix and hypothesis gives."""
    strategy = STRATEGIES["beam"]
    prompts = [[*before, 7, 9, 4][: 1 + row % 4] for row, before in enumerate([[BOS]] * ROWS)]
    inputs = given(family, prompts)
    result = family.decode(inputs, strategy)
    for n in range(strategy.width):
        expected = family.log_probabilities(inputs, result.tokens[:, n])
        np.testing.assert_allclose(result.token_scores[:, n], expected, atol=1e-5)


def ngrams(ids: list[int], size: int) -> list[tuple[int, ...]]:
    return [tuple(ids[i : i + size]) for i in range(len(ids) - size + 1)]


@pytest.mark.parametrize("strategy", [Greedy(), Beam(3, n_best=3)], ids=["greedy", "beam"])
def test_what_the_prefix_contains_does_not_come_again(family: Family, strategy) -> None:
    """The rule holds across the border, so that from y[:k] the search still finds y."""
    size = 2

    def run(inputs: dict, least: tf.Tensor) -> SearchResult:
        rules = [NoRepeatedNgram(size)]
        return search(family.model, inputs, strategy, max_length=LIMIT, min_length=least, constraints=rules)

    signature = {name: tf.TensorSpec([None, None], tf.int32) for name in given(family, beginning(family))}
    compiled = tf.function(run, [signature, tf.TensorSpec([None], tf.int32)], autograph=False)
    given_before = np.arange(ROWS, dtype="int32") % 8
    begin = beginning(family)
    whole = SearchResult(*(part.numpy() for part in compiled(given(family, begin), [9] * ROWS)))
    firsts = whole.tokens[:, 0].tolist()
    prompts = [[*before, *y[:k]] for before, y, k in zip(begin, firsts, given_before, strict=True)]
    rest = SearchResult(*(part.numpy() for part in compiled(given(family, prompts), 9 - given_before)))
    for row, prompt in enumerate(prompts):
        for tokens, n in zip(rest.tokens[row], rest.lengths[row], strict=True):
            before, after = ngrams(prompt, size), ngrams([*prompt, *tokens[:n].tolist()], size)
            new = after[len(before) :]
            assert len(set(new)) == len(new)
            assert not set(new) & set(before)
        if isinstance(strategy, Greedy):
            k = given_before[row]
            assert rest.tokens[row, 0, : 9 - k].tolist() == whole.tokens[row, 0, k:9].tolist()


def test_tokens_are_joined_right_behind_each_prompt() -> None:
    ids = np.array([[2, 0, 0, 0], [2, 5, 6, 0], [2, 5, 6, 7], [0, 0, 0, 0]], "int32")
    prompt = Prompt.of(ids, 0)
    np.testing.assert_array_equal(prompt.lengths, [1, 3, 4, 1])
    tokens = np.arange(10, 34, dtype="int32").reshape(4, 2, 3)
    joined = np.asarray(prompt.join(tokens))
    assert joined.shape == (4, 2, 7)
    for row in range(4):
        n = int(prompt.lengths[row])
        for w in range(2):
            expected = [*ids[row, :n], *tokens[row, w]]
            assert joined[row, w].tolist() == expected + [0] * (7 - len(expected))
