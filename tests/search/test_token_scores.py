"""Token scores: the model's own log-probabilities, which add up to the score."""

import numpy as np
import pytest
from families import STRATEGIES, Family
from scripted import EOS, ScriptedModel, run, tables

from keras_seq2seq.search import Beam, ForbiddenTokens, Greedy, NoRepeatedNgram, Sampling


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_they_are_those_of_one_full_pass(family: Family, strategy) -> None:
    result = family.whole(strategy)
    assert result.token_scores.dtype == "float32"
    assert result.token_scores.shape == result.tokens.shape
    for n in range(result.tokens.shape[1]):
        expected = family.log_probabilities({family.varying: family.rows}, result.tokens[:, n])
        np.testing.assert_allclose(result.token_scores[:, n], expected, atol=1e-5)


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_the_score_is_their_sum_under_the_documented_rule(family: Family, strategy) -> None:
    result = family.whole(strategy)
    exists = result.lengths > 0
    assert exists.any()
    total = result.token_scores.astype("float64").sum(-1)
    if isinstance(strategy, Beam):
        total /= np.maximum(result.lengths, 1) ** strategy.length_penalty
    np.testing.assert_allclose(result.scores[exists], total[exists], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["eager", "graph", "xla"])
@pytest.mark.parametrize("strategy", [Greedy(), Beam(4, n_best=4), Sampling(3, seed=1)], ids=repr)
def test_banned_ids_are_removed_before_normalising(strategy, mode: str) -> None:
    """Forbidden ids, a repeated token and an early end leave the others a larger share."""
    model, limit, least = ScriptedModel(tables(6, 11, seed=8)), 6, 3
    rules = [ForbiddenTokens((5, 8)), NoRepeatedNgram(1)]
    source = np.arange(6, dtype="int32")[:, None]
    options = {"max_length": limit, "min_length": least, "constraints": rules}
    result = run(mode, model, source, strategy, **options)
    assert result.finished.any()
    for row, (every, scores) in enumerate(zip(result.tokens, result.token_scores, strict=True)):
        for tokens, token_scores, length in zip(every, scores, result.lengths[row], strict=True):
            for i, token in enumerate(tokens[:length].tolist()):
                before = tokens[:i].tolist()
                chances = model.log_probabilities(row, before, least)
                chances[[5, 8, *before]] = -np.inf
                chances -= np.log(np.exp(chances).sum())
                assert token_scores[i] == pytest.approx(chances[token], abs=1e-5)
            assert not token_scores[length:].any()
            assert EOS not in tokens[: least - 1].tolist()
