"""Leaving out what is done, and caches that grow, change no result and save what they should."""

import families
import numpy as np
import pytest
import tensorflow as tf
from families import LIMIT, STRATEGIES, Family
from scripted import BOS, Blocked, ScriptedModel, tables

from keras_seq2seq.models import FullPass
from keras_seq2seq.models.protocol import DecodeState
from keras_seq2seq.search import Beam, Greedy, NoRepeatedNgram, SearchResult, limits, search

IDS, ROW = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.int32)


@pytest.fixture(autouse=True)
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let caches begin with two slots, so that they grow to 4, 8 and `LIMIT`."""
    monkeypatch.setattr(limits, "_SLOTS", 2)


def pair(model, inputs: dict, strategy, **options) -> tuple[SearchResult, SearchResult, tf.Graph]:
    """Search as it is and compacted, with options for each row, and return the latter's graph too."""
    given = {name: tf.constant(value, tf.int32) for name, value in inputs.items()}
    rows = {name: tf.constant(value, tf.int32) for name, value in options.items()}

    def compiled(compact: bool):
        def run(inputs: dict, rows: dict) -> SearchResult:
            rules = {"constraints": [NoRepeatedNgram(4)], "compact": compact}
            return search(model, inputs, strategy, max_length=LIMIT, **rules, **rows)

        signature = [dict.fromkeys(given, IDS), dict.fromkeys(rows, ROW)]
        return tf.function(run, signature, autograph=False).get_concrete_function()

    both = [compiled(compact) for compact in (False, True)]
    plain, compacted = (SearchResult(*(part.numpy() for part in each(given, rows))) for each in both)
    return plain, compacted, both[1].graph


def assert_same(one: SearchResult, other: SearchResult) -> None:
    np.testing.assert_array_equal(one.tokens, other.tokens)
    np.testing.assert_array_equal(one.lengths, other.lengths)
    np.testing.assert_array_equal(one.finished, other.finished)
    np.testing.assert_allclose(one.scores, other.scores, atol=1e-4)
    np.testing.assert_allclose(one.token_scores, other.token_scores, atol=1e-4)


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_no_strategy_finds_anything_else(strategy) -> None:
    row = np.arange(40)
    options = {"row_limit": row % (LIMIT + 1), "min_length": row % 5, "seeds": row}
    plain, compacted, _ = pair(ScriptedModel(tables(40, 9)), {"source": row[:, None]}, strategy, **options)
    assert_same(plain, compacted)
    assert len(np.unique(plain.lengths[:, 0])) > 3


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_rows_that_stop_at_dead_ends(strategy) -> None:
    row = np.arange(40)
    options = {"min_length": row % 7, "seeds": row}
    plain, compacted, _ = pair(Blocked(40), {"source": row[:, None]}, strategy, **options)
    assert_same(plain, compacted)
    assert len(np.unique(plain.lengths[:, 0])) > 3


def test_no_model_finds_anything_else(family: Family) -> None:
    """Rows with limits, minima and prompts of their own, which all move together."""
    count = 40
    inputs = {family.varying: family.rows[:count]}
    if family.varying == "source":
        inputs["target"] = np.tile(np.array([[BOS, 0, 0], [BOS, 5, 9]], "int32"), (count // 2, 1))
    row = np.arange(count)
    options = {"row_limit": row % (LIMIT + 1), "min_length": row % 5}
    plain, compacted, graph = pair(family.model, inputs, STRATEGIES["beam"], **options)
    assert_same(plain, compacted)
    assert len(np.unique(plain.lengths[:, 0])) > 3
    kinds = {node.op for each in graph.as_graph_def().library.function for node in each.node_def}
    assert not [kind for kind in kinds if "Xla" in kind or "PyFunc" in kind]


def test_a_model_that_reads_everything_anew() -> None:
    family = families.make("language_model")
    inputs = {"target": family.rows[:12]}
    plain, compacted, _ = pair(FullPass(family.model), inputs, Greedy(), row_limit=np.arange(12))
    assert_same(plain, compacted)


def test_prompts_of_all_lengths_while_caches_grow() -> None:
    family = families.make("language_model")
    row = np.arange(40)
    words = np.random.default_rng(0).integers(4, families.VOCABULARY, (40, 12))
    prompts = np.where(np.arange(12) < 1 + row[:, None] % 12, words, 0)
    prompts[:, 0] = BOS
    for model in (family.model, FullPass(family.model)):
        plain, compacted, _ = pair(model, {"target": prompts}, Beam(2), row_limit=row % (LIMIT + 1))
        assert_same(plain, compacted)
        assert len(np.unique(plain.lengths[:, 0])) > 3


class Growing(ScriptedModel):
    """Notes the room that its carry has in every step."""

    def __init__(self, table: np.ndarray) -> None:
        super().__init__(table)
        self.room = tf.Variable(tf.zeros([0], tf.int32), shape=[None])

    def start(self, inputs, max_length, hypotheses=1, slots=None):
        context, carry, token = super().start(inputs, max_length, hypotheses)
        return DecodeState(
            context, carry | {"room": tf.zeros([max_length if slots is None else slots])}, token
        )

    def step(self, token, index, carry, context):
        self.room.assign(tf.concat([self.room, tf.shape(carry["room"])], 0))
        logits, next_carry = super().step(token, index, carry, context)
        return logits, next_carry | {"room": carry["room"]}

    def grow(self, carry, context, slots):
        return carry | {"room": tf.zeros([slots])}

    def reorder(self, carry, parent):
        return super().reorder({"state": carry["state"]}, parent) | {"room": carry["room"]}


@pytest.mark.parametrize("strategy", [Greedy(), Beam(3)], ids=["greedy", "beam"])
def test_there_is_no_more_room_than_twice_what_is_needed(strategy) -> None:
    model = Growing(tables(5, 9))

    def run(source: tf.Tensor, compact: bool) -> tf.Tensor:
        options = {"max_length": 21, "min_length": 21, "compact": compact}
        return search(model, {"source": source}, strategy, **options).lengths

    seen = []
    for compact in (False, True):
        model.room.assign([])
        tf.function(run, autograph=False).get_concrete_function(IDS, compact)(tf.range(5)[:, None])
        seen.append(model.room.numpy().tolist())
    assert seen == [[21] * 21, [2] * 2 + [4] * 2 + [8] * 4 + [16] * 8 + [21] * 5]


class Sharing(ScriptedModel):
    """Keeps in context and carry what belongs to no source."""

    def start(self, inputs, max_length, hypotheses=1):
        context, carry, token = super().start(inputs, max_length, hypotheses)
        slope = tf.linspace(-1.0, 1.0, self.table.shape[-1])[tf.newaxis]  # [1, V]
        return DecodeState(context | {"slope": slope}, carry | {"steps": tf.constant(0)}, token)

    def step(self, token, index, carry, context):
        logits, next_carry = super().step(token, index, carry, context)
        steps = carry["steps"] + 1
        return logits + context["slope"] * tf.cast(steps % 3, "float32"), next_carry | {"steps": steps}

    def reorder(self, carry, parent):
        return super().reorder({"state": carry["state"]}, parent) | {"steps": carry["steps"]}


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_what_all_sources_share_stays_whole(strategy) -> None:
    row = np.arange(20)
    options = {"row_limit": row % (LIMIT + 1), "seeds": row}
    plain, compacted, _ = pair(Sharing(tables(20, 9)), {"source": row[:, None]}, strategy, **options)
    assert_same(plain, compacted)


class Counting(ScriptedModel):
    """Counts the rows that its steps are given."""

    def __init__(self, table: np.ndarray) -> None:
        super().__init__(table)
        self.rows = tf.Variable(0, dtype=tf.int32)

    def step(self, token, index, carry, context):
        self.rows.assign_add(tf.shape(token)[0])
        return super().step(token, index, carry, context)


@pytest.mark.parametrize("strategy", [Greedy(), Beam(3)], ids=["greedy", "beam"])
def test_rows_that_are_done_cost_nothing(strategy) -> None:
    """Of 16 sources one ends in each step: from 16 to 8 to 4, which are few enough to go on."""
    count, row_limits = 16, np.arange(16) + 1
    model = Counting(tables(count, 9))
    source = tf.constant(np.arange(count)[:, None], tf.int32)
    seen = []
    for compact in (False, True):

        def run(source: tf.Tensor, limit: tf.Tensor, compact: bool = compact) -> tf.Tensor:
            options = {"max_length": count, "min_length": count, "row_limit": limit, "compact": compact}
            return search(model, {"source": source}, strategy, **options).lengths

        model.rows.assign(0)
        compiled = tf.function(run, [IDS, ROW], autograph=False).get_concrete_function()
        lengths = compiled(source, tf.constant(row_limits, tf.int32))
        assert lengths[:, 0].numpy().tolist() == row_limits.tolist()
        seen.append(int(model.rows.numpy()) // strategy.width)
    assert seen == [16 * 16, 16 * 8 + 8 * 4 + 4 * 4]


@pytest.mark.parametrize("strategy", [Greedy(), Beam(3)], ids=["greedy", "beam"])
def test_no_rows_and_rows_without_room(strategy) -> None:
    model = ScriptedModel(tables(6, 9))
    none = {"source": np.zeros((0, 1), "int32")}
    plain, compacted, _ = pair(model, none, strategy, row_limit=np.zeros(0))
    assert plain.tokens.shape == compacted.tokens.shape == (0, 1, LIMIT)
    blank = {"source": np.arange(6)[:, None]}
    plain, compacted, _ = pair(model, blank, strategy, row_limit=np.zeros(6))
    assert_same(plain, compacted)
    assert not compacted.lengths.any()


def test_where_shapes_are_fixed_nothing_is_left_out() -> None:
    """Eagerly and under XLA the option changes nothing."""
    model, source = ScriptedModel(tables(6, 9)), np.arange(6, dtype="int32")[:, None]

    def run(source: tf.Tensor) -> SearchResult:
        return search(model, {"source": source}, Beam(3), max_length=LIMIT, compact=True)

    eager = run(tf.constant(source))
    xla = tf.function(run, autograph=False, jit_compile=True)(tf.constant(source))
    np.testing.assert_array_equal(eager.tokens, xla.tokens)
