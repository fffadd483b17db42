"""Every kind of tokenizer against text, bytes and ids that are meant to do harm."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fuzz.strange import BYTES, PARTS
from hypothesis import strategies as st
from tokenizer_kinds import LINES, MAKE

from keras_seq2seq.text import EOS_ID, UNK_ID, Characters, SentencePiece, Tokenizer, Words

KINDS: dict[str, Callable[[list[str]], Tokenizer]] = {
    **MAKE,
    "byte_fallback": lambda lines: SentencePiece.train(lines, vocabulary_size=1200),
}
LIMIT = 20.0  # MB


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def tokenizer(kind: str) -> Tokenizer:
    return KINDS[kind](LINES)


def valid(text: bytes) -> str:
    """Say what text bytes are: invalid UTF-8 is U+FFFD, as for the readers of files."""
    return text.decode("utf-8", "replace")


def is_text(id_: int, tokenizer: Tokenizer) -> bool:
    return id_ == UNK_ID or EOS_ID < id_ < tokenizer.vocabulary_size


def decoded(strings: Any) -> list[str]:
    return [string.decode("utf-8", "strict") for string in strings.numpy()]


def again(tokenizer: Tokenizer, texts: list[Any]) -> list[str]:
    return decoded(tokenizer.detokenize(tokenizer.tokenize(texts)))


def expected(kind: str, tokenizer: Tokenizer, text: str) -> str | None:
    """Say what comes back of a text, by the rule that its kind states; None where the rule says less."""
    if kind == "bytes":
        return text
    if isinstance(tokenizer, Characters):
        return "".join(each if each in tokenizer.characters else "\u2047" for each in text)
    if kind == "words":
        assert isinstance(tokenizer, Words)
        return " ".join(word if word in tokenizer.words else "\u2047" for word in text.split())
    if isinstance(tokenizer, SentencePiece):
        text = text.replace("\u2581", "_").lstrip(" ")
        unknown = f"[^ {''.join(LINES)}]+"  # a run of which is one unk
        return text if kind == "byte_fallback" else re.sub(unknown, "\u2047", text)
    return None


def test_text_gives_ids_of_text_and_comes_back_by_the_rule(fuzz, kind, tokenizer):
    @fuzz(50, texts=st.lists(BYTES, min_size=1, max_size=4))
    def check(texts: list[bytes]) -> None:
        rows = tokenizer.tokenize(texts)
        assert all(is_text(id_, tokenizer) for id_ in set(rows.values.numpy().tolist()))
        assert rows.to_list() == [tokenizer.tokenize([text]).to_list()[0] for text in texts]
        assert rows.to_list() == tokenizer.tokenize([valid(text) for text in texts]).to_list()
        back = decoded(tokenizer.detokenize(rows))
        assert again(tokenizer, back) == back
        for text, found in zip(texts, back, strict=True):
            assert found == (rule if (rule := expected(kind, tokenizer, valid(text))) is not None else found)


ID = st.integers(-3, 300) | st.integers(-(2**63), 2**63 - 1)


def test_any_ids_give_valid_text_in_which_control_tokens_do_not_show(fuzz, tokenizer):
    @fuzz(40, rows=st.lists(st.lists(ID, max_size=12), min_size=1, max_size=4))
    def check(rows: list[list[int]]) -> None:
        width = max(map(len, rows))
        ids = np.array([row + [0] * (width - len(row)) for row in rows], np.int64).reshape(len(rows), width)
        found = decoded(tokenizer.detokenize(ids))
        assert found == [decoded(tokenizer.detokenize(row[np.newaxis]))[0] for row in ids]
        known = [
            [id_ for id_ in row[: (*row, EOS_ID).index(EOS_ID)] if is_text(id_, tokenizer)]
            for row in ids.tolist()
        ]
        assert found == decoded(tokenizer.detokenize(known))


def test_memory_does_not_grow(times, memory, tokenizer, rng):
    """Random bytes of a thousand lengths, and all parts in any order; of the long run it says more."""

    def work(rounds: int) -> None:
        for _ in range(rounds):
            parts = [PARTS[place] for place in rng.integers(len(PARTS), size=rng.integers(1000))]
            again(tokenizer, [rng.bytes(rng.integers(1000)), b"".join(parts), b"".join(parts[::-1])])

    work(25)
    watched = memory()
    work(25 * times)
    assert watched.growth < LIMIT
