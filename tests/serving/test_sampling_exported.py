"""Exports that sample, in the C loader with XLA off: a text and its seed are all that counts."""

import dataclasses

import c_loader
import numpy as np
import pytest

import keras_seq2seq as ks

STRATEGY = ks.search.Sampling(2, temperature=0.7, top_k=20)
TEXTS = ["How are you?", "", "I", "How are you?", "It was there.", "☃"]
SEEDS = [5, 5, -5, 6, 2**50, 0]


@pytest.fixture(scope="module", params=["rnn", "lm"])
def case(request, make_lm, english, chinese, tmp_path_factory):
    """A recurrent translator or a generator, without a seed, and its export."""
    base = tmp_path_factory.mktemp("exports") / "base"
    if request.param == "lm":
        served = ks.Generator(make_lm(english.vocabulary_size, seed=3), english, STRATEGY, max_new_tokens=12)
    else:
        sizes = english.vocabulary_size, chinese.vocabulary_size
        model = ks.models.rnn_seq2seq(*sizes, units=16, attention=ks.layers.LuongAttention("general"))
        served = ks.Translator(model, english, chinese, STRATEGY, max_length=12)
    return served, served.export(base, samples=TEXTS[:1])


def test_the_c_loader_draws_what_is_drawn_in_memory(case):
    served, path = case
    name = "translation" if served.KIND == "Translator" else "completion"
    alone, odd = [("sample", {"text": [TEXTS[i]], "seed": [SEEDS[i]]}) for i in (3, 4)]
    requests: list = [
        ("sample", {"text": TEXTS, "seed": SEEDS}),
        alone,
        odd,
        ("serving_default", {"text": TEXTS}),
    ]
    together, *single, default = c_loader.run_signatures(path, requests)
    drawn = served.sample(TEXTS, SEEDS)
    assert together[name] == [each.text for each in drawn]
    assert np.allclose(together["score"], [each.score for each in drawn], atol=1e-4)
    assert [answer[name] for answer in single] == [[drawn[3].text], [drawn[4].text]]
    assert together[name][0] != together[name][3]
    # Without a seed as input, each text is answered as if it were alone, by the seed 0.
    fixed = served.with_strategy(dataclasses.replace(STRATEGY, seed=0))
    assert default[name] == [fixed(text) for text in TEXTS]


def test_another_number_of_seeds_or_prefixes_is_an_error(case):
    served, path = case
    wrong = {"sample": {"text": TEXTS[:2], "seed": [1]}}
    if served.KIND == "Translator":
        wrong["translate_with_prefix"] = {"text": TEXTS[:2], "prefix": ["a"]}
        wrong["score"] = {"source": TEXTS[:2], "target": ["a"]}
    for signature, inputs in wrong.items():
        with pytest.raises(c_loader.CLoaderError, match=r"(seed|prefix|target) must have one entry for each"):
            c_loader.run_signature(path, signature, inputs)
