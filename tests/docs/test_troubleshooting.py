"""The page on troubleshooting quotes messages that are printed, and every stage at which a trial may fail."""

import re
from pathlib import Path

import pytest

from tests.docs.guide import ROOT, blocks_of
from tuner.core.errors import Stage

PAGE = (ROOT / "docs" / "guides" / "troubleshooting.md").read_text()
QUOTED = [line for block in blocks_of(PAGE) if block.language == "text" for line in block.text.splitlines()]


def sources() -> str:
    return "\n".join(path.read_text() for path in Path(ROOT / "tuner").rglob("*.py"))


@pytest.mark.parametrize("message", QUOTED)
def test_a_quoted_message_is_one_of_the_tuners(message: str) -> None:
    assert message in sources()


def test_every_stage_has_its_row() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == [stage.value for stage in Stage]


def test_there_are_messages_quoted() -> None:
    assert len(QUOTED) >= 2
