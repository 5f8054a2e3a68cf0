"""Terms of the field: words of a private language stand in no name, comment, docstring or message."""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.source_files import MODULES, ROOT

# Word -> what the field says. docs/decisions/packages.md has the reasons.
TERMS = {
    r"judge\w*": "evaluate, verify, time",
    r"finalists?": "top trials",
    r"hopeless\w*": "early-stopped",
    r"drills?": "fault-injection test",
    r"patien(?:ce|t|tly)": "retry with timeout",
    r"strangers?": "untrusted",
    r"wish(?:es|ed)?": "warm-start point",
    r"unbroken": "uninterrupted",
    r"bests": "best trials",
    r"seats?": "slots",
    r"makers?": "compiler build",
    r"beside": "next to, in addition to",
    r"told": "reported, printed, given",
    r"(?:by|in|takes?|took) turns": "interleaved, round-robin",
    r"anchors?": "reference kernel",
    r"first_point": "initial configuration",
    r"(?:abstract_bench|bench_(?:order|settings|processes))": "runner",
    r"(?:real|untimed|fleet)_composition": "backends",
    r"groups? of runs": "campaign",
    r"groups? of operations": "fusion",
    r"(?:compiled|device)_group": "fusion",
    r"badges?": "reliability",
    r"seed configurations?": "initial configurations",
    r"(?<!-)(?:search )?space files?": "search-space file",
    r"for want of": "because ... is missing",
    r"static facts": "occupancy, bytes read per flop",
    r"relative reads": "bytes read per flop",
}
# "is no array": a native reader trips over it. "There is no array" and "is no longer" are English.
IS_NO = re.compile(
    r"(?<!there )(?<!There )\b(?:is|are|was|were) no (?:valid )?"
    r"(?:array|program|list|tensor|text|file|object|buffer|number|constant|argument|operand|multiple|product|"
    r"result|time|document|script|fusion|problem|register|address|function|module|matrix|memref|size|index|"
    r"name|path|id|int|float|option|knob|strategy|recording|package|identifier)(?:s|es|ies)?\b"
)
# Keys of documents and columns of the database, which keep their names
STORED = ("anchor_s", "anchor_drift", "seats", "maker")
# The command that says whether a script is right, and the strategy of the scripts that it was given
COMMAND = re.compile(r"tuner judge(?!\w)|[\"'`]judged?[\"'`]|--strategy judged")
# Lines with names of others: anchors of YAML and HTML, columns of the fleet's outcomes, stored origins.
OTHERS = (
    'SPACE_FILE = "space file"',
    "event.anchor",
    "# anchor ",
    "def judge(",
    "commands.judge:judge",
    "JUDGED",
    "-> anchor of",
    "fleet_outcome",
    'mapped_column("told")',
)
WORD = re.compile(rf"(?i)(?<![a-z])({'|'.join(TERMS)})(?![a-z])")
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
TOKENS = (tokenize.NAME, tokenize.STRING, tokenize.COMMENT)
PAGES = [path for path in sorted((ROOT / "docs").rglob("*.md")) if "decisions" not in path.parts]


def private_words(text: str) -> list[str]:
    for name in STORED:
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "", text)
    text = COMMAND.sub("", text)
    found = [match[0].lower() for match in WORD.finditer(CAMEL.sub("_", text))]
    return found + IS_NO.findall(" ".join(text.split()))


def words_of_source(path: Path) -> Iterator[str]:
    if not private_words(path.read_text()):
        return  # most files: no need to take them apart
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type in TOKENS and not any(other in token.line for other in OTHERS):
            for word in private_words(token.string):
                yield f"{token.start[0]}: {word}"


def test_every_module_and_page_uses_the_terms_of_the_field() -> None:
    # a migration names the columns of its time
    sources = {name: path for name, path in MODULES.items() if not name.startswith("db.migrations")}
    found = {name: list(words_of_source(path)) for name, path in sources.items()}
    found |= {page.name: private_words(page.read_text()) for page in (*PAGES, ROOT / "README.md")}
    assert {name: words for name, words in found.items() if words} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Judge, seat", ["judge", "seat"]),
        ("times of the finalists", ["finalists"]),
        ("host.anchor_s", []),
        ("taken by turns", ["by turns"]),
        ("a judgement", ["judgement"]),
        ("tuner judge -, a run `judged`", []),
        ("the adjudged, an anchored, a wished-for", ["wished"]),
        ("the space file", ["space file"]),
        ("the search-space file", []),
        ("what is no array, are no multiples", ["is no array", "are no multiples"]),
        ("there is no array, is no longer, is not an array", []),
    ],
)
def test_private_words_are_found_in_names_and_in_texts(text: str, found: list[str]) -> None:
    assert private_words(text) == found
