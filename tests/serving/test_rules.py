"""Minimum lengths, forbidden tokens and n-grams as settings: kept, saved, exported, and named when wrong."""

import json

import c_loader
import pytest

import keras_seq2seq as ks


def build(greedy, **settings) -> ks.Translator:
    """Make a translator of the same parts."""
    parts = greedy.model, greedy.source_tokenizer, greedy.target_tokenizer
    return ks.Translator(*parts, settings.pop("strategy", greedy.strategy), length_factor=1.0, **settings)


def ngrams(tokens: list[int], size: int) -> list[tuple[int, ...]]:
    return [tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)]


@pytest.fixture(scope="module")
def ruled(greedy, texts) -> ks.Translator:
    """A translator with every rule, which forbids what the plain one writes most, by id and by text."""
    best = [row[0] for row in greedy.translate(texts)]
    counts: dict[int, int] = {}
    for token in (token for each in best for token in each.tokens if token > 3):
        counts[token] = counts.get(token, 0) + 1
    first, second = sorted(counts, key=lambda token: -counts[token])[:2]
    text = greedy.target_tokenizer.detokenize([[second]]).numpy()[0].decode()
    assert any(len(set(ngrams(each.tokens, 2))) < len(each.tokens) - 1 for each in best)
    forbidden = [first, text] if len(greedy.target_tokenizer.tokenize(text)) == 1 else [first, second]
    return build(greedy, min_length=6, min_length_factor=0.5, forbidden_tokens=forbidden, no_repeat_ngram=2)


@pytest.mark.parametrize("strategy", [ks.search.Greedy(), ks.search.Beam(3)], ids=["greedy", "beam"])
def test_the_rules_are_kept(greedy, ruled, texts, strategy):
    plain = [row[0].tokens for row in greedy.translate(texts)]
    assert any(tokens and len(tokens) < 6 for tokens in plain)
    lengths = [len(ids) + 1 for ids in greedy.source_tokenizer.tokenize(texts).to_list()]
    rows = ruled.with_strategy(strategy).translate(texts)
    for text, length, (best,) in zip(texts, lengths, rows, strict=True):
        if text.strip():
            assert len(best.tokens) >= max(6, length // 2)
        assert not set(ruled.settings.forbidden_tokens) & set(best.tokens)
        assert len(set(ngrams(best.tokens, 2))) == len(ngrams(best.tokens, 2))
    assert len(ruled.settings.forbidden_tokens) == 2


def test_a_prefix_counts_for_the_minimum(greedy, texts):
    short = next(row[0].tokens for row in greedy.translate(texts) if 2 < len(row[0].tokens) < 6)
    text = texts[[row[0].tokens for row in greedy.translate(texts)].index(short)]
    long = build(greedy, min_length=8).translate(text)[0][0].tokens
    again = build(greedy, min_length=8).translate(text, prefixes=[long[:4]])[0][0].tokens
    assert again == long
    assert len(long) >= 8


def test_the_rules_are_saved_and_exported(greedy, ruled, texts, tmp_path):
    ruled.save(tmp_path / "saved")
    loaded = ks.Translator.load(tmp_path / "saved")
    assert loaded.settings == ruled.settings
    path = ruled.export(tmp_path / "base", samples=texts[:2])
    with open(f"{path}/assets.extra/model.json", encoding="utf-8") as file:
        assert json.load(file)["settings"]["forbidden_tokens"] == list(ruled.settings.forbidden_tokens)
    answer = c_loader.run_signature(path, "serving_default", {"text": texts[:20]})
    assert answer["translation"] == ruled(texts[:20])
    assert "".join(loaded.stream(texts[0])) == ruled(texts[0])


def test_a_generator_keeps_them_too(make_lm, english, texts, tmp_path):
    settings = {"max_new_tokens": 16, "min_new_tokens": 5, "forbidden_tokens": [5, 1], "no_repeat_ngram": 2}
    model = make_lm(english.vocabulary_size, seed=3)
    generator = ks.Generator(model, english, **settings)
    plain = ks.Generator(model, english, max_new_tokens=16)
    assert any(len(row[0].tokens) < 5 for row in plain.generate(texts))
    for text, (best,) in zip(texts, generator.generate(texts), strict=True):
        whole = [*english.tokenize(text).numpy().tolist(), *best.tokens]
        assert len(best.tokens) >= 5
        assert not {1, 5} & set(best.tokens)
        own, before = ngrams(best.tokens, 2), ngrams(whole[: len(whole) - len(best.tokens)], 2)
        assert len(set(own)) == len(own)
        assert not set(own) & set(before)
    generator.save(tmp_path)
    assert ks.Generator.load(tmp_path).settings == generator.settings


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"min_length": 20, "max_length": 10}, ValueError, "must be at most max_length=10, received 20"),
        ({"min_length": -1}, ValueError, "min_length must be an integer of at least 0, received -1"),
        ({"min_length_factor": -0.5}, ValueError, "min_length_factor must be a finite number of at least 0"),
        ({"no_repeat_ngram": 1.5}, ValueError, "no_repeat_ngram must be an integer of at"),
        ({"forbidden_tokens": [3]}, ValueError, "must hold ids of 1 or 4 to 891, received 3"),
        ({"forbidden_tokens": [10**6]}, ValueError, "4 to 891, received 1000000"),
        ({"forbidden_tokens": ["你好吗他们"]}, ValueError, "one known token each, .* which is . tokens"),
        ({"forbidden_tokens": ["☃"]}, ValueError, "received '☃', which is"),
        ({"forbidden_tokens": "ab"}, TypeError, "forbidden_tokens must be a list of ids and"),
        ({"forbidden_tokens": [1.5]}, TypeError, r"must hold ids and strings, received 1\.5"),
        ({"min_lenght": 3}, TypeError, "unexpected keyword argument 'min_lenght'"),
    ],
)  # fmt: skip
def test_wrong_rules_are_named(greedy, settings, error, message):
    with pytest.raises(error, match=message):
        build(greedy, **settings)


def test_a_generators_minimum_is_below_its_maximum(make_lm, english):
    with pytest.raises(ValueError, match="min_new_tokens must be at most max_new_tokens=4, received 5"):
        ks.Generator(make_lm(english.vocabulary_size), english, max_new_tokens=4, min_new_tokens=5)
