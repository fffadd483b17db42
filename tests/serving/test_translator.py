"""`Translator` in Python: shapes, order, independence, limits, prefixes and scores."""

import functools
import re

import keras
import numpy as np
import pytest

import keras_seq2seq as ks
from keras_seq2seq.serving.decoding import Decoding


@pytest.fixture(params=["greedy", "beam"])
def translator(request) -> ks.Translator:
    """Each of the two translators."""
    return request.getfixturevalue(request.param)


def scores_of(results) -> np.ndarray:
    return np.array([row[0].score for row in results])


def test_a_string_gives_a_string_and_a_list_a_list(translator, texts):
    assert isinstance(translator(texts[0]), str)
    assert translator([texts[0]]) == [translator(texts[0])]
    assert translator(tuple(texts[:3])) == translator(texts[:3]) == [translator(text) for text in texts[:3]]
    assert translator([]) == []
    assert translator.translate([]) == []
    assert translator.translate(texts[0]) == translator.translate([texts[0]])


def test_outputs_vary_and_some_are_cut(translator, texts):
    """Without this the tests below would prove little."""
    best = [row[0] for row in translator.translate(texts)]
    assert len({each.text for each in best}) > 20
    assert 0.2 < np.mean([each.finished for each in best]) < 0.9
    assert all(each.finished == (each.tokens[-1:] == [3]) for each in best if each.tokens)


@pytest.mark.parametrize("batch_size", [1, 7])
def test_results_do_not_depend_on_the_batch(translator, texts, batch_size):
    together = translator.translate(texts)
    settings = translator.settings.__class__(
        **{**vars(translator.settings), "batch_size": batch_size, "tokens_per_batch": 10**6}
    )
    apart = translator.with_settings(settings).translate(texts)
    assert [row[0].tokens for row in apart] == [row[0].tokens for row in together]
    assert np.allclose(scores_of(apart), scores_of(together), rtol=1e-6, atol=1e-4)


def test_results_do_not_depend_on_the_neighbour(translator, texts):
    long = max(texts, key=len)
    alone = translator.translate(texts[:5])
    both = translator.translate([long, *texts[:5]])[1:]
    assert [row[0].tokens for row in both] == [row[0].tokens for row in alone]


def test_blank_text_gives_blank_text_without_the_model(translator):
    for row in translator.translate(["", " \t", "\u3000"]):
        assert row == [("", 0.0, [], None, True, [], None, None)]


def test_the_n_best_are_sorted_distinct_and_as_many_as_asked_for(beam, texts):
    for text, row in zip(texts, beam.translate(texts, n_best=4), strict=True):
        assert len(row) == 4
        if text and not text.isspace():
            assert len({tuple(each.tokens) for each in row}) == 4
        ranks = [(not each.finished, -each.score) for each in row]
        assert ranks == sorted(ranks)
        assert all(each.tokens.count(3) <= 1 and not {0, 2} & set(each.tokens) for each in row)
    assert [row[:2] for row in beam.translate(texts[:5], n_best=4)] == beam.translate(texts[:5], n_best=2)


@pytest.mark.parametrize("n_best", [0, 5, -1])
def test_n_best_out_of_range_is_refused(beam, n_best):
    with pytest.raises(ValueError, match=f"n_best must be between 1 and the 4 .* received {n_best}"):
        beam.translate(["a"], n_best=n_best)


@pytest.mark.parametrize("n_best", [1.5, "2", None, True])
def test_n_best_that_is_no_integer_is_refused(beam, tmp_path, n_best):
    with pytest.raises(ValueError, match=f"n_best must be an integer, received {n_best!r}"):
        beam.translate(["a"], n_best=n_best)
    if n_best is not None:
        with pytest.raises(ValueError, match=f"n_best must be an integer, received {n_best!r}"):
            beam.export(tmp_path, n_best=n_best)


def test_a_beam_of_one_is_greedy(model, english, chinese, greedy, texts):
    beam = ks.search.Beam(1, length_penalty=0.0)
    one = ks.Translator(model, english, chinese, beam, length_factor=1.0).translate(texts)
    best = greedy.translate(texts)
    assert [row[0].tokens for row in one] == [row[0].tokens for row in best]
    assert np.allclose(scores_of(one), scores_of(best), atol=1e-4)


@pytest.fixture
def tracings(monkeypatch) -> list[str]:
    """Grow by one whenever a search is traced."""
    traced: list[str] = []
    decode = Decoding.decode

    @functools.wraps(decode)
    def counted(*ids):
        traced.append("decode")
        return decode(*ids)

    monkeypatch.setattr(Decoding, "decode", counted)
    return traced


STRATEGIES = [ks.search.Greedy(), ks.search.Beam(2), ks.search.Sampling(seed=1)]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=["greedy", "beam", "sampling"])
def test_one_graph_serves_all_shapes(model, english, chinese, texts, tracings, strategy):
    """Texts of all lengths, alone and together; a second pass traces nothing, nor does a new text."""
    translator = ks.Translator(model, english, chinese, strategy, max_length=8)
    for _ in range(2):
        for text in texts[:4]:
            translator(text)
        translator(texts)
        assert len(tracings) == 1
    for _ in range(2):
        translator(texts[:3], prefixes=["", "你", [7, 8, 9]])
        assert len(tracings) == 1 + (not isinstance(strategy, ks.search.Sampling))


def test_length_limits_are_relative_to_the_text(model, english, chinese, texts):
    settings = {"length_factor": 1.0, "length_offset": 2, "max_length": 12}
    translator = ks.Translator(model, english, chinese, ks.search.Greedy(), **settings)
    lengths = [len(ids) + 1 for ids in english.tokenize(texts).to_list()]
    for text, length, (best,) in zip(texts, lengths, translator.translate(texts), strict=True):
        limit = min(length + 2, 12) if text.strip() else 0
        assert len(best.tokens) <= limit
        assert best.finished or len(best.tokens) == limit


def test_a_very_long_text_is_cut_with_a_warning_and_gives_one_result(model, english, chinese):
    settings = {"max_source_length": 50, "max_length": 20}
    translator = ks.Translator(model, english, chinese, ks.search.Greedy(), **settings)
    long = "it was " * 2500
    with pytest.warns(UserWarning, match="1 of 2 texts had more than 50 tokens with EOS and were cut there"):
        first, second = translator([long, "It was."])
    with pytest.warns(UserWarning, match="1 of 1 texts"):
        assert translator(long) == first
    assert second == translator("It was.")


def test_a_text_at_the_limit_is_not_cut(model, english, chinese, recwarn):
    length = len(english.tokenize("How are you?")) + 1
    ks.Translator(model, english, chinese, ks.search.Greedy(), max_source_length=length)("How are you?")
    assert not recwarn


def test_prefixes_continue_as_if_they_had_been_generated(greedy, texts):
    text = texts[0]
    tokens = greedy.translate(text)[0][0].tokens
    assert tokens[-1] == 3
    prefixes = [tokens[:k] for k in range(len(tokens))]
    rows = greedy.translate([text] * len(prefixes), prefixes=prefixes)
    assert [row[0].tokens for row in rows] == [tokens] * len(prefixes)
    alone = [greedy.translate(text, prefixes=[prefix])[0][0] for prefix in prefixes]
    assert [row[0].tokens for row in rows] == [each.tokens for each in alone]


def test_a_translation_that_was_cut_is_as_long_with_a_prefix(greedy, texts):
    (best,) = next(row for row in greedy.translate(texts) if row[0].tokens and not row[0].finished)
    text = texts[[row[0] for row in greedy.translate(texts)].index(best)]
    (again,) = greedy.translate(text, prefixes=[best.tokens[:9]])[0]
    assert again.tokens == best.tokens


def test_every_one_of_the_n_best_begins_with_the_prefix(beam, chinese, pairs):
    sources, targets = [pair[0] for pair in pairs[:6]], [pair[1][:3] for pair in pairs[:6]]
    for target, row in zip(targets, beam.translate(sources, n_best=4, prefixes=targets), strict=True):
        ids = chinese.tokenize(target).numpy().tolist()
        assert all(each.text.startswith(target) and each.tokens[: len(ids)] == ids for each in row)
    assert beam(sources, prefixes=targets) == [
        beam(source, prefixes=target) for source, target in zip(sources, targets, strict=True)
    ]


def test_a_prefix_longer_than_the_limit_can_still_be_followed(model, english, chinese, pairs):
    settings = {"length_factor": 0.0, "length_offset": 4}
    translator = ks.Translator(model, english, chinese, ks.search.Greedy(), **settings)
    prefix = pairs[1][1]
    (result,) = translator.translate("Hello.", prefixes=[prefix])[0]
    assert result.text.startswith(prefix)
    assert len(result.tokens) > len(chinese.tokenize(prefix))


@pytest.mark.parametrize(
    ("prefixes", "message"),
    [
        (["a"], "one entry for each of the 2 texts"),
        ("ab", "one entry for each of the 2 texts"),
        ([[5, 0], [5]], r"prefixes\[0\] holds the id 0"),
        ([[5], [100000]], r"prefixes\[1\] holds the id 100000"),
    ],
)
def test_bad_prefixes_are_refused(greedy, prefixes, message):
    with pytest.raises(ValueError, match=message):
        greedy.translate(["a", "b"], prefixes=prefixes)


def test_the_score_is_the_log_probability_of_the_hypothesis(greedy, beam, texts):
    texts = [text for text in texts if text and not text.isspace()]
    best = [row[0] for row in greedy.translate(texts)]
    ended = [(text, each) for text, each in zip(texts, best, strict=True) if each.finished]
    scores = greedy.score([text for text, _ in ended], [each.tokens for _, each in ended])
    for found, (_, each) in zip(scores, ended, strict=True):
        assert found.token_count == len(each.tokens)
        assert abs(found.score - each.score) < 1e-5 * len(each.tokens)
    for text in texts[:6]:
        for each in beam.translate([text], n_best=4)[0]:
            if each.finished:
                (found,) = beam.score([text], [each.tokens])
                assert abs(found.score / found.token_count - each.score) < 1e-5


@pytest.mark.parametrize("kind", ["greedy", "beam", "sampling"])
def test_the_score_of_any_hypothesis_is_the_sum_of_its_token_scores(kind, greedy, beam, texts):
    """Finished, cut at the limit, and empty: what `score` says of its ids is what came with it."""
    sampling = ks.search.Sampling(4, seed=2)
    translator = {"greedy": greedy, "beam": beam, "sampling": greedy.with_strategy(sampling)}[kind]
    texts = texts[:22]
    rows = translator.translate(texts, translator.strategy.width)
    found = [(text, each) for text, row in zip(texts, rows, strict=True) for each in row]
    assert {each.finished for _, each in found} == {True, False}
    assert any(not each.tokens for _, each in found)
    scores = translator.score([text for text, _ in found], [each.tokens for _, each in found], add_eos=False)
    for (_, each), score in zip(found, scores, strict=True):
        count = len(each.tokens)
        assert score.token_count == count == len(each.token_scores)
        assert abs(score.score - sum(each.token_scores)) <= 1e-5 * count
        rule = score.score / max(count, 1) if kind == "beam" else score.score
        assert abs(rule - each.score) <= 1e-5 * max(count, 1)
    one = next(each for _, each in found if not each.finished)
    assert greedy.score(texts[0], one.tokens, add_eos=False) != greedy.score(texts[0], one.tokens)


def test_scores_take_text_or_ids_and_any_batch(greedy, english, chinese, pairs):
    sources, targets = [pair[0] for pair in pairs[:20]], [pair[1] for pair in pairs[:20]]
    scores = greedy.score(sources, targets)
    ids = [part.to_list() for part in (english.tokenize(sources), chinese.tokenize(targets))]
    assert greedy.score(*ids) == scores
    assert greedy.score([[*row, 3] for row in ids[0]], [[*row, 3] for row in ids[1]]) == scores
    single = [greedy.score(*pair) for pair in zip(sources, targets, strict=True)]
    assert [each.token_count for each in single] == [len(row) + 1 for row in ids[1]]
    assert np.allclose([each.score for each in single], [each.score for each in scores], atol=1e-3)
    assert greedy.score([], []) == []
    with pytest.raises(ValueError, match="targets must have one entry for each of 2 sources, received 1"):
        greedy.score(["a", "b"], ["a"])
    with pytest.raises(TypeError, match="add_eos must be True or False, received 'no'"):
        greedy.score("a", "a", add_eos="no")


def test_what_is_no_text_is_refused(greedy):
    with pytest.raises(TypeError, match=r"texts must be a string or a list of strings, received 3 at \[1\]"):
        greedy(["a", 3])
    with pytest.raises(TypeError, match=r"received b'a' at \[0\]"):
        greedy([b"a"])
    for value in (None, 3, b"ab", np.array("a")):
        with pytest.raises(TypeError, match=r"texts must be a string or a list of strings, received"):
            greedy(value)


@pytest.mark.parametrize("row", [None, 3, b"a", [5.5], [[5, 6]], ["a"], [None]])
def test_what_is_neither_text_nor_ids_is_refused(greedy, row):
    message = "must be a string or a list of ids, received"
    with pytest.raises(TypeError, match=rf"prefixes\[0\] {message}"):
        greedy.translate(["a"], prefixes=[row])
    with pytest.raises(TypeError, match=rf"sources\[1\] {message}"):
        greedy.score(["a", row], ["b", "c"])
    with pytest.raises(TypeError, match=rf"targets\[0\] {message}"):
        greedy.score("a", row)


def test_ids_that_no_integer_of_32_bits_holds_are_refused(greedy):
    with pytest.raises(ValueError, match=rf"prefixes\[0\] holds the id {2**40}"):
        greedy.translate(["a"], prefixes=[[2**40]])


def test_several_things_come_as_a_list(greedy):
    assert greedy.score((text for text in "ab"), (text for text in "cd")) == greedy.score(
        ["a", "b"], ["c", "d"]
    )
    for sources, targets in ((None, None), (["a"], "b"), (["a"], None)):
        with pytest.raises(TypeError, match="must be a list, received"):
            greedy.score(sources, targets)
    with pytest.raises(TypeError, match="prefixes must be a list, received 3"):
        greedy.translate(["a"], prefixes=3)


def test_xla_gives_the_same(model, english, chinese, texts, tracings):
    strategy = ks.search.Greedy()
    settings = {"max_length": 16, "batch_size": 8}
    plain = ks.Translator(model, english, chinese, strategy, **settings)
    compiled = ks.Translator(model, english, chinese, strategy, **settings, jit_compile=True)
    few = [*texts[:3], "", "a"]
    assert compiled(few) == plain(few)
    count = len(tracings)
    compiled(["How?", *few])
    assert len(tracings) == count


def test_any_functional_model_can_translate(english, chinese, texts):
    source = keras.Input((None,), dtype="int32", name="source")
    target = keras.Input((None,), dtype="int32", name="target")
    sizes = english.vocabulary_size, chinese.vocabulary_size
    memory = ks.layers.PositionalEmbedding(sizes[0], 16)(source)
    query = ks.layers.PositionalEmbedding(sizes[1], 16)(target)
    mask = keras.ops.not_equal(source, 0)
    context = ks.layers.LuongAttention("scaled_dot")(query, memory, attention_mask=mask)
    logits = keras.layers.Dense(sizes[1])(keras.ops.concatenate([query, context], axis=-1))
    model = keras.Model({"source": source, "target": target}, logits)
    translator = ks.Translator(model, english, chinese, ks.search.Beam(2))
    together = translator.translate(texts[:8])
    assert [row[0].tokens for row in together] == [translator.translate(t)[0][0].tokens for t in texts[:8]]


def test_learned_positions_limit_the_lengths(make_model, english, chinese):
    sizes = english.vocabulary_size, chinese.vocabulary_size
    model = make_model(*sizes, positions="learned", max_length=24)
    translator = ks.Translator(model, english, chinese, ks.search.Greedy())
    assert translator.settings.max_length == translator.settings.max_source_length == 24
    with pytest.warns(UserWarning, match="1 of 1 texts"):
        assert len(translator.translate("word " * 60)[0][0].tokens) <= 24
    with pytest.warns(UserWarning, match="1 of 1 prefixes had more than 23 tokens and were cut there"):
        (result,) = translator.translate("word", prefixes=[[7] * 40])[0]
    assert len(result.tokens) == 24
    with pytest.raises(ValueError, match=r"max_length must be at most 24, .* received 30"):
        ks.Translator(model, english, chinese, max_length=30)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_length": 0}, "max_length must be an integer of at least 1, received 0"),
        ({"batch_size": 2.5}, "batch_size must be an integer of at least 1, received 2.5"),
        ({"length_factor": -1}, "length_factor must be a finite number of at least 0, received -1"),
        *[
            ({"length_factor": factor}, f"length_factor must be a finite number.* received {factor!r}")
            for factor in (float("nan"), float("inf"), "a", None)
        ],
        ({"jit_compile": "auto"}, "jit_compile must be True or False"),
    ],
)
def test_impossible_settings_are_refused(model, english, chinese, settings, message):
    with pytest.raises(ValueError, match=message):
        ks.Translator(model, english, chinese, **settings)


def test_a_large_factor_leaves_the_other_limits(model, english, chinese):
    greedy = ks.search.Greedy()
    usual = ks.Translator(model, english, chinese, greedy, max_length=30, length_offset=30)
    free = ks.Translator(model, english, chinese, greedy, max_length=30, length_factor=1e30)
    assert free("Do you want a drink?") == usual("Do you want a drink?") != ""


def test_what_is_no_part_of_a_translator_is_named(model, english, chinese):
    for strategy in ("beam", ks.search.Beam, 4, 0):
        with pytest.raises(TypeError, match="strategy must be one of keras_seq2seq"):
            ks.Translator(model, english, chinese, strategy)
    with pytest.raises(TypeError, match=r"source_tokenizer must be a tokenizer .*received 'english'"):
        ks.Translator(model, "english", chinese)
    with pytest.raises(TypeError, match="strategy must be"):
        ks.Generator(model, english, "greedy")


def test_tokenizers_must_fit_the_model(model, english, chinese):
    with pytest.raises(ValueError, match=re.escape("the source tokenizer has 892 ids, the model only 400.")):
        ks.Translator(model, chinese)
