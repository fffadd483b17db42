"""Scores against sacrebleu's own answers, against hand counts, and against a plain edit distance."""

import random
import re

import numpy as np
import pytest
import sacrebleu

from keras_seq2seq import evaluate

# The example of sacrebleu's README.
HYPOTHESES = ["The dog bit the man.", "It wasn't surprising.", "The man had just bitten him."]
FIRST = ["The dog bit the man.", "It was not unexpected.", "The man bit him first."]
SECOND = ["The dog had bit the man.", "No one was surprised.", "The man had bitten the dog."]
BOTH = [list(pair) for pair in zip(FIRST, SECOND, strict=True)]


def test_bleu_of_the_sacrebleu_manual():
    result = evaluate.scores(HYPOTHESES, BOTH)
    assert result.bleu.value == pytest.approx(48.53, abs=0.005)
    assert result.chrf.value == pytest.approx(59.73, abs=0.005)


def test_scores_print_as_one_line():
    line = str(evaluate.scores(["我喜欢猫。"], ["我喜欢狗。"], tokenize="zh"))
    signature = f"(nrefs:1|case:mixed|eff:no|tok:zh|smooth:exp|version:{sacrebleu.__version__})"
    assert re.fullmatch(rf"BLEU \d+\.\d\d  chrF \d+\.\d\d  {re.escape(signature)}", line)


@pytest.mark.parametrize("tokenize", ["13a", "zh", "none", "char"])
def test_bleu_equals_sacrebleu(tokenize):
    metric = sacrebleu.BLEU(tokenize=tokenize)
    expected = metric.corpus_score(HYPOTHESES, [FIRST, SECOND])
    result = evaluate.bleu(HYPOTHESES, BOTH, tokenize=tokenize)
    assert (result.value, result.signature) == (expected.score, str(metric.get_signature()))
    assert f"tok:{tokenize}" in result.signature


def test_chinese_is_split_into_characters():
    # Five tokens (the stop is one), the fourth differs: precisions 4/5, 2/4, 1/3, smoothed 1/4.
    expected = 100 * (4 / 5 * 2 / 4 * 1 / 3 * 1 / 4) ** 0.25
    assert evaluate.bleu(["我喜欢猫。"], ["我喜欢狗。"], tokenize="zh").value == pytest.approx(expected)


def test_chrf_plus_plus():
    expected = sacrebleu.CHRF(word_order=2).corpus_score(HYPOTHESES, [FIRST]).score
    result = evaluate.chrf(HYPOTHESES, FIRST, word_order=2)
    assert (result.name, result.value) == ("chrF++", expected)


def test_ter():
    # One word of four replaced.
    assert evaluate.ter(["It was not unexpected."], ["It was not surprising."]).value == 25.0
    # A moved phrase is one edit.
    assert evaluate.ter(["c d a b"], ["a b c d"]).value == 25.0
    assert evaluate.ter(["我喜欢猫"], ["我喜欢狗"], normalized=True, asian_support=True).value == 25.0


def test_references_may_vary_in_number():
    result = evaluate.bleu(HYPOTHESES, [FIRST[0], BOTH[1], [SECOND[2]]])
    streams: list = [[FIRST[0], FIRST[1], SECOND[2]], [None, SECOND[1], None]]
    assert result.value == sacrebleu.BLEU().corpus_score(HYPOTHESES, streams).score
    assert "nrefs:var" in result.signature
    assert evaluate.exact_match(HYPOTHESES, [FIRST[0], BOTH[1], [SECOND[2]]]).signature.startswith(
        "nrefs:var"
    )


def test_a_perfect_corpus():
    result = evaluate.scores(FIRST, BOTH)
    assert result.bleu.value == pytest.approx(100)
    assert result.chrf.value == pytest.approx(100)
    assert evaluate.ter(FIRST, BOTH).value == 0
    assert evaluate.exact_match(FIRST, BOTH).value == 100
    assert evaluate.error_rate(FIRST, BOTH).value == 0


def test_empty_outputs_score_zero():
    assert evaluate.bleu(["", ""], ["a b c d", "e f g h"]).value == 0
    assert evaluate.error_rate(["", ""], ["a b c d", "e f g h"]).value == 100


def test_exact_match_takes_any_reference():
    result = evaluate.exact_match(["a b ", "c", "d"], [["x", "a b"], "c", "D"])
    assert result.value == pytest.approx(100 * 2 / 3)
    assert str(result) == "exact match 66.67  (nrefs:var|case:mixed)"


def test_error_rate_takes_the_nearest_reference():
    # 1 edit of 4 (the longer of two equally near ones), then 0 of 2.
    hypotheses = ["T AH M EY", "R IY"]
    references = [["T AH M AA", "T AH M"], ["R EH D", "R IY"]]
    assert evaluate.error_rate(hypotheses, references).value == pytest.approx(100 * 1 / 6)


def test_error_rate_in_characters():
    assert evaluate.error_rate(["kitten"], ["sitting"], unit="character").value == pytest.approx(100 * 3 / 7)
    assert evaluate.error_rate([""], [""], unit="character").value == 0
    assert evaluate.error_rate(["a"], [""], unit="character").value == 100


def plain_edit_distance(first, second):
    if not first or not second:
        return len(first) + len(second)
    return min(
        plain_edit_distance(first[1:], second) + 1,
        plain_edit_distance(first, second[1:]) + 1,
        plain_edit_distance(first[1:], second[1:]) + (first[0] != second[0]),
    )


def test_edit_distance():
    assert evaluate.edit_distance("kitten", "sitting") == 3
    assert evaluate.edit_distance([1, 2, 3], [1, 3]) == 1
    for _ in range(200):
        first, second = ("".join(random.choices("abc", k=random.randrange(6))) for _ in range(2))
        assert evaluate.edit_distance(first, second) == plain_edit_distance(first, second)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: evaluate.bleu(["a"], ["a", "b"]), "`hypotheses` has 1 entries and `references` 2"),
        (lambda: evaluate.bleu([], []), "`hypotheses` is empty"),
        (lambda: evaluate.bleu("a", ["a"]), "`hypotheses` is the string 'a'"),
        (lambda: evaluate.bleu(["a"], [[]]), "`references[0]` is []"),
        (lambda: evaluate.chrf([None], ["a"]), "`hypotheses[0]` is None"),  # type: ignore[list-item]
        (lambda: evaluate.bleu(["a"], ["a"], tokenize="moses"), "`tokenize` is 'moses'"),
        (lambda: evaluate.error_rate(["a"], ["a"], unit="byte"), "`unit` is 'byte'"),
        (lambda: evaluate.ter(["a"], ["a"], asian_support=True), "`asian_support` is True"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_bleu_by_length_bins_each_sentence_once(rng: np.random.Generator) -> None:
    lengths = rng.integers(3, 30, 400).tolist()
    references = [" ".join(rng.choice(list("abcdefgh"), n)) for n in lengths]
    # Long sentences are wrong in their second half.
    hypotheses = [r if n < 12 else r[: len(r) // 2] + " x" * (n // 2) for r, n in zip(references, lengths)]  # noqa: B905
    bins = evaluate.bleu_by_length(hypotheses, references, lengths, bins=5, samples=200)
    assert sum(part.count for part in bins) == 400
    assert 3 <= len(bins) <= 5
    assert min(part.count for part in bins) >= 50
    means = [part.mean_length for part in bins]
    assert means == sorted(means)
    assert bins[0].score.value == pytest.approx(100)
    assert bins[-1].score.value < 80
    for part in bins:
        assert part.low <= part.score.value + 0.5
        assert part.high >= part.score.value - 0.5
    assert 0 < bins[-1].high - bins[-1].low < 20
    # The last bin is the BLEU of its own sentences.
    longest = sorted(range(400), key=lengths.__getitem__)[-bins[-1].count :]
    alone = evaluate.bleu([hypotheses[i] for i in longest], [references[i] for i in longest])
    assert bins[-1].score == alone


def test_bleu_by_length_wants_one_length_for_each() -> None:
    with pytest.raises(ValueError, match="`lengths` has 1 entries: expected 2"):
        evaluate.bleu_by_length(["a", "b"], ["a", "b"], [1])
