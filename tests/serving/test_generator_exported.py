"""What a generator's export answers in the C loader, XLA off: what it says of each prompt alone in memory."""

import json
import warnings

import c_loader
import numpy as np
import pytest

import keras_seq2seq as ks

BATCHES = (0, 1, 2, 7)
CHARACTERS = "Whatdoyuenkfrmgisl. ?,I\n'é你"


@pytest.fixture(scope="module")
def prompts(pairs) -> list[str]:
    """Prompts of 0, 1 and many tokens, unknown characters, and one that is too long."""
    return ["", "I", "", " ", "☃", "W\n", "<s></s>", *[source for source, _ in pairs[:8]], "What do " * 20]


@pytest.fixture(scope="module", params=["greedy", "beam", "learned"])
def case(request, make_lm, english, tmp_path_factory):
    """A generator and its export: word pieces and rotary positions, or characters and learned positions."""
    base = tmp_path_factory.mktemp("exports") / "base"
    strategy = ks.search.Beam(3, length_penalty=0.6) if request.param == "beam" else ks.search.Greedy()
    if request.param == "learned":
        tokenizer = ks.text.Characters(CHARACTERS)
        model = make_lm(tokenizer.vocabulary_size, positions="learned", max_length=64, end=0.1)
        generator = ks.Generator(model, tokenizer, strategy, max_new_tokens=20, score_eos=True)
    else:
        model = make_lm(english.vocabulary_size, seed=3)
        generator = ks.Generator(model, english, strategy, max_new_tokens=20, max_prompt_length=44)
    return generator, generator.export(base)


def requests_for(prompts: list[str]) -> list[tuple[str, dict[str, list]]]:
    """Ask for everything at once, one at a time, and in odd batches."""
    names = ("serving_default", "generate", "generate_n_best", "score")
    return [
        *[(name, {"text": prompts}) for name in names],
        ("sample", {"text": prompts, "seed": list(range(len(prompts)))}),
        *[("generate", {"text": [prompt]}) for prompt in prompts],
        *[(name, {"text": prompts[:count]}) for count in BATCHES for name in names],
    ]


def check(answers: list, generator: ks.Generator, prompts: list[str]) -> None:
    """Compare the answers to `requests_for(prompts)` with the generator."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one prompt is too long
        rows = [generator.generate(prompt, generator.strategy.width)[0] for prompt in prompts]
        scores = generator.score(prompts)
    texts = [row[0].text for row in rows]
    tolerance = 1e-5 * 64
    assert answers[0] == answers[1]
    assert answers[0]["completion"] == texts
    assert np.allclose(answers[0]["score"], [row[0].score for row in rows], atol=tolerance)
    assert answers[2]["completions"] == [[each.text for each in row] for row in rows]
    assert np.allclose(answers[2]["scores"], [[each.score for each in row] for row in rows], atol=tolerance)
    assert answers[3]["token_count"] == [each.token_count for each in scores]
    assert np.allclose(answers[3]["score"], [each.score for each in scores], rtol=1e-5, atol=tolerance)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawn = generator.sample(prompts, range(len(prompts)))
    assert answers[4]["completion"] == [each.text for each in drawn]
    assert np.allclose(answers[4]["score"], [each.score for each in drawn], atol=tolerance)
    rest = iter(answers[5:])
    assert [next(rest)["completion"] for _ in prompts] == [[text] for text in texts]
    for count in BATCHES:
        assert next(rest)["completion"] == texts[:count]
        assert next(rest)["completion"] == texts[:count]
        assert next(rest)["completions"] == answers[2]["completions"][:count]
        assert next(rest)["token_count"] == answers[3]["token_count"][:count]


def test_the_c_loader_without_xla_gives_the_same(case, prompts):
    generator, path = case
    check(c_loader.run_signatures(path, requests_for(prompts)), generator, prompts)


def test_the_card_says_what_is_inside(case):
    generator, path = case
    with open(f"{path}/assets.extra/model.json", encoding="utf-8") as file:
        card = json.load(file)
    assert card["kind"] == "Generator"
    assert card["vocabulary_sizes"] == {"text": generator.tokenizer.vocabulary_size}
    assert card["signatures"]["serving_default"] == {
        "inputs": {"text": {"dtype": "string", "shape": [None]}},
        "outputs": {
            "completion": {"dtype": "string", "shape": [None]},
            "score": {"dtype": "float32", "shape": [None]},
        },
    }
    assert card["signatures"]["score"]["outputs"]["token_count"] == {"dtype": "int32", "shape": [None]}
    assert card["settings"]["max_new_tokens"] == 20


def test_an_export_that_differs_is_an_error_and_leaves_nothing(case, tmp_path, monkeypatch):
    generator, _ = case

    def lie(texts, *arguments):
        return [[ks.serving.Hypothesis("something else", 0.0, [], None, True)] for _ in texts]

    monkeypatch.setattr(generator, "generate", lie)
    with pytest.raises(RuntimeError, match=r"'serving_default' of the export gives .*, the generator \(\["):
        generator.export(tmp_path, samples=["Hello."])
    assert list(tmp_path.iterdir()) == []


def test_hostile_strings_get_valid_answers_and_disturb_nobody(case):
    generator, path = case
    texts = [b"\xff\xfe", b"ab\xffc", b"\xc3", b"nul\x00", b"x" * 100_000, "\u2028\u0097".encode(), b"I"]
    (answer,) = c_loader.run_signatures(path, [("serving_default", {"text": texts})])
    for text in answer["completion"]:
        text.encode("utf-8")  # strictly valid
    assert answer["completion"][-1] == generator("I")
