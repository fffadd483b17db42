"""Subword sampling: other pieces of the same text, in training batches alone, decided by the seed."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from keras_seq2seq.data import Batches, ParallelText
from keras_seq2seq.text import Bytes, SentencePiece, SubwordSampling

RNG = np.random.default_rng(5)
WORDS = ["the", "quick", "brown", "foxes", "jumping", "over", "lazy", "dogs", "她住在这"]
PAIRS = [tuple(" ".join(RNG.choice(WORDS, n)) for n in RNG.integers(2, 9, 2)) for _ in range(300)]
TEXT = ParallelText.from_pairs(PAIRS)  # type: ignore[arg-type]
SAMPLING = SubwordSampling(0.1)


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def tokenizer(request) -> SentencePiece:
    return SentencePiece.train(TEXT.sources(), TEXT.targets(), vocabulary_size=70, model_type=request.param)


def batches(tokenizer: SentencePiece, **options: Any) -> Batches:
    given: dict[str, Any] = {"tokens_per_batch": 1024, "seed": 3, "sampling": SAMPLING}
    return TEXT.batches(tokenizer, **given | options)


def arrays(dataset: tf.data.Dataset) -> list[list[np.ndarray]]:
    return [tf.nest.flatten(batch) for batch in dataset.as_numpy_iterator()]


def equal(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(
        np.array_equal(a, b) for x, y in zip(one, other, strict=True) for a, b in zip(x, y, strict=True)
    )


def test_epochs_differ_the_seed_repeats_them_and_the_text_stays(tokenizer):
    made = batches(tokenizer)
    first, second = arrays(made), arrays(made)
    again = batches(tokenizer)
    assert equal(first, arrays(again))
    assert equal(second[4:], arrays(again.rest(1, 4)))
    pieces: list[dict[Any, Any]] = []
    for epoch in (first, second):
        assert len(epoch) == made.cardinality()
        seen: dict[Any, Any] = {}
        for source, target, labels, weights in epoch:
            assert labels.shape == target.shape
            assert source.shape[0] * max(source.shape[1], target.shape[1]) <= 1024
            np.testing.assert_array_equal(weights > 0, labels > 0)
            np.testing.assert_allclose(weights.sum(), 1, rtol=1e-5)
            texts = [tokenizer.detokenize(ids).numpy() for ids in (source, labels)]
            for row, pair in enumerate(zip(*texts, strict=True)):
                seen.setdefault(pair, []).append((source[row].tobytes(), labels[row].tobytes()))
        assert sorted(pair for pair in seen for _ in seen[pair]) == sorted(
            tuple(side.encode() for side in pair) for pair in PAIRS
        )
        pieces.append(seen)
    drawn = other = 0
    for seen in pieces:
        for (text, _), rows in seen.items():
            usual = tokenizer.tokenize(text).numpy().tolist()
            for source, _ in rows:
                ids = np.frombuffer(source, np.int32)
                drawn += 1
                other += ids[ids > 3].tolist() != usual
    assert other / drawn > 0.3  # the rest was drawn as usual, or too long for its batch
    assert pieces[0] != pieces[1]


def test_nothing_else_is_sampled(tokenizer):
    before = tokenizer.tokenize(WORDS).to_list()
    plain = arrays(batches(tokenizer, sampling=None))
    arrays(batches(tokenizer))
    assert tokenizer.tokenize(WORDS).to_list() == before
    assert equal(plain, arrays(batches(tokenizer, sampling=None)))


def test_unknown_characters_stay_and_a_seed_decides(tokenizer):
    rows = tokenizer.tokenize(["the quick foxes", "the Ω quick"]).to_list()
    drawn = [tokenizer.sample(rows, SAMPLING, seed) for seed in (1, *range(1, 20))]
    assert drawn[0] == drawn[1]
    assert len({str(each) for each in drawn}) > 2
    assert all(each[1] == rows[1] for each in drawn)
    for each in drawn:
        assert tokenizer.detokenize(each[:1]).numpy() == b"the quick foxes"


def test_bad_arguments_get_one_sentence():
    with pytest.raises(ValueError, match="alpha must be above 0, got 0"):
        SubwordSampling(0)
    with pytest.raises(ValueError, match="nbest_size must be -1 or at least 2, got 1"):
        SubwordSampling(nbest_size=1)
    with pytest.raises(ValueError, match=r"sampling needs a SentencePiece tokenizer, got \[Bytes\(\), Bytes"):
        TEXT.batches(Bytes(), tokens_per_batch=1024, sampling=SAMPLING)
