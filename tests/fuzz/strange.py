"""What the fuzz tests feed: text that is meant to do harm, and files with some damage."""

from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import strategies as st

__all__ = ["BYTES", "DAMAGE", "PARTS", "Damage", "outcome"]

# What splits lines elsewhere, what programs in C stop at, what spells a control token, what is no UTF-8.
_TEXT = [
    "a", "the sea", "25", "\n", "\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\0",
    "\t", " ", "\u3000", "\u200b", "\u2581", "\u2585", "\u2047", "\ufeff", "\ufffd", "\ufffe", "\u202e",
    "e\u0301", "\u0301", "他住在", "😀", "👨\u200d👩\u200d👧", "\U0010ffff", "İ", "ß", "<s>", "</s>", "<pad>",
    "<unk>", "[UNK]", "[PAD]", "##", "##a", "<0x0A>", "⟦eos⟧", "⟦bos⟧", "⟦pad⟧", "%s", "\\", "\\0", "\x1b[2J",
]  # fmt: skip
_NO_UTF8 = [b"\xff", b"\xc3", b"\xc0\xaf", b"\xe4\xbd", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf0\x9f"]
PARTS = [text.encode() for text in _TEXT] + _NO_UTF8


def _encoded(codes: list[int]) -> bytes:
    """Encode code points, surrogates too, which are no UTF-8."""
    return "".join(map(chr, codes)).encode("utf-8", "surrogatepass")


# Bytes that are text, nearly text, or nothing of the kind.
BYTES = st.one_of(
    st.lists(st.sampled_from(PARTS), max_size=12).map(b"".join),
    st.lists(st.integers(0, 0x10FFFF), max_size=20).map(_encoded),
    st.binary(max_size=40),
    st.tuples(st.sampled_from(PARTS), st.integers(1, 3000)).map(lambda pair: pair[0] * pair[1]),
)


class Damage(NamedTuple):
    """What happens to the content of a file at a place."""

    kind: str  # "cut", "flip", "drop", "insert" or "wipe"
    place: float  # from 0 to 1
    what: bytes

    def __call__(self, content: bytes) -> bytes:
        """Return the content, damaged; it may be the same if zeros are wiped."""
        place, size = int(self.place * len(content)), len(self.what)
        before, after = content[:place], content[place:]
        if self.kind == "cut":
            return before
        if self.kind == "flip":
            mask = self.what[: len(after)]
            return before + bytes(a ^ b for a, b in zip(after, mask, strict=False)) + after[len(mask) :]
        if self.kind == "drop":
            return before + after[size:]
        if self.kind == "insert":
            return before + self.what + after
        return before + bytes(min(size, len(after))) + after[size:]


# Single bits and bytes above all, as broken disks and transfers leave them.
DAMAGE = st.builds(
    Damage,
    st.sampled_from(["flip", "cut", "drop", "insert", "wipe"]),
    st.floats(0, 1, exclude_max=True),
    st.one_of(st.sampled_from([bytes([1 << bit]) for bit in range(8)]), st.binary(min_size=1, max_size=64)),
)


def outcome(read: Callable[[], Any]) -> tuple[Any, str]:
    """Return what a reader gives, and no error; or None, and the one line that it raises."""
    try:
        return read(), ""
    except (ValueError, FileNotFoundError) as error:
        return None, _one_line(error)


def _one_line(error: BaseException) -> str:
    """Return what an error says, which must be one line and not empty."""
    message = str(error)
    assert len(message.splitlines()) == 1, message
    return message
