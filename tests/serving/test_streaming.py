"""Streams: joined they are the batch result, and what was given is never taken back."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from tokenizer_kinds import LINES, MAKE

import keras_seq2seq as ks
from keras_seq2seq.serving.generation import completions
from keras_seq2seq.serving.streaming import chunks

SAMPLING = ks.search.Sampling(temperature=1.2, seed=3)


@pytest.fixture(scope="module", params=["greedy", "sampling"])
def translator(request, greedy) -> ks.Translator:
    return greedy if request.param == "greedy" else greedy.with_strategy(SAMPLING)


def test_a_stream_is_the_translation(translator, texts):
    for text in [*texts[:6], "", " ", "a", "☃"]:
        pieces = list(translator.stream(text))
        assert "".join(pieces) == translator(text)
        assert all(pieces)
    longest = max((list(translator.stream(text)) for text in texts[:6]), key=len)
    assert len(longest) > 5


def test_a_stream_begins_with_its_prefix(translator, texts):
    joined = "".join(translator.stream(texts[0], prefix="你好"))
    assert joined == translator(texts[0], prefixes="你好")
    assert joined.startswith("你好")


@pytest.mark.parametrize("strategy", [ks.search.Greedy(), SAMPLING], ids=["greedy", "sampling"])
def test_bytes_come_as_whole_characters(make_lm, strategy):
    """Random bytes: characters of 1 to 4 bytes, broken ones, and a break at the end."""
    tokenizer = ks.text.Bytes()
    model = make_lm(tokenizer.vocabulary_size, seed=4, end=0.1)
    generator = ks.Generator(model, tokenizer, strategy, max_new_tokens=40)
    seen: list[str] = []
    for prompt in ("", "a", "你", "Wörter", "What", "the end"):
        pieces = list(generator.stream(prompt))
        assert "".join(pieces) == generator(prompt)
        seen += pieces
    assert len(seen) > 20
    assert any("\ufffd" in piece for piece in seen)


def test_a_stream_ends_where_the_rules_leave_no_token(translator, texts):
    """Two tokens may be written, once each, and no EOS before the sixth: after two there is nothing left."""
    size = translator.target_tokenizer.vocabulary_size
    rules = {"forbidden_tokens": [1, *range(6, size)], "no_repeat_ngram": 1, "min_length": 6}
    parts = translator.model, translator.source_tokenizer, translator.target_tokenizer, translator.strategy
    ruled = ks.Translator(*parts, **rules)
    (best,) = ruled.translate(texts[0])[0]
    assert sorted(best.tokens) == [4, 5]
    assert not best.finished
    assert "".join(ruled.stream(texts[0])) == best.text
    source = [[*ruled.source_tokenizer.tokenize(texts[0]).numpy().tolist(), 3]]
    seeds = [] if isinstance(ruled.strategy, ks.search.Greedy) else [[[7]]]
    ids = [np.array(each, "int32") for each in (source, [[2]], *seeds)]
    assert sorted(ruled.searching.steps(*ids)) == [4, 5]


def test_a_recurrent_model_streams(english, chinese, texts):
    sizes = english.vocabulary_size, chinese.vocabulary_size
    model = ks.models.rnn_seq2seq(*sizes, units=16, attention=ks.layers.LuongAttention("general"))
    translator = ks.Translator(model, english, chinese, SAMPLING, max_length=10)
    assert "".join(translator.stream(texts[0])) == translator(texts[0])


def test_nothing_is_traced_again_and_tokens_come_one_by_one(greedy, texts, monkeypatch):
    list(greedy.stream(texts[0]))
    monkeypatch.setattr(tf, "function", lambda *arguments, **options: pytest.fail("traced"))
    assert "".join(greedy.stream(texts[1])) == greedy(texts[1])
    first = next(greedy.stream(texts[2]))
    assert 0 < len(first) < len(greedy(texts[2]))


@pytest.mark.parametrize("strategy", [ks.search.Beam(1), ks.search.Beam(4), ks.search.Sampling(2)], ids=repr)
def test_what_is_decided_at_the_end_is_refused(greedy, strategy):
    with pytest.raises(ValueError, match=r"strategy must be Greedy\(\) or Sampling\(\) with n=1 to stream"):
        greedy.with_strategy(strategy).stream("Hello.")
    with pytest.raises(TypeError, match=r"text must be a string, received \['a'\]"):
        greedy.stream(["a"])


def byte_fallback(_) -> ks.text.SentencePiece:
    """Pieces of words, and bytes for all other characters."""
    return ks.text.SentencePiece.train(LINES, vocabulary_size=320, byte_fallback=True)


@pytest.mark.parametrize("kind", [*MAKE, "byte_fallback"])
def test_no_later_token_changes_what_was_given(kind, rng):
    """Random ids, and ids of text whose characters take several tokens, for every kind of tokenizer."""
    tokenizer = {**MAKE, "byte_fallback": byte_fallback}[kind](LINES)
    rows = [rng.integers(1, tokenizer.vocabulary_size, 12).tolist() for _ in range(8)]
    rows += tokenizer.tokenize(["naïve 😀😀 你好", " the  sea", "\ufffd", ""]).to_list()
    for row, prompt in zip(rows, itertools.cycle([[], [5, 6], [7]]), strict=False):
        whole = tokenizer.detokenize([row]).numpy()[0].decode()
        text_of = lambda ids: tokenizer.detokenize([ids]).numpy()[0].decode()  # noqa: E731
        assert "".join(chunks(iter(row), text_of)) == whole
        given = np.array([[2, *prompt]])
        follow = lambda ids: completions(tokenizer, given, [[ids]]).numpy()[0, 0].decode()  # noqa: E731, B023
        assert "".join(chunks(iter(row), follow)) == follow(row)


def test_a_tokenizer_that_takes_back_text_is_named():
    with pytest.raises(RuntimeError, match="the tokenizer turned 'ab', which was given, into 'b'"):
        list(chunks(iter([1, 2]), lambda ids: "ab" if len(ids) == 1 else "b"))
