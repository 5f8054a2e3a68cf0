"""The README shows results first, then what the commands of its quick start print; pictures fetch nothing."""

import re
from xml.etree import ElementTree

from benchmarks.terminal_recording import STILL_FORMAT
from tests.docs.guide import ROOT, blocks_of

README = (ROOT / "README.md").read_text()
PICTURE = (ROOT / "docs" / "first-run.svg").read_text()
WORDS = "".join(ElementTree.fromstring(PICTURE).itertext()).replace("\N{NO-BREAK SPACE}", " ")


def test_the_picture_is_of_the_quickstarts_commands() -> None:
    quickstart = blocks_of(README)[0].text.splitlines()
    typed = [line.split(" #")[0].strip() for line in quickstart if line.startswith("tuner ")]
    assert len(quickstart) == 5
    assert len(typed) == 2
    assert all(f"$ {command}" in WORDS for command in typed)
    assert README.index("## Quick start") < README.index("(docs/first-run.svg)") < README.index("## What")


def test_the_first_picture_shows_results() -> None:
    assert re.findall(r"!\[[^]]*\]\(([^)]*)\)", README)[0] == "docs/concepts/ratios.svg"
    assert README.index("(docs/concepts/ratios.svg)") < README.index("## ")


def test_the_picture_shows_the_lines_that_a_run_ends_with() -> None:
    output = ROOT / "tuner" / "results" / "output"
    source = "".join((output / name).read_text() for name in ("run_result.py", "formatting.py"))
    for label in ("best", "knobs", "time", "speed", "roofline", "portable", "trials", "next"):
        assert re.search(rf"{label:<10}", WORDS), label
        assert f'"{label:<10}' in source, label


def test_the_picture_fetches_nothing() -> None:
    assert "font-face" not in PICTURE
    assert "font-face" not in STILL_FORMAT
    assert not re.search(r"(?:href|src)=|url\((?!#)", PICTURE)
