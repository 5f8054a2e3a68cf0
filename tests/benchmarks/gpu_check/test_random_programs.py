import pytest

from benchmarks.gpu_check.device_under_test import SIMULATOR, STUB, Bed
from benchmarks.gpu_check.program_runs import called
from benchmarks.gpu_check.random_programs import draw_programs, random_programs
from tuner.core.gpu import DeviceError


def test_as_many_programs_are_drawn_as_wanted_and_the_same_again() -> None:
    drawn = draw_programs(5, 3)
    assert len(drawn) == 5
    assert len({program.text for program in drawn}) > 1
    assert [program.text for program in draw_programs(5, 3)] == [program.text for program in drawn]


@pytest.mark.slow
@pytest.mark.mlir
@pytest.mark.parametrize("device", [SIMULATOR, STUB])
def test_random_programs_agree_with_the_host(device: str) -> None:
    assert random_programs(Bed(device, "sm_90")).words == "2 programs"


@pytest.mark.mlir
def test_a_program_that_the_device_refuses_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise DeviceError("CUDA_ERROR_LAUNCH_FAILED")

    monkeypatch.setattr("benchmarks.gpu_check.random_programs.called", refuse)
    outcome = random_programs(Bed(SIMULATOR, "sm_90"))
    assert (outcome.status, outcome.words) == ("failed", "CUDA_ERROR_LAUNCH_FAILED")
    assert "@main" in outcome.facts["program"]


@pytest.mark.slow
@pytest.mark.mlir
def test_a_program_that_gives_something_else_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(*given: object) -> tuple[object, ...]:
        return tuple(each + 1.0 for each in called(*given))  # type: ignore[arg-type] # arrays

    monkeypatch.setattr("benchmarks.gpu_check.random_programs.called", changed)
    outcome = random_programs(Bed(SIMULATOR, "sm_90"))
    assert outcome.status == "failed"
    assert "differs by" in outcome.words
    assert "@main" in outcome.facts["program"]
