"""Cleaning: what is dropped and why, counted, and never unless asked for."""

import logging
from collections import Counter
from typing import Any

import numpy as np
import pytest

from keras_seq2seq.data import ParallelText
from keras_seq2seq.text import Characters

GOOD = [(f"source {number}", f"target {number}") for number in range(163)]


def test_each_reason_is_counted_and_said(caplog):
    pairs = [
        *GOOD,
        *[("a" * 51, f"b{number}" * 20) for number in range(20)],  # too long
        *[("x", f"yz {number}") for number in range(5)],  # too short
        *[("abcd", f"{number}" * 20) for number in range(4)],  # ratio
        *[(f"same {number}", f"same {number}") for number in range(3)],
        *[(f"no {number}", f"nein {number}") for number in range(2)],  # the predicate
        GOOD[5],
        GOOD[5],  # duplicates
        (" \u2028", "b"),
    ]
    text = ParallelText.from_pairs(pairs)
    with caplog.at_level(logging.INFO):
        clean = text.clean(
            min_length=2, max_length=50, max_ratio=3, keep=lambda source, target: source[:3] != "no "
        )
    line = (
        "37 of 200 pairs dropped: 20 longer than 50 characters, 5 shorter than 2 characters, "
        "4 of a ratio above 3, 3 with identical sides, 2 rejected by the predicate, 2 duplicates, 1 blank"
    )
    assert caplog.messages == [line]
    assert str(clean.cleaning) == line
    assert clean.cleaning is not None
    assert (clean.cleaning.pairs, clean.cleaning.kept, len(clean)) == (200, 163, 163)
    for _ in range(2):
        assert list(clean.pairs()) == GOOD
    assert list(clean.sources()) == [source for source, _ in GOOD]
    assert len(list(clean.dataset())) == 163
    # What was given stays as it was, to translate or to evaluate with.
    assert list(text.pairs()) == pairs
    assert text.cleaning is None


def reference(pairs: list[tuple[str, str]], options: dict[str, Any]) -> list[tuple[str, str]]:
    kept: list[tuple[str, str]] = []
    for source, target in pairs:
        sizes = len(source), len(target)
        if (
            source.strip()
            and target.strip()
            and min(sizes) >= options["min_length"]
            and max(sizes) <= options["max_length"]
            and max(sizes) / min(sizes) <= options["max_ratio"]
            and (options["identical"] or source != target)
            and (options["duplicates"] or (source, target) not in kept)
        ):
            kept.append((source, target))
    return kept


def test_random_pairs_are_cleaned_as_a_plain_loop_does(tmp_path):
    rng = np.random.default_rng(4)
    pairs = [tuple("ab "[:k] * n for k, n in rng.integers([1, 0], [4, 7], [2, 2])) for _ in range(600)]
    for number in range(3):  # several files, so that each knows its own share of what is kept
        for side, name in enumerate("ab"):
            lines = [pair[side] for pair in pairs[number * 200 : number * 200 + 200]]
            (tmp_path / f"{name}{number}").write_text("".join(line + "\n" for line in lines))
    text = ParallelText(str(tmp_path / "a*"), str(tmp_path / "b*"))
    assert list(text.pairs()) == pairs
    for _ in range(20):
        options: dict[str, Any] = {
            "min_length": int(rng.integers(1, 4)),
            "max_length": int(rng.integers(4, 12)),
            "max_ratio": float(rng.uniform(1, 4)),
            "identical": bool(rng.integers(2)),
            "duplicates": bool(rng.integers(2)),
        }
        clean = text.clean(**options)
        assert list(clean.pairs()) == reference(pairs, options)
        assert clean.cleaning is not None
        assert clean.cleaning.kept == len(clean)
    for index in range(2):  # whole files: the first and the third, the second
        expected = pairs[:200] + pairs[400:] if index == 0 else pairs[200:400]
        assert list(text.shard(2, index, by="file").pairs()) == expected


def test_cleaning_twice_and_batches_of_what_is_left():
    letters = Characters.build("acegorstu 0123456789")
    text = ParallelText.from_pairs([*GOOD, ("", "x"), *GOOD]).clean().clean(max_length=9)
    assert len(text) == 100
    batches = text.batches(letters, tokens_per_batch=512)
    rows = sum(int((inputs["source"].numpy()[:, 0] > 0).sum()) for inputs, _, _ in batches)
    assert rows == 100
    assert str(text.report) == "0 of 100 pairs dropped"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_length": 0}, "min_length must be an integer of at least 1, got 0"),
        ({"max_length": 1.5}, "max_length must be an integer of at least 1, got 1.5"),
        ({"min_length": 5, "max_length": 4}, "max_length must be at least min_length=5, got 4"),
        ({"max_ratio": 0.5}, "max_ratio must be at least 1, got 0.5"),
        ({"max_ratio": float("nan")}, "max_ratio must be at least 1, got nan"),
        ({"min_length": 99}, "No pair is left: 163 of 163 pairs dropped: 163 shorter than 99 characters"),
    ],
)
def test_bad_arguments_get_one_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        ParallelText.from_pairs(GOOD).clean(**options)


def test_an_error_in_the_predicate_comes_through():
    with pytest.raises(ZeroDivisionError):
        ParallelText.from_pairs(GOOD).clean(keep=lambda *_: bool(1 // 0))


@pytest.mark.parametrize("count", [1, 3, 163])
def test_shards_by_line_are_a_partition(count):
    text = ParallelText.from_pairs(GOOD)
    shards = [text.shard(count, index) for index in range(count)]
    assert Counter(pair for shard in shards for pair in shard.pairs()) == Counter(GOOD)
    assert {len(shard) for shard in shards} <= {163 // count, -(-163 // count)}
    for index, shard in enumerate(shards):
        assert len(list(shard.pairs())) == len(shard)
        assert next(shard.pairs()) == GOOD[index]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": 0, "index": 0}, "count must be an integer of at least 1, got 0"),
        ({"count": 2, "index": 2}, "index must be an integer from 0 to 1, got 2"),
        ({"count": 2, "index": -1}, "index must be an integer from 0 to 1, got -1"),
        ({"count": 2, "index": 0, "by": "word"}, "by must be 'line' or 'file', got 'word'"),
        ({"count": 2, "index": 1, "by": "file"}, "count must leave no share empty, got 2 shares by file"),
        ({"count": 164, "index": 163}, "count must leave no share empty, got 164 shares by line"),
    ],
)
def test_bad_shards_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ParallelText.from_pairs(GOOD).shard(**arguments)
