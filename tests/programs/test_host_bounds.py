"""Host code that leaves its memory is an error of the run, with op and line; nothing dies by a signal."""

import pytest

from tests.programs.test_resource_constants import TARGETS
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.programs.request import ProgramRequest
from tuner.programs.service import run_program

pytestmark = pytest.mark.mlir

FILL = text_beside(__file__, "FILL")
READ = text_beside(__file__, "READ")
ASSERT = text_beside(__file__, "ASSERT")


def run(target: str, text: str, *arguments: str) -> tuple[str, ...]:
    options = ProgramRequest(
        target=TARGETS[target], text=text, arguments=arguments, is_compared=True, is_timed=False
    )
    return tuple(each.verdict for each in run_program(options).comparisons)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("count", [9, 2000, 2000000])
def test_a_write_beyond_an_argument_is_refused_with_its_line(target: str, count: int) -> None:
    found = r"^host: memref\.store at line 6:5: found out-of-bounds access"
    with pytest.raises(CandidateError, match=found) as caught:
        run(target, FILL, f"1={count}")
    assert caught.value.stage is Stage.RUN


@pytest.mark.parametrize("target", TARGETS)
def test_all_of_an_argument_may_be_written(target: str) -> None:
    assert run(target, FILL, "1=8") == ("equal",)


@pytest.mark.parametrize("target", TARGETS)
def test_sizes_of_the_call_count(target: str) -> None:
    assert run(target, READ, "0=[8]zeros", "1=[8]range") == ("equal",)
    with pytest.raises(CandidateError, match=r"^host: memref\.load at line 3:8: "):
        run(target, READ, "0=[8]zeros", "1=[7]range")
    with pytest.raises(CandidateError, match=r"^host: memref\.store at line 4:3: "):
        run(target, READ, "0=[7]zeros", "1=[8]range")


@pytest.mark.parametrize("target", TARGETS)
def test_an_assertion_of_the_program_is_reported_with_its_text(target: str) -> None:
    with pytest.raises(CandidateError, match=r"^the program's assertion fails: n is too large$"):
        run(target, ASSERT, "1=9")
