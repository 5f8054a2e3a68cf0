"""The commands about whole programs run as the pages print them, in this process in place of a child."""

import itertools
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Tuner
from tests.docs.guide import ROOT, blocks_of
from tests.docs.test_examples import EXAMPLES, PAGES_RUN_BY_OTHER_TESTS
from tuner.targets.registry import real_backends

pytestmark = pytest.mark.mlir

PIPED = ("run", "-", "--target", "simulator")  # behind "tuner lower ... |"
HERE = [each.words for each in EXAMPLES if each.place not in PAGES_RUN_BY_OTHER_TESTS]
RUN = tuple(
    dict.fromkeys(words for words in HERE if words[0] == "run" and "simulator" in words and words != PIPED)
)
SHOWN = {  # commands and what pages show of their output
    asked.text.strip(): shown.text
    for page in ("examples/README.md", "docs/getting-started/first-program.md", "docs/guides/programs.md")
    for asked, shown in itertools.pairwise(blocks_of((ROOT / page).read_text()))
    if asked.text.startswith("tuner ") and shown.language == "text"
}
ERROR = re.compile(r"error \S+,")  # differs between processors
LOWERED = tuple(  # programs; operations are in tests/cli/commands/test_run.py
    dict.fromkeys(
        each.words for each in EXAMPLES if each.words[0] == "lower" and each.words[1].endswith((".mlir", "-"))
    )
)


def called(_name: str, work: Callable[[], Any], _timeout_s: float, **_options: Any) -> Any:
    """Calls a function here: what it imports is shared by all tests."""
    return work()


@pytest.fixture
def tuner(here: Path, monkeypatch: pytest.MonkeyPatch) -> Tuner:
    monkeypatch.setattr("tuner.models.service.call_in_child", called)
    for folder in ("examples", "tests"):
        (here / folder).symlink_to(ROOT / folder)
    shutil.copy(ROOT / "examples" / "async_matmul.mlir", here / "payload.mlir")
    return Tuner(here / "results.db", real_backends())


@pytest.mark.drawn(2)
@pytest.mark.parametrize("options", RUN, ids=" ".join)
def test_a_program_is_run_on_the_simulator_without_defects(tuner: Tuner, options: tuple[str, ...]) -> None:
    out = tuner.done(*options).out
    assert out.endswith("checked 0 defects; no times: the simulator has no clock\n")
    assert ("call    " in out, "equal   " in out) == ("--trace" in options, "--compare" in options)


@pytest.mark.slow
@pytest.mark.parametrize("options", LOWERED, ids=" ".join)
def test_a_program_is_lowered_to_a_step(tuner: Tuner, options: tuple[str, ...]) -> None:
    text = tuner.done(*options).out
    assert text.startswith("module")
    if "gpux" in options:
        assert "checked 0 defects" in tuner.done(*PIPED, stdin=text).out


@pytest.mark.slow
@pytest.mark.parametrize("command", SHOWN)
def test_a_page_shows_what_a_command_prints(tuner: Tuner, command: str) -> None:
    printed = ERROR.sub("", tuner.done(*shlex.split(command)[1:]).out).splitlines()
    assert [line for line in ERROR.sub("", SHOWN[command]).splitlines() if line not in printed] == []


def test_every_program_of_the_examples_is_shown_with_its_output() -> None:
    programs = {path.name for path in (ROOT / "examples").glob("*.mlir")} - {"matmul_knobs.mlir"}
    shown = {Path(shlex.split(command)[2]).name for command in SHOWN if "examples/" in command}
    assert shown >= programs
    assert any("examples/matmul_knobs.mlir" in command for command in SHOWN)
