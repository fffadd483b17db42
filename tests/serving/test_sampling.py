"""Sampling through `Translator` and `Generator`: what a sample depends on, and what it does not."""

import dataclasses
import random

import numpy as np
import pytest
import tensorflow as tf

import keras_seq2seq as ks
from keras_seq2seq.serving.seeds import mixed

STRATEGY = ks.search.Sampling(temperature=0.8, top_p=0.95, seed=11)


@pytest.fixture(scope="module")
def translator(model, english, chinese) -> ks.Translator:
    return ks.Translator(model, english, chinese, STRATEGY, length_factor=1.0)


@pytest.fixture(scope="module")
def generator(make_lm, english) -> ks.Generator:
    return ks.Generator(make_lm(english.vocabulary_size, seed=3), english, STRATEGY, max_new_tokens=12)


@pytest.fixture(params=["translator", "generator"])
def served(request):
    """Each of the two kinds."""
    return request.getfixturevalue(request.param)


def rows_of(served, texts, *arguments, **options):
    """Translate or generate."""
    return (served.translate if served.KIND == "Translator" else served.generate)(
        texts, *arguments, **options
    )


def tokens_of(rows) -> list:
    return [[each.tokens for each in row] for row in rows]


@pytest.mark.parametrize("batch_size", [7])
def test_batches_change_nothing(served, texts, batch_size):
    settings = dataclasses.replace(served.settings, batch_size=batch_size, tokens_per_batch=10**6)
    together = rows_of(served, texts)
    assert tokens_of(rows_of(served.with_settings(settings), texts)) == tokens_of(together)
    assert len({row[0].text for row in together}) > 20


def test_a_list_in_parts_is_the_list(served, texts):
    together = rows_of(served, texts[:12])
    parts = [*rows_of(served, texts[:5]), *rows_of(served, texts[5:12], offset=5)]
    assert tokens_of(parts) == tokens_of(together)
    with pytest.raises(ValueError, match="offset must be an integer of at least 0, received -1"):
        rows_of(served, texts[:2], offset=-1)


def test_the_same_seed_gives_the_same_whatever_else_is_drawn(served, texts, tmp_path):
    few = texts[:6]
    first = tokens_of(rows_of(served, few))
    tf.random.normal([3])
    random.random()
    np.random.random()
    assert tokens_of(rows_of(served, few)) == first
    served.save(tmp_path)
    assert tokens_of(rows_of(type(served).load(tmp_path), few)) == first


def test_equal_texts_differ_and_without_a_seed_calls_differ(served, texts):
    same = [texts[0]] * 8
    assert len({str(row) for row in tokens_of(rows_of(served, same))}) > 4
    free = served.with_strategy(dataclasses.replace(STRATEGY, seed=None))
    assert tokens_of(rows_of(free, same)) != tokens_of(rows_of(free, same))


def test_the_n_best_are_the_best_of_n_samples(served, texts):
    many = served.with_strategy(dataclasses.replace(STRATEGY, n=4))
    rows = rows_of(many, texts[:6], 4)
    assert tokens_of(rows_of(many, texts[:6], 2)) == [row[:2] for row in tokens_of(rows)]
    for row in rows:
        ranks = [(not each.finished, -each.score) for each in row]
        assert ranks == sorted(ranks)
    # The first of four samples is the only one of one.
    for (one,), row in zip(rows_of(served, texts[:6]), rows, strict=True):
        assert one.tokens in [each.tokens for each in row]
    with pytest.raises(ValueError, match="n_best must be between 1 and the 4"):
        rows_of(many, texts[0], 5)


@pytest.mark.parametrize("seed", [0, 5, -3, 2**40 + 1, 2**63 - 1, -(2**63)])
def test_a_seed_is_mixed_as_the_strategy_mixes_it(seed):
    expected = ks.search.Sampling(seed=seed).row_seeds(np.zeros(1, "int32"))
    assert np.array_equal(mixed(tf.constant([seed], tf.int64)), expected)


def test_sample_is_what_the_strategy_with_that_seed_gives_a_text_alone(served, texts):
    for text in texts[3:6]:
        assert served.sample(text, STRATEGY.seed).tokens == rows_of(served, text)[0][0].tokens


def test_sample_depends_on_text_and_seed_alone(served, texts):
    seeds = [7 * i - 3 for i in range(len(texts))]
    together = [each.tokens for each in served.sample(texts, seeds)]
    order = np.random.default_rng(1).permutation(len(texts))
    again = served.sample([texts[i] for i in order], [seeds[i] for i in order])
    assert [each.tokens for each in again] == [together[i] for i in order]
    assert len({str(each.tokens) for each in served.sample([texts[0]] * 8, range(8))}) > 4
    assert served.sample([], []) == []


def test_without_sampling_as_strategy_the_plain_one_draws(greedy, texts):
    assert greedy.sampler.strategy == ks.search.Sampling()
    assert len({each.text for each in greedy.sample([texts[0]] * 8, range(8))}) > 4


@pytest.mark.parametrize(
    ("seeds", "error", "message"),
    [
        ([1], ValueError, r"seeds must have one entry for each of the 2 texts, received 1\."),
        (3, TypeError, r"seeds must be a list of integers, received 3\."),
        ([1, 2.5], TypeError, r"seeds must be integers, received 2.5 at \[1\]"),
        ([2**63, 1], ValueError, r"seeds must be integers of 64 bits, received 9223372036854775808 at \[0\]"),
    ],
)
def test_seeds_that_are_none_are_refused(served, seeds, error, message):
    with pytest.raises(error, match=message):
        served.sample(["a", "b"], seeds)


def test_xla_draws_the_same(model, english, chinese, texts):
    settings = {"max_length": 12, "batch_size": 8}
    few = [*texts[:3], "", "a"]
    plain = ks.Translator(model, english, chinese, STRATEGY, **settings)
    compiled = ks.Translator(model, english, chinese, STRATEGY, **settings, jit_compile=True)
    assert tokens_of(compiled.translate(few)) == tokens_of(plain.translate(few))


def test_prefixes_are_continued(translator, texts, chinese):
    prefixes = ["你", "", "你好"]
    rows = translator.translate(texts[:3], prefixes=prefixes)
    assert [row[0].text.startswith(prefix) for row, prefix in zip(rows, prefixes, strict=True)] == [True] * 3
    assert tokens_of(rows[1:2]) == tokens_of(translator.translate(texts[:3]))[1:2]
