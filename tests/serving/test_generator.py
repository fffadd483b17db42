"""`Generator` in Python: prompts of any length, limits, scores, what is refused, and on disk."""

import dataclasses
import json
import subprocess
import sys
import warnings

import keras
import numpy as np
import pytest

import keras_seq2seq as ks
from keras_seq2seq.serving.generation import completions

LENGTH = 24


@pytest.fixture(scope="module")
def lm(make_lm, english) -> keras.Model:
    """A language model that ends sooner or later."""
    return make_lm(english.vocabulary_size, seed=3)


@pytest.fixture(scope="module")
def greedy_lm(lm, english) -> ks.Generator:
    """A generator with greedy search."""
    return ks.Generator(lm, english, max_new_tokens=LENGTH)


@pytest.fixture(scope="module")
def beam_lm(lm, english) -> ks.Generator:
    """A generator with a beam of 4."""
    return ks.Generator(lm, english, ks.search.Beam(4), max_new_tokens=LENGTH)


@pytest.fixture(params=["greedy_lm", "beam_lm"])
def generator(request) -> ks.Generator:
    """Each of the two generators."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def alone(greedy_lm, beam_lm, texts) -> dict[int, list]:
    """What each generator, by its number of hypotheses, says of every text alone."""
    return {each.strategy.width: [each.generate(text)[0] for text in texts] for each in (greedy_lm, beam_lm)}


def scores_of(rows: list) -> np.ndarray:
    return np.array([row[0].score for row in rows])


def test_a_string_gives_a_string_and_a_list_a_list(generator, texts, alone):
    expected = [row[0].text for row in alone[generator.strategy.width]]
    assert generator(texts[0]) == expected[0]
    assert generator([texts[0]]) == expected[:1]
    assert generator(tuple(texts[:3])) == expected[:3]
    assert generator([]) == generator.generate([]) == generator.score([]) == []


def test_outputs_vary_and_some_are_cut(alone, english):
    """Without this the tests below would prove little."""
    for width, rows in alone.items():
        best = [row[0] for row in rows]
        assert len({each.text for each in best}) > 20
        assert 0.1 < np.mean([each.finished for each in best]) < 0.9, width
        assert all(each.finished == (each.tokens[-1] == 3) for each in best)
        assert all(each.finished or len(each.tokens) == LENGTH for each in best)
        assert all(not {0, 2} & set(each.tokens) for each in best)


@pytest.mark.parametrize("batch_size", [1, 7, 64])
def test_prompts_of_all_lengths_in_one_batch_are_completed_as_alone(generator, texts, alone, batch_size):
    settings = dataclasses.replace(generator.settings, batch_size=batch_size, tokens_per_batch=10**6)
    together = generator.with_settings(settings).generate(texts)
    expected = alone[generator.strategy.width]
    assert [row[0].tokens for row in together] == [row[0].tokens for row in expected]
    assert [row[0].text for row in together] == [row[0].text for row in expected]
    assert np.allclose(scores_of(together), scores_of(expected), rtol=1e-6, atol=1e-4)


def test_the_empty_prompt_is_bos_alone(greedy_lm, lm):
    result = ks.search.search(lm, {"target": np.array([[2]], "int32")}, greedy_lm.strategy, max_length=LENGTH)
    length = int(result.lengths[0, 0])
    (best,) = greedy_lm.generate("")[0]
    assert best.tokens == np.asarray(result.tokens)[0, 0, :length].tolist()
    assert best.text


def test_the_score_is_the_sum_of_log_probabilities_by_the_full_pass(greedy_lm, lm, english, texts, alone):
    for text, (best,) in list(zip(texts, alone[1], strict=True))[:30]:
        prompt = [2, *english.tokenize(text).numpy()]
        logits = np.array(lm({"target": np.array([prompt + best.tokens])})[0, len(prompt) - 1 : -1])
        logits[:, [0, 2]] = -np.inf  # never generated
        token_scores = np.array(keras.ops.log_softmax(logits))[np.arange(len(best.tokens)), best.tokens]
        assert abs(token_scores.sum() - best.score) < 1e-5 * len(best.tokens)


def test_a_score_of_the_whole_less_the_prompts_is_the_completions(beam_lm, english, texts):
    prompts = english.tokenize(texts).to_list()
    best = [row[0] for row in beam_lm.generate(texts)]
    whole = beam_lm.score([ids + each.tokens for ids, each in zip(prompts, best, strict=True)])
    for total, prompt, each in zip(whole, beam_lm.score(prompts), best, strict=True):
        assert total.token_count - prompt.token_count == len(each.tokens)
        average = (total.score - prompt.score) / len(each.tokens)
        assert abs(average - each.score) < 1e-5 * total.token_count / len(each.tokens)


def test_scores_take_text_or_ids_with_and_without_eos(greedy_lm, lm, english, texts):
    ids = english.tokenize(texts).to_list()
    scores = greedy_lm.score(texts)
    assert greedy_lm.score(ids) == scores
    assert [each.token_count for each in scores] == [len(row) for row in ids]
    assert greedy_lm.score("") == (0.0, 0)
    assert np.allclose([greedy_lm.score(text).score for text in texts], [s.score for s in scores], rtol=1e-5)
    ended = ks.Generator(lm, english, score_eos=True)
    assert ended.score(ids) == scores
    with_eos = ended.score(texts)
    assert with_eos == greedy_lm.score([[*row, 3] for row in ids])
    assert [each.token_count for each in with_eos] == [len(row) + 1 for row in ids]
    assert all(a.score < b.score for a, b in zip(with_eos, scores, strict=True))


def test_the_score_is_the_loss_of_training(lm, english, texts):
    """Up to the share of pad and BOS, which search rules out."""
    texts = [text for text in texts if text.strip()]
    batches = ks.data.Text.from_string("\n".join(texts[:20])).batches(
        english, tokens_per_batch=1000, shuffle=False
    )
    loss = ks.training.SmoothedCrossentropy()
    total = count = 0.0
    for inputs, labels, weights in batches:
        real = float(np.sum(np.asarray(weights) > 0))
        total, count = total + real * float(loss(labels, lm(inputs), weights)), count + real
    scores = ks.Generator(lm, english, score_eos=True).score(texts[:20])
    assert sum(each.token_count for each in scores) == count
    assert abs(-sum(each.score for each in scores) / count - total / count) < 0.05


def test_token_scores_sum_up_to_the_score(greedy_lm, texts):
    for row in greedy_lm.generate(texts[:8]):
        assert len(row[0].token_scores) == len(row[0].tokens)
        assert abs(sum(row[0].token_scores) - row[0].score) < 1e-5 * len(row[0].tokens)


def test_the_n_best_are_sorted_and_distinct(beam_lm, texts):
    for row in beam_lm.generate(texts[:8], n_best=4):
        assert len({tuple(each.tokens) for each in row}) == 4
        ranks = [(not each.finished, -each.score) for each in row]
        assert ranks == sorted(ranks)
    with pytest.raises(ValueError, match=r"n_best must be between 1 and the 4 .* received 5"):
        beam_lm.generate("a", n_best=5)


def test_a_prompt_that_is_too_long_keeps_its_last_tokens(lm, english):
    short = ks.Generator(lm, english, max_new_tokens=8, max_prompt_length=5)
    ids = english.tokenize("it was like that and I was not there").numpy().tolist()
    assert len(ids) > 5
    with pytest.warns(
        UserWarning, match="1 of 2 texts had more than 5 tokens and keep only the last of them"
    ):
        found = short.generate(["it was like that and I was not there", "a"])
    result = ks.search.search(lm, {"target": np.array([[2, *ids[-5:]]])}, short.strategy, max_length=8)
    assert found[0][0].tokens == np.asarray(result.tokens)[0, 0, : int(result.lengths[0, 0])].tolist()
    with pytest.warns(UserWarning, match="1 of 1 texts had more than 13 tokens and were cut there"):
        cut = short.score("it was like that and I was not there " * 2)
    assert cut == short.score([(2 * ids)[:13]])[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        short.generate(english.detokenize([ids[-5:]]).numpy()[0].decode())


def test_learned_positions_hold_prompt_and_completion(make_lm, english, texts):
    model = make_lm(english.vocabulary_size, seed=3, end=0.1, positions="learned", max_length=20)
    sizes = [({}, 10, 10), ({"max_new_tokens": 4}, 4, 16), ({"max_prompt_length": 3}, 17, 3)]
    for given, new, prompt in sizes:
        settings = ks.Generator(model, english, **given).settings
        assert (settings.max_new_tokens, settings.max_prompt_length) == (new, prompt)
    generator = ks.Generator(model, english, max_new_tokens=12, max_prompt_length=8)
    with pytest.warns(UserWarning, match="texts had more than 8 tokens"):
        together = generator.generate(texts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [row[0].tokens for row in together] == [generator.generate(t)[0][0].tokens for t in texts]
        assert max(len(row[0].tokens) for row in together) == 12
        assert max(each.token_count for each in generator.score(texts)) == 20
    with pytest.raises(ValueError, match=r"must be at most 20, the model's learned .* received 10 \+ 11\."):
        ks.Generator(model, english, max_prompt_length=10, max_new_tokens=11)
    only_new = ks.Generator(model, english, max_new_tokens=20)
    with pytest.warns(UserWarning, match="1 of 1 texts had more than 0 tokens"):
        assert only_new.generate("What?") == only_new.generate("")


def test_xla_gives_the_same(make_lm, english, texts):
    model = make_lm(english.vocabulary_size, seed=3, positions="learned", max_length=30)
    settings = {"max_new_tokens": 9, "batch_size": 8}
    few = [*texts[:3], "", "a"]
    plain = ks.Generator(model, english, **settings)
    assert ks.Generator(model, english, **settings, jit_compile=True)(few) == plain(few)


def test_completions_are_what_stands_behind_the_prompt(english):
    prompts = english.tokenize(["It", "It was", "It"]).to_tensor()
    tokens = english.tokenize(["was", "there", ""]).to_tensor()
    texts = completions(english, prompts, tokens[:, np.newaxis]).numpy()[:, 0]
    assert texts.tolist() == [b" was", b" there", b""]


def test_any_functional_model_can_complete_and_be_exported(english, tmp_path):
    target = keras.Input((None,), dtype="int32", name="target")
    x = ks.layers.PositionalEmbedding(english.vocabulary_size, 16)(target)
    x = ks.layers.MultiHeadSelfAttention(2)(x, use_causal_mask=True)
    model = keras.Model({"target": target}, keras.layers.Dense(english.vocabulary_size)(x))
    generator = ks.Generator(model, english, ks.search.Beam(2), max_new_tokens=8)
    prompts = ["", "I", "It was like that"]
    assert generator(prompts) == [generator(prompt) for prompt in prompts]
    assert generator.score("It was").token_count == len(english.tokenize("It was"))
    generator.export(tmp_path, samples=prompts)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens must be an integer of at least 1, received 0"),
        ({"max_prompt_length": -1}, "max_prompt_length must be an integer of at least 0, received -1"),
        ({"score_eos": None}, "score_eos must be True or False, received None"),
        ({"batch_size": 2.5}, "batch_size must be an integer of at least 1, received 2.5"),
    ],
)
def test_impossible_settings_are_refused(lm, english, settings, message):
    with pytest.raises(ValueError, match=message):
        ks.Generator(lm, english, **settings)


def test_what_does_not_fit_is_refused(greedy_lm, lm, chinese):
    with pytest.raises(ValueError, match=r"the tokenizer has 892 ids, the model only 400\."):
        ks.Generator(lm, chinese)
    with pytest.raises(TypeError, match=r"texts must be a string or a list of strings, received 3 at \[1\]"):
        greedy_lm(["a", 3])
    with pytest.raises(ValueError, match=r"texts\[0\] holds the id 400"):
        greedy_lm.score([[400]])


def test_a_fresh_process_completes_the_same(beam_lm, texts, tmp_path):
    beam_lm.save(tmp_path / "saved")
    code = (
        "import json, sys, keras_seq2seq as ks;"
        "generator = ks.Generator.load(sys.argv[1]);"
        "rows = generator.generate(json.load(sys.stdin), n_best=2);"
        "print(json.dumps([[each.text, each.tokens, each.score] for row in rows for each in row]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "saved")]
    done = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    expected = [each for row in beam_lm.generate(texts, n_best=2) for each in row]
    assert [[text, tokens] for text, tokens, _ in found] == [[each.text, each.tokens] for each in expected]
    assert max(abs(score - each.score) for (*_, score), each in zip(found, expected, strict=True)) < 1e-5


def test_strategy_and_settings_come_back_and_one_kind_replaces_the_other(greedy, beam_lm, tmp_path):
    greedy.save(tmp_path)
    beam_lm.save(tmp_path)
    loaded = ks.Generator.load(tmp_path, max_new_tokens=3)
    assert loaded.strategy == beam_lm.strategy
    assert loaded.settings == dataclasses.replace(beam_lm.settings, max_new_tokens=3)
    with pytest.raises(FileNotFoundError, match=r"holds no translator: translator.json is missing\.$"):
        ks.Translator.load(tmp_path)
    greedy.save(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"holds no generator: generator.json is missing\.$"):
        ks.Generator.load(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
