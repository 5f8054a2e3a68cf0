"""What a kernel has printed before it fails is printed: before an assertion, a fault, a loop without end."""

import pytest

from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.core.errors import CandidateError, TunerError
from tuner.programs.request import ProgramRequest

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.mlir.bindings")

PROGRAM = text_beside(__file__, "PROGRAM")
ASSERTION = 'cf.assert %wrong, "it is wrong"'
FAULT = "memref.store %one, %memory[%c9] : memref<2xf32>"
ENDLESS = text_beside(__file__, "ENDLESS")
BEYOND = "out of bounds|found .*allowed"
ENDS = "kernel fails: .*endless: found more than 2048 (basic blocks|iterations)"
EXPECTED = "before the kernel\nthread 0 was here\nthread 1 was here\n"


def request(failure: str, target: str) -> ProgramRequest:
    return ProgramRequest(PROGRAM.replace("FAILURE", failure), TargetName.parse(target), is_timed=False)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("target", ["simulator:sm_90", "cpu"])
@pytest.mark.parametrize(("failure", "reason"), [(ASSERTION, "'it is wrong'"), (FAULT, BEYOND)])
def test_what_was_printed_is_kept(failure: str, reason: str, target: str) -> None:
    from tuner.programs.service import run_program

    printed: list[str] = []
    with pytest.raises(CandidateError, match=reason):
        run_program(request(failure, target), printed)
    assert "".join(printed) == EXPECTED


@pytest.mark.slow
@pytest.mark.parametrize("target", ["simulator:sm_90", "cpu"])
def test_a_loop_without_end_is_stopped_by_a_limit(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tuner.programs.service import run_program

    monkeypatch.setattr("tuner.simulator.launch.STEPS_LIMIT", 1 << 11)
    monkeypatch.setattr("tuner.simulator.launch.LONG_TURN", 1 << 11)
    monkeypatch.setattr("tuner.programs.interpreter.decoding.ITERATIONS_LIMIT", 1 << 11)
    monkeypatch.setattr("tuner.programs.interpreter.decoding.CHECKED", 1 << 11)
    printed: list[str] = []
    with pytest.raises(CandidateError, match=ENDS):
        run_program(request(ENDLESS, target), printed)
    assert "".join(printed) == EXPECTED


@pytest.mark.slow
def test_the_process_that_ran_the_program_hands_on_what_it_printed() -> None:
    from tuner.programs.service import run_in_child

    shown: list[str] = []
    with pytest.raises(TunerError, match="'it is wrong'"):
        run_in_child(request(ASSERTION, "simulator:sm_90"), 60.0, shown.append)
    assert shown == [EXPECTED]
