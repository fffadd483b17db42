"""What an export answers: what its translator does, in Python without the library and in the C loader."""

import shutil
from pathlib import Path

import c_loader
import numpy as np
import pytest
from serving import serve

BATCHES = (0, 1, 2, 7)
SEEDS = [0, 1, -1, 7, 7, 2**40, 2**63 - 1, -(2**63), 3]


@pytest.fixture(scope="module")
def moved(base, tmp_path_factory) -> Path:
    """A copy of the exports at another place, read-only."""
    copy = tmp_path_factory.mktemp("moved") / "elsewhere"
    shutil.copytree(base, copy)
    for path in [*copy.rglob("*"), copy]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    return copy


@pytest.fixture(scope="module", params=["1", "2"], ids=["greedy", "beam"])
def case(request, greedy, beam, moved):
    """An export and the translator that it was made of."""
    return moved / request.param, {"1": greedy, "2": beam}[request.param]


def requests_for(texts: list[str]) -> list[tuple[str, dict[str, list]]]:
    """Ask for everything at once, one at a time, in odd batches, and 20 times the same."""
    prefixes = ["", "你", "你好"] * 3
    return [
        ("serving_default", {"text": texts}),
        ("translate", {"text": texts[:1]}),
        ("translate_n_best", {"text": texts}),
        ("translate_with_prefix", {"text": texts[:9], "prefix": prefixes}),
        ("score", {"source": texts[:9], "target": prefixes}),
        ("sample", {"text": texts[:9], "seed": SEEDS}),
        ("sample", {"text": texts[8::-1], "seed": SEEDS[::-1]}),
        *[("serving_default", {"text": [text]}) for text in texts[:6]],
        *[("serving_default", {"text": texts[:count]}) for count in BATCHES],
        *[("translate_n_best", {"text": texts[:count]}) for count in BATCHES],
        *[("translate_with_prefix", {"text": texts[:n], "prefix": prefixes[:n]}) for n in BATCHES],
        *[("score", {"source": texts[:n], "target": prefixes[:n]}) for n in BATCHES],
        *[("serving_default", {"text": texts[:3]})] * 20,
    ]


def check(answers: list, translator, texts: list[str]) -> None:
    """Compare the answers to `requests_for(texts)` with the translator."""
    n_best = translator.strategy.width
    rows = translator.translate(texts, n_best)
    counts = np.array([max(len(row[0].tokens), 1) for row in rows])
    best = [row[0].text for row in rows]
    assert answers[0]["translation"] == best
    assert (abs(np.array(answers[0]["score"]) - [row[0].score for row in rows]) <= 1e-5 * counts).all()
    assert answers[1]["translation"] == best[:1]
    assert answers[2]["translations"] == [[each.text for each in row] for row in rows]
    scores = np.array([[each.score for each in row] for row in rows])
    assert (abs(np.array(answers[2]["scores"]) - scores) <= 1e-5 * counts[:, None]).all()
    prefixes = ["", "你", "你好"] * 3
    after = translator.translate(texts[:9], prefixes=prefixes)
    assert answers[3]["translation"] == [row[0].text for row in after]
    assert np.allclose(answers[3]["score"], [row[0].score for row in after], atol=1e-4)
    scored = translator.score(texts[:9], prefixes)
    assert np.allclose(answers[4]["score"], [each.score for each in scored], atol=1e-4)
    assert answers[4]["token_count"] == [each.token_count for each in scored]
    drawn = translator.sample(texts[:9], SEEDS)
    assert answers[5]["translation"] == [each.text for each in drawn]
    assert np.allclose(answers[5]["score"], [each.score for each in drawn], atol=1e-4)
    assert answers[6]["translation"] == answers[5]["translation"][::-1]
    rest = iter(answers[7:])
    assert [next(rest)["translation"] for _ in range(6)] == [[text] for text in best[:6]]
    for count in BATCHES:
        assert next(rest)["translation"] == best[:count]
    for count in BATCHES:
        assert next(rest)["translations"] == answers[2]["translations"][:count]
    for count in BATCHES:
        assert next(rest)["translation"] == answers[3]["translation"][:count]
    for count in BATCHES:
        assert next(rest)["token_count"] == answers[4]["token_count"][:count]
    same = list(rest)
    assert same == [same[0]] * 20


def test_python_without_the_library_gives_the_same(case, texts):
    path, translator = case
    check(serve.run_signatures(path, requests_for(texts)), translator, texts)


def test_the_c_loader_without_xla_gives_the_same(case, texts):
    path, translator = case
    check(c_loader.run_signatures(path, requests_for(texts)), translator, texts)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_hundred_varied_texts_get_the_same(case, pairs, texts):
    path, translator = case
    sources = [source for source, _ in pairs]
    many = [*texts, *sources[20:]]
    many = [*many[:190], *(" ".join(sources[i : i + 3]) + " ☃你😀" for i in range(10))]
    assert len(many) == len({*many}) == 200
    rows = [row[0] for row in translator.translate(many)]
    (answer,) = c_loader.run_signatures(path, [("serving_default", {"text": many})])
    assert answer["translation"] == [each.text for each in rows]
    tolerance = 1e-5 * np.array([max(len(each.tokens), 1) for each in rows])
    assert (abs(np.array(answer["score"]) - [each.score for each in rows]) <= tolerance).all()


HOSTILE = [b"\xff\xfe", b"ab\xffc", b"\xc3", b"nul\x00", b"x" * 100_000, "\u2028\u0097".encode()]


def test_hostile_strings_get_scores(moved, greedy):
    """As sources, as targets and as both, beside a harmless row whose score they do not change."""
    mild = [b"a"] * len(HOSTILE)
    wholes = [(HOSTILE, mild), (mild, HOSTILE), (HOSTILE, HOSTILE)]
    requests: list = [
        ("score", {"source": [*source, b"How are you?"], "target": [*target, "你好".encode()]})
        for source, target in wholes
    ]
    alone = greedy.score("How are you?", "你好")
    for answer in c_loader.run_signatures(moved / "1", requests):
        assert np.isfinite(answer["score"]).all()
        assert max(answer["score"]) < 0
        assert min(answer["token_count"]) >= 1
        assert max(answer["token_count"]) <= greedy.settings.max_length
        assert answer["token_count"][-1] == alone.token_count
        assert np.isclose(answer["score"][-1], alone.score, atol=1e-5 * alone.token_count)


def test_hostile_strings_get_answers(moved):
    texts = HOSTILE
    (answer,) = c_loader.run_signatures(moved / "1", [("serving_default", {"text": [*texts, b"a"]})])
    (alone,) = c_loader.run_signatures(moved / "1", [("serving_default", {"text": [b"a"]})])
    assert answer["translation"][-1:] == alone["translation"]
    for text in answer["translation"]:
        text.encode("utf-8")  # strictly valid


def test_numbers_are_refused(moved):
    number, good = serve.run_signatures(
        moved / "1", [("serving_default", {"text": [1, 2]}), ("serving_default", {"text": ["a"]})]
    )
    assert "string" in number["error"]
    assert good["translation"]


def test_without_text_ops_the_error_names_the_operation(moved):
    with pytest.raises(c_loader.CLoaderError, match="Sentencepiece"):
        c_loader.run_signature(moved / "1", "serving_default", {"text": ["a"]}, text_ops=False)
