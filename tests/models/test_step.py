"""Step by step equals the full pass: caches, masks, positions, prompts and hypotheses in one proof.

Legend: B sources, W hypotheses, P prompt length, T generated tokens.
"""

from collections.abc import Iterator

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from references import randomize

from keras_seq2seq import models
from keras_seq2seq.layers import (
    BahdanauAttention,
    LearnedPositions,
    LinearBias,
    LuongAttention,
    PositionalEmbedding,
    RelativeBias,
    RotaryPositions,
)
from keras_seq2seq.search import Greedy, SearchResult, search

B, W, T, V, D, H = 3, 4, 8, 17, 16, 4
SOURCE = np.array([[5, 9, 4, 3, 0, 0, 0], [3, 0, 0, 0, 0, 0, 0], [7, 7, 8, 12, 6, 16, 3]], "int32")
PROMPT_LENGTHS = [1, 4, 2]  # BOS in
POSITIONS = ["sinusoidal", "learned", "rotary", "alibi", "relative", None]
TOLERANCE = 1e-5


def make_seq2seq(positions: str | None, **options) -> models.Seq2Seq:
    options = {"num_layers": 2, "decoder_layers": 3, "dropout": 0.1, **options}
    model = models.transformer_seq2seq(
        V, model_dim=D, feed_forward_dim=20, num_heads=H, positions=positions, max_length=30, **options
    )
    randomize(model)
    return model


def make_language_model(positions: str | None, **block) -> models.LanguageModel:
    inside = {"rotary": RotaryPositions, "alibi": lambda: LinearBias(H), "relative": lambda: RelativeBias(H)}
    embeds = {"sinusoidal": "sinusoidal", "learned": LearnedPositions(30)}
    decoder = models.TransformerDecoder(
        PositionalEmbedding(V, D, embeds.get(positions or "")),
        2,
        cross_attention=False,
        positions=inside[positions]() if positions in inside else None,
        block={"num_heads": H, "feed_forward_dim": 20, **block},
    )
    model = models.LanguageModel(decoder)
    randomize(model)
    return model


def prompts(rng: np.random.Generator, lengths: list[int] = PROMPT_LENGTHS) -> np.ndarray:
    """Draw prompts `[B, P]` of unequal length, BOS first, right-padded."""
    rows = rng.integers(4, V, (B, max(lengths))).astype("int32")
    rows[:, 0] = 2
    for row, length in zip(rows, lengths, strict=True):
        row[length:] = 0
    return rows


def parents(rng: np.random.Generator, steps: int, width: int) -> Iterator[np.ndarray | None]:
    """Draw which hypothesis each one continues: none at first, then any, repeats among them."""
    for step in range(steps):
        yield None if step % 3 == 0 else rng.integers(0, width, (B, width)).astype("int32")


def compare_step_with_full_pass(
    model, rng, lengths: list[int], width: int, steps: int, reorder: bool
) -> None:
    """Decode random tokens for `width` hypotheses a source, permuted at random, and replay each one whole.

    After each step every hypothesis' logits must equal the last ones of a full pass over its own history.
    """
    inputs = {"source": SOURCE} if isinstance(model, models.Seq2Seq) else {}
    start = prompts(rng, lengths)
    state = model.start({**inputs, "target": start}, steps, width)
    np.testing.assert_array_equal(state.token, [row[n - 1] for row, n in zip(start, lengths, strict=True)])
    history = [[list(row[:n]) for _ in range(width)] for row, n in zip(start, lengths, strict=True)]
    token, carry = ops.repeat(state.token, width), state.carry
    for index, parent in enumerate(parents(rng, steps, width)):
        logits, carry = model.step(token, tf.constant(index), carry, state.context)
        assert logits.shape == (B * width, V)
        expected = full_pass(model, inputs, history, width)
        scale = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(logits, expected, atol=TOLERANCE * scale, rtol=0)
        if reorder and parent is not None:
            carry = model.reorder(carry, parent)
            history = [[list(history[b][w]) for w in parent[b]] for b in range(B)]
        token = rng.integers(1, V, B * width).astype("int32")
        for row, new in enumerate(token):
            history[row // width][row % width].append(int(new))


def full_pass(model, inputs: dict, history: list, width: int) -> np.ndarray:
    rows = [tokens for source in history for tokens in source]
    target = np.zeros((len(rows), max(map(len, rows))), "int32")
    for row, tokens in zip(target, rows, strict=True):
        row[: len(tokens)] = tokens
    repeated = {name: np.repeat(value, width, axis=0) for name, value in inputs.items()}
    logits = np.asarray(model({**repeated, "target": target}))
    return logits[np.arange(len(rows)), [len(tokens) - 1 for tokens in rows]]


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("positions", POSITIONS)
def test_seq2seq_step_equals_full_pass(rng, positions: str | None, placement: str) -> None:
    """With unequal prompts, several hypotheses and random permutations of them, all at once."""
    groups = 2 if placement == "pre" else None
    model = make_seq2seq(positions, placement=placement, num_key_value_heads=groups)
    compare_step_with_full_pass(model, rng, PROMPT_LENGTHS, W, T, reorder=True)


@pytest.mark.parametrize("groups", [None, 1])
@pytest.mark.parametrize("positions", POSITIONS)
def test_language_model_step_equals_full_pass(rng, positions: str | None, groups: int | None) -> None:
    block: dict = {"num_key_value_heads": groups}
    if groups:
        block |= {"normalization": "rms", "activation": "swiglu", "use_bias": False, "key_dim": 6}
    model = make_language_model(positions, **block)
    compare_step_with_full_pass(model, rng, PROMPT_LENGTHS, W, T, reorder=True)


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
@pytest.mark.parametrize(
    "attention",
    [None, BahdanauAttention(7), LuongAttention("general"), LuongAttention("dot"), LuongAttention("concat")],
    ids=["none", "bahdanau", "general", "dot", "concat"],
)
def test_recurrent_step_equals_full_pass(rng, attention, cell: str) -> None:
    """States at the end of unequal prompts, and input feeding, move with the hypotheses."""
    if attention is not None:
        attention = type(attention).from_config(attention.get_config())
    dot = getattr(attention, "score_name", None) == "dot"  # needs memory and state of one size
    model = models.rnn_seq2seq(
        V,
        cell=cell,
        units=6,
        decoder_units=12 if dot else 8,
        embedding_dim=5,
        attention=attention,
        input_feeding=False if cell == "gru" and attention is not None else None,
    )
    randomize(model)
    compare_step_with_full_pass(model, rng, PROMPT_LENGTHS, W, 5, reorder=True)


@pytest.mark.parametrize("lengths", [[1, 1, 1], [5, 5, 5]])
@pytest.mark.parametrize("width", [1, 3])
def test_step_equals_full_pass_without_reordering(rng, lengths: list[int], width: int) -> None:
    for model in (make_seq2seq("relative"), make_language_model("alibi"), make_language_model("rotary")):
        compare_step_with_full_pass(model, rng, lengths, width, 4, reorder=False)


@pytest.mark.parametrize("tie", [True, False])
@pytest.mark.parametrize("share", [True, False])
def test_variants_of_embeddings_step_like_they_run(rng, tie: bool, share: bool) -> None:
    model = make_seq2seq("alibi", tie_embeddings=tie, share_embeddings=share)
    matrices = [v for v in model.variables if V in v.shape]
    assert len(matrices) == 3 - share - tie
    compare_step_with_full_pass(model, rng, PROMPT_LENGTHS, 2, 3, reorder=True)


@pytest.mark.parametrize("positions", ["rotary", "learned"])
def test_step_in_graph_and_xla(rng, positions: str) -> None:
    """One compiled step with its index as a tensor equals the eager one, over prompts of any length."""
    model = make_seq2seq(positions, num_layers=1, decoder_layers=2)
    inputs = {"source": tf.constant(SOURCE), "target": tf.constant(prompts(rng))}

    def two_steps(inputs: dict) -> tf.Tensor:
        state = model.start(inputs, 5, W)
        token = ops.repeat(state.token, W)
        logits, carry = model.step(token, tf.constant(0), state.carry, state.context)
        carry = model.reorder(carry, tf.reverse(tf.broadcast_to(tf.range(W), (B, W)), [1]))
        token = tf.argmax(logits, axis=-1, output_type=tf.int32)
        return model.step(token, tf.constant(1), carry, state.context)[0]

    eager = two_steps(inputs)
    unknown = [tf.TensorSpec([None, None], tf.int32)] * 2
    signature = [dict(zip(("source", "target"), unknown, strict=True))]
    graph = tf.function(two_steps, autograph=False, input_signature=signature)
    np.testing.assert_allclose(graph(inputs), eager, atol=1e-4)
    np.testing.assert_allclose(
        tf.function(two_steps, autograph=False, jit_compile=True)(inputs), eager, atol=1e-4
    )


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.usefixtures("restore_dtype_policy")
def test_step_is_near_the_full_pass_in_half_precision(rng, policy: str) -> None:
    keras.config.set_dtype_policy(policy)
    model = make_seq2seq("rotary")
    start = prompts(rng)
    state = model.start({"source": SOURCE, "target": start}, 4, 1)
    assert {str(leaf.dtype) for leaf in keras.tree.flatten(state.carry["caches"])} == {
        f"<dtype: '{policy.removeprefix('mixed_')}'>"
    }
    logits, _ = model.step(state.token, tf.constant(0), state.carry, state.context)
    assert logits.dtype == tf.float32
    full = np.asarray(model({"source": SOURCE, "target": start}))
    expected = full[np.arange(B), np.array(PROMPT_LENGTHS) - 1]
    scale = np.abs(expected).max()
    np.testing.assert_allclose(logits, expected, atol=scale * (0.01 if "bfloat" not in policy else 0.06))


def test_learned_positions_limit_is_refused_at_the_start() -> None:
    """Prompts of P and L new tokens need P - 1 + L positions; one more is an error that names both."""
    source = {"source": SOURCE}
    for model, inputs in ((make_seq2seq("learned"), source), (make_language_model("learned"), {})):
        for length in (1, 5):
            target = np.full((B, length), 2, "int32")
            model.start({**inputs, "target": target}, 31 - length)
            with pytest.raises(
                ValueError, match=rf"max_length=30.*max_length={32 - length}.*length {length}"
            ):
                model.start({**inputs, "target": target}, 32 - length)
    with pytest.raises(ValueError, match=r"30.*31"):
        make_seq2seq("learned")({"source": np.ones((1, 31), "int32"), "target": np.ones((1, 2), "int32")})
    make_seq2seq("sinusoidal").start({"source": SOURCE, "target": np.full((B, 1), 2, "int32")}, 500)


def test_rows_that_are_done_stay_inside_learned_positions() -> None:
    """Prompts of unequal length: each row may use all 30 positions, and waits for the others at the end."""
    model = make_language_model("learned")
    target = np.array([[2] + [5] * 24, [2] + [0] * 24], "int32")
    row_limit = np.array([6, 30], "int32")

    @tf.function(
        input_signature=[tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.int32)],
        autograph=False,
    )
    def run(target: tf.Tensor, row_limit: tf.Tensor) -> SearchResult:
        options = {"max_length": 30, "min_length": 30, "row_limit": row_limit}
        return search(model, {"target": target}, Greedy(), **options)

    both = run(target, row_limit)
    np.testing.assert_array_equal(both.lengths[:, 0], row_limit)
    alone = run(target[1:, :1], row_limit[1:])  # the second row, whose prompt is BOS
    np.testing.assert_array_equal(both.tokens[1], alone.tokens[0])
