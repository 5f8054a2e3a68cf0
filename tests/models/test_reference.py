"""What --compare compares with: the text as written, or loops where that is not interpreted."""

from pathlib import Path

import pytest

from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.core.errors import CandidateError, Stage
from tuner.gpu.interpreter import host_functions
from tuner.gpu.interpreter.host_functions import NotInterpretedError
from tuner.gpu.ports import runtime
from tuner.models.lowering import read_program
from tuner.models.reference import AS_LOOPS, AS_WRITTEN
from tuner.models.report import ProgramReport
from tuner.models.request import ProgramRequest
from tuner.models.run_work import run_program

pytestmark = pytest.mark.mlir
UPSTREAM = Path(__file__).parent / "upstream"
WRONG = {
    "219456_while_passes_a_result_twice": (),
    "215696_ceildiv_of_the_least_integer": ("0=-9223372036854775808", "1=7"),
    "129415_masked_reduction_of_no_dimension": (),
}


def compared(text: str, *arguments: str, target: str = "cpu") -> ProgramReport:
    request = ProgramRequest(
        text, TargetName.parse(target), arguments=arguments, is_compared=True, is_timed=False
    )
    return run_program(request)


@pytest.mark.parametrize("name", WRONG)
def test_what_upstream_compiles_wrongly_is_found(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (UPSTREAM / f"{name}.mlir").read_text()
    report = compared(text, *WRONG[name])
    assert (report.is_right, report.reference) == (True, AS_WRITTEN)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # which has the right code
    monkeypatch.setattr(read_program, "avoid_miscompilations", lambda _: None)  # as before it was there
    assert "WRONG" in {one.verdict for one in compared(text, *WRONG[name]).comparisons}


def test_a_program_with_much_work_or_an_unknown_operation_has_loops_as_reference_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host_functions, "OPERATIONS_LIMIT", 4_000)  # 400,000 take seconds
    report = compared(text_beside(__file__, "SUMS"), "1=10000")
    assert report.is_right
    assert report.reference == f"{AS_LOOPS} (not as written: it executes more than 4,000 operations)"
    assert compared(text_beside(__file__, "SUMS"), "1=100").reference == AS_WRITTEN
    report = compared(text_beside(__file__, "COMPLEX"))
    assert report.is_right
    why = "complex.create at line 2:8: found no meaning on the host"
    assert report.reference == f"{AS_LOOPS} (not as written: {why})"


def test_both_references_of_kernels_and_of_tensors_are_equal_on_the_simulator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = text_beside(__file__, "EXTREMES")
    assert compared(text, target="simulator:sm_90").reference == AS_WRITTEN

    def nothing_interpreted(text: str, entry: str) -> None:
        raise NotInterpretedError("nothing is")

    monkeypatch.setattr(runtime, "read_function", nothing_interpreted)
    report = compared(text, target="simulator:sm_90")
    assert report.is_right
    assert report.reference == f"{AS_LOOPS} (not as written: nothing is)"


def test_a_text_without_a_defined_result_has_no_reference() -> None:
    with pytest.raises(
        CandidateError, match=r"^as written: arith\.divsi at .*: found a division by zero$"
    ) as caught:
        compared(text_beside(__file__, "DIVISION"), "0=7", "1=0")
    assert caught.value.stage is Stage.RUN
