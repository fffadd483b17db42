"""The coverage penalty, judged by equation 14 of Wu et al. 2016 in NumPy."""

from dataclasses import replace

import families
import numpy as np
import pytest
from families import LIMIT, Family
from scripted import BOS, EOS, PAD, ScriptedModel, run, tables

from keras_seq2seq.models import FullPass, rnn_seq2seq
from keras_seq2seq.search import Beam, SearchResult, search

PLAIN = Beam(5, n_best=5, length_penalty=0.6, penalty="gnmt")
BETA = 2.5


@pytest.fixture(scope="module", params=["rnn", "encoder_decoder"])
def family(request: pytest.FixtureRequest) -> Family:
    return families.make(request.param)


def penalty(family: Family, source: np.ndarray, prompt: np.ndarray, tokens: np.ndarray) -> float:
    """Compute sum_j log(min(sum_i a_ij, 1)) of one hypothesis, alone and without pads."""
    source, target = source[source != PAD], np.concatenate([prompt[prompt != PAD], tokens])
    weights = family.align({"source": source[None], "target": target[None, :-1]})[0]
    assert weights.shape[1:] == (len(target) - 1, len(source))
    return float(np.log(np.minimum(weights.mean(0).sum(0), 1.0)).sum())


def reranked(family: Family, inputs: dict, plain: SearchResult, beta: float, n_best: int) -> list:
    """Rank the hypotheses of a beam without the penalty by hand: tokens and scores for each row."""
    prompts = inputs.get("target", np.full((len(plain.tokens), 1), BOS))
    rows = []
    for b, source in enumerate(inputs["source"]):
        scored = []
        for tokens, length, score, finished, _ in zip(*(part[b] for part in plain), strict=True):
            ids = tokens[:length]
            gained = beta * penalty(family, source, prompts[b], ids) if length else 0.0
            scored.append((not finished, -(score + gained), ids.tolist()))
        rows.append(sorted(scored, key=lambda each: each[:2])[:n_best])
    return rows


def assert_ranked(result: SearchResult, expected: list) -> None:
    for b, row in enumerate(expected):
        ours = [tokens[:n].tolist() for tokens, n in zip(result.tokens[b], result.lengths[b], strict=True)]
        assert ours == [ids for *_, ids in row]
        np.testing.assert_allclose(result.scores[b], [-score for _, score, _ in row], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n_best", [1, 5])
def test_it_ranks_the_hypotheses_of_the_beam_anew(family: Family, n_best: int) -> None:
    """The best of all W, and not of the N best without it."""
    inputs = {"source": family.rows[:7]}
    plain = family.decode(inputs, PLAIN)
    result = family.decode(inputs, replace(PLAIN, coverage_penalty=BETA, n_best=n_best))
    assert result.tokens.shape == (7, n_best, LIMIT)
    expected = reranked(family, inputs, plain, BETA, n_best)
    assert_ranked(result, expected)
    if n_best == 1:
        best = [
            tokens[:n].tolist() for tokens, n in zip(plain.tokens[:, 0], plain.lengths[:, 0], strict=True)
        ]
        assert best != [row[0][-1] for row in expected], "it must change something to be judged"


def test_a_forced_prefix_covers_too(family: Family) -> None:
    """Prefixes of 0 to 4 tokens in one batch."""
    source = family.rows[7:12]
    target = np.zeros((5, 5), "int32")
    for row, prompt in enumerate(target):
        length = row % 5
        prompt[: length + 1] = [BOS, *np.random.default_rng(row).integers(EOS + 1, 20, length)]
    inputs = {"source": source, "target": target}
    result = family.decode(inputs, replace(PLAIN, coverage_penalty=BETA))
    assert_ranked(result, reranked(family, inputs, family.decode(inputs, PLAIN), BETA, 5))


def test_the_token_scores_stay_those_of_the_model(family: Family) -> None:
    inputs = {"source": family.rows[:7]}
    result = family.decode(inputs, replace(PLAIN, coverage_penalty=BETA))
    for n in range(5):
        expected = family.log_probabilities(inputs, result.tokens[:, n])
        np.testing.assert_allclose(result.token_scores[:, n], expected, atol=1e-5)


def test_rows_do_not_depend_on_each_other_and_fillers_stay_empty(family: Family) -> None:
    """A row of pads alone, as a server adds, comes out with score 0 and changes no other row."""
    strategy = replace(PLAIN, coverage_penalty=BETA)
    source = np.concatenate([family.rows[:4], np.zeros((1, 9), "int32")])
    limit = np.array([LIMIT] * 4 + [0], "int32")
    together = search(family.model, {"source": source}, strategy, max_length=LIMIT, row_limit=limit)
    assert not np.asarray(together.lengths)[4].any()
    assert float(together.scores[4, 0]) == 0.0
    assert np.isfinite(np.asarray(together.scores)).all()
    for row in range(4):
        alone = family.decode({"source": source[row : row + 1, : (source[row] != PAD).sum()]}, strategy)
        np.testing.assert_array_equal(alone.tokens[0], np.asarray(together.tokens)[row])
        np.testing.assert_allclose(alone.scores[0], np.asarray(together.scores)[row], rtol=1e-4, atol=1e-4)


def test_a_graph_with_it_can_be_served(family: Family) -> None:
    """Nothing that a server without Python or XLA lacks."""
    strategy = replace(PLAIN, coverage_penalty=BETA)
    family.decode({"source": family.rows[:2]}, strategy)
    (function,) = [f for key, f in family.compiled.items() if key[:2] == (strategy, ("source",))]
    definition = function.graph.as_graph_def()
    kinds = {node.op for node in definition.node}
    kinds |= {node.op for each in definition.library.function for node in each.node_def}
    assert not [kind for kind in kinds if "Xla" in kind or "PyFunc" in kind]


def test_a_model_that_cannot_is_named_before_the_search() -> None:
    strategy = Beam(3, coverage_penalty=0.2)
    blind = rnn_seq2seq(11, attention=None, units=4, encoder_layers=1, decoder_layers=1)
    lm = families.make("language_model").model
    source = np.array([[5, 3]], "int32")
    for model, kind in ((blind, "Seq2Seq"), (lm, "LanguageModel"), (FullPass(lm), "FullPass")):
        with pytest.raises(ValueError, match=f"coverage_penalty must be 0 .* received a {kind}"):
            search(model, {"source": source}, strategy, max_length=3)
    with pytest.raises(ValueError, match=r"coverage_penalty.*ScriptedModel"):
        run("graph", ScriptedModel(tables(1, 6)), source[:, :1], strategy, max_length=3)


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), "0.2", None, True])
def test_bad_values_are_named(value) -> None:
    with pytest.raises(ValueError, match="coverage_penalty must be a finite number of at least 0, received"):
        Beam(3, coverage_penalty=value)
