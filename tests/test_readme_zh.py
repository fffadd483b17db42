"""The Chinese README says what the English one says: all that does not depend on the language is compared."""

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMES = ("README.md", "README.zh.md")
ENGLISH, CHINESE = ((ROOT / name).read_text(encoding="utf-8") for name in NAMES)

HEADING, ROW, ITEM = re.compile(r"(#+) (.*)"), re.compile(r"\|.*"), re.compile(r" *- .*")
CODE = re.compile(r"`([^`]+)`")
BAR = re.compile(r"(?<!\\)[|]")
LINK = re.compile(r"\]\(([^)]*)\)")
FIGURE = re.compile(r"\d+(?:[.,]\d+)*")


@dataclasses.dataclass(frozen=True)
class Part:
    """A heading, a row of a table, an item of a list, a paragraph or a block of code."""

    kind: str
    text: str


def parts(markdown: str) -> Iterator[Part]:
    """Take a text apart; a paragraph or item becomes one line, as each language breaks lines its way."""
    lines = iter(markdown.splitlines())
    kind, text = "", ""  # of the paragraph or item that may go on
    for line in lines:
        goes_on = text and line and not any(form.fullmatch(line) for form in (HEADING, ROW, ITEM))
        if goes_on and not line.startswith("```"):
            text += f" {line.strip()}"
            continue
        if text:
            yield Part(kind, text)
        kind, text = "", ""
        if line.startswith("```"):
            block = [line]
            while block[-1] != "```" or len(block) == 1:
                block.append(next(lines, "```"))
            yield Part("code block", "\n".join(block))
        elif heading := HEADING.fullmatch(line):
            yield Part(f"heading of level {len(heading[1])}", heading[2])
        elif ROW.fullmatch(line):
            yield Part(f"table row of {len(BAR.findall(line)) - 1} cells", line)
        elif line:
            kind, text = "list item" if ITEM.fullmatch(line) else "paragraph", line.strip()
    if text:
        yield Part(kind, text)


def sections(markdown: str) -> list[list[Part]]:
    """Return the sections of a text; the heading is the first part of each."""
    found: list[list[Part]] = []
    for part in parts(markdown):
        if part.kind.startswith("heading") or not found:
            found.append([])
        found[-1].append(part)
    return found


def outline(sections: list[list[Part]]) -> str:
    """Return the headings, for a message."""
    return "; ".join(f"{section[0].text} ({section[0].kind})" for section in sections)


def code_spans(text: str) -> Counter[str]:
    """Count inline code; that a word comes twice is to be kept, so that it is a multiset."""
    return Counter(CODE.findall(text))


def links(text: str) -> Counter[str]:
    """Count the targets of links. The line at the top links each README to the other one."""
    other = "the other README"
    return Counter(other if target in NAMES else target for target in LINK.findall(CODE.sub("", text)))


def figures(text: str) -> Counter[str]:
    """Count the numbers in digits outside code and links' targets; those in words are the language's."""
    return Counter(FIGURE.findall(LINK.sub("]", CODE.sub("", text))))


def only(counts: Counter[str], others: Counter[str]) -> str:
    """Say what is in a multiset and not in another."""
    return ", ".join(sorted((counts - others).elements())) or "nothing"


def only_in(english: str, chinese: str) -> str:
    """Say what each README has for itself."""
    return f"only in {NAMES[0]}: {english}; only in {NAMES[1]}: {chinese}"


def differences_of_parts(english: Part, chinese: Part) -> Iterator[str]:
    """Say where two parts of one kind differ, other than in language."""
    if english.kind == "code block":
        if english.text != chinese.text:
            for line, other in zip_longest(
                english.text.splitlines(), chinese.text.splitlines(), fillvalue=""
            ):
                if line != other:
                    yield f"code: {only_in(line, other)}"
        return
    for what, find in (("figures", figures), ("inline code", code_spans), ("links", links)):
        ours, theirs = find(english.text), find(chinese.text)
        if ours != theirs:
            yield f"{what}: {only_in(only(ours, theirs), only(theirs, ours))}"


def differences_of_sections(english: Sequence[Part], chinese: Sequence[Part]) -> Iterator[str]:
    """Say where two sections differ; if one has a part more, the first difference shows it."""
    where = f"section '{english[0].text}' ('{chinese[0].text}')"
    for part, other in zip_longest(english, chinese, fillvalue=Part("nothing", "")):
        if part.kind != other.kind:
            yield f"{where}: {only_in(part.kind, other.kind)}: {part.text or other.text}"
            return
        for difference in differences_of_parts(part, other):
            yield f"{where}, {part.kind}, {difference}, in: {part.text.splitlines()[0][:80]}"


def differences(english: str, chinese: str) -> list[str]:
    """Say where the two READMEs differ."""
    ours, theirs = sections(english), sections(chinese)
    found = []
    if len(ours) != len(theirs):
        found.append(f"{len(ours)} and {len(theirs)} headings: {outline(ours)} / {outline(theirs)}")
    for section, other in zip(ours, theirs, strict=False):
        differing = list(differences_of_sections(section, other))
        found += differing
        if differing and len(ours) != len(theirs):
            break  # what follows stands beside the wrong section
    return found


def test_the_two_are_in_step() -> None:
    assert "\n".join(differences(ENGLISH, CHINESE)) == ""


def test_nothing_stands_before_the_title() -> None:
    for text in (ENGLISH, CHINESE):
        assert text.startswith("# keras_seq2seq\n")


def test_each_links_to_the_other_below_its_title() -> None:
    assert f"]({NAMES[1]})" in ENGLISH.splitlines()[2]
    assert f"]({NAMES[0]})" in CHINESE.splitlines()[2]


def doctored(text: str, pattern: str, by: str) -> str:
    """Replace the first match of a pattern; there must be one."""
    new = re.sub(pattern, by, text, count=1, flags=re.MULTILINE)
    assert new != text
    return new


MEASURED = "section 'Measured'"
CASES = {
    "a changed figure": (r"(BLEU )[\d.]+", r"\g<1>99.5", f"{MEASURED}.*table row.*figures.*99[.]5"),
    "a figure of another row": (
        r"(BLEU )([\d.]+)((?:.|\n)*?BLEU )([\d.]+)",
        r"\g<1>\g<4>\g<3>\g<2>",
        f"{MEASURED}.*table row.*figures",
    ),
    "a figure in digits that was a word": (r"(^Apache 2.0)", r"\1 1", "section 'Licence'.*figures.*: 1"),
    "a dropped heading": (
        r"^## .*\n",
        "",
        r"\d+ and \d+ headings: .*Install and run.*\nsection 'keras_seq2seq'",
    ),
    "a heading of another level": (r"^## ", "### ", "section 'Install and run'.*heading of level 2.*level 3"),
    "a changed command": (
        r"pip install -e [.]",
        "pip install .",
        "section 'Install and run'.*code: .*install [.]",
    ),
    "a changed line of code": (r"Beam\(5\)", "Beam(4)", r"section 'Ten lines.*code: .*Beam\(5\).*Beam\(4\)"),
    "another language of a block": (r"^```python", "```py", "section 'Ten lines.*code: .*```python"),
    "a dropped block": (r"^```bash\n(?:.|\n)*?\n```\n", "", "section 'Install and run'.*code block"),
    "a command of the table": (r"`python examples/tagging.py`", "`tagging.py`", f"{MEASURED}.*inline code"),
    "code no longer marked": (
        r"`warmup=True`",
        "warmup=True",
        "section 'What is in it'.*inline code.*warmup",
    ),
    "a link to elsewhere": (
        r"https://tatoeba.org",
        "https://tatoeba.com",
        "section 'Data'.*links.*tatoeba.com",
    ),
    "no link to the other README": (r"\[\S+\]\(README.*?\)", "", "section 'keras_seq2seq'.*links.*the other"),
    "a dropped item": (r"^- [*][*].*\n(?:  .*\n)*", "", "section 'What is in it'.*list item.*paragraph"),
    "a dropped row": (r"^[|].*tagging.*\n", "", f"{MEASURED}.*table row of 4 cells.*paragraph.*tagging"),
    "a dropped column": (r"^[|](.*?)[|](.*tagging.*)", r"|\2", f"{MEASURED}.*table row of 4.*row of 3 cells"),
    "a dropped paragraph": (r"^nanoGPT(?:.+\n)+\n", "", f"{MEASURED}.*paragraph.*nothing"),
}


@pytest.mark.parametrize(("pattern", "by", "said"), CASES.values(), ids=CASES.keys())
def test_what_falls_out_of_step_is_named(pattern: str, by: str, said: str) -> None:
    found = differences(ENGLISH, doctored(CHINESE, pattern, by))
    assert re.search(said, "\n".join(found)), found


@pytest.mark.parametrize(("pattern", "by"), [case[:2] for case in CASES.values()], ids=CASES.keys())
def test_what_changes_in_the_english_one_is_found(pattern: str, by: str) -> None:
    assert differences(doctored(ENGLISH, pattern, by), CHINESE)
