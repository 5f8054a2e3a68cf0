"""Programs on what stands for a GPU; what differs or is reported fails."""

import pytest

from benchmarks.gpu_check.device_under_test import CUDA, SIMULATOR, STUB, Bed
from benchmarks.gpu_check.program_runs import Seed, evaluated_by, program_of
from benchmarks.gpu_check.programs import OVERLAPPING, agree, call_again, checks
from tuner.programs.request import FORMS, Comparison, DeviceOptions

RIGHT, WRONG = Comparison("result 0", 1e-7, 1e-6), Comparison("argument 1", 0.5, 1e-6)


def test_every_seed_program_is_run_in_all_its_forms() -> None:
    names = [check.name for check in checks(Bed(CUDA, "sm_90"))]
    assert len(names) == len(set(names))
    for example in ("async_matmul", "two_matmuls"):
        assert {f"{example}, {form}" for form in FORMS} <= set(names)
    assert {"gpux_own_streams, streams", "gpux_users_stream on the caller's stream"} <= set(names)


def test_the_worst_comparison_decides() -> None:
    assert evaluated_by([RIGHT], (), "2 streams").status == "passed"
    outcome = evaluated_by([RIGHT, WRONG, RIGHT], (), "2 streams")
    assert (outcome.status, outcome.words) == ("failed", "argument 1 differs by 0.5, allowed 1e-06")


def test_a_program_that_gives_nothing_is_evaluated_by_what_is_reported() -> None:
    assert evaluated_by([], (), "1 program").words == "1 program, nothing to compare"
    assert evaluated_by([], ("leak: one",), "1 program").status == "failed"


def test_what_the_simulator_reports_is_a_failure() -> None:
    outcome = evaluated_by([RIGHT], ("race: two", "leak: one"), "2 streams")
    assert (outcome.status, outcome.words) == ("failed", "race: two, and 1 more")


@pytest.mark.mlir
@pytest.mark.parametrize("device", [SIMULATOR, STUB])
def test_a_program_agrees_with_the_simulator(device: str) -> None:
    outcome = agree(Bed(device, "sm_90"), Seed("gpux_own_streams"), "streams")
    assert (outcome.status, outcome.words) == ("passed", "3 streams")


@pytest.mark.slow
@pytest.mark.mlir
@pytest.mark.parametrize(("seed", "modules"), [("async_matmul", 1), ("two_matmuls", 3)])
def test_later_calls_create_nothing(seed: str, modules: int) -> None:
    outcome = call_again(Bed(STUB, "sm_90"), Seed(seed))
    assert outcome.status == "passed"
    assert outcome.facts["modules"] == [modules] * 3  # one of each kernel
    assert len(set(outcome.facts["streams"])) == 1


@pytest.mark.mlir
def test_the_two_kernels_that_should_overlap_are_put_on_two_streams() -> None:
    code = program_of(OVERLAPPING, Bed(STUB, "sm_90").target, DeviceOptions(device_arguments=True))
    assert code.stream_slots == 2
    assert code.llvm.count(".entry") == 1  # launched twice


def test_without_a_clock_nothing_is_said_of_overlap() -> None:
    (check,) = (check for check in checks(Bed(STUB, "sm_90")) if check.name.startswith("overlap"))
    assert check.ask().status == "skipped"
