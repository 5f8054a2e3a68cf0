"""What a machine has, and programs on what stands for a GPU; what differs or is reported fails."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.gpu_check import environment, programs, sanitizer_tool
from benchmarks.gpu_check.device_under_test import CUDA, SIMULATOR, STUB, Bed, bed_of
from benchmarks.gpu_check.graphs import as_device_graph, as_graph
from benchmarks.gpu_check.program_runs import Seed, called, evaluated_by, program_of
from benchmarks.gpu_check.programs import OVERLAPPING, agree, call_again
from benchmarks.gpu_check.random_programs import draw_programs, random_programs
from tests.cuda_driver import has_driver
from tests.gpu.target.simulated_cuda import FACTS, HERE
from tests.tuning.fakes import present
from tuner.core.device_programs import FORMS, DeviceOptions
from tuner.core.errors import DeviceError, UsageError
from tuner.gpu.driver import probe
from tuner.gpu.target.compiler import find_ptxas
from tuner.models.report import Comparison

RIGHT, WRONG = Comparison("result 0", 1e-7, 1e-6), Comparison("argument 1", 0.5, 1e-6)


def test_every_seed_program_is_run_in_all_its_forms_and_random_ones_are_drawn_the_same_again() -> None:
    names = [check.name for check in programs.checks(Bed(CUDA, "sm_90"))]
    assert len(names) == len(set(names))
    assert {f"{name}, {form}" for name in ("async_matmul", "two_matmuls") for form in FORMS} <= set(names)
    assert {"gpux_own_streams, streams", "gpux_users_stream on the caller's stream"} <= set(names)
    drawn, again = ([program.text for program in draw_programs(5, 3)] for _ in range(2))
    assert (len(drawn), again) == (5, drawn)
    assert len(set(drawn)) > 1


@pytest.mark.parametrize(
    ("comparisons", "reports", "status", "words"),
    [
        ([RIGHT], (), "passed", ""),
        ([RIGHT, WRONG, RIGHT], (), "failed", "argument 1 differs by 0.5, allowed 1e-06"),
        ([], (), "passed", "2 streams, nothing to compare"),
        ([], ("leak: one",), "failed", "leak: one"),
        ([RIGHT], ("race: two", "leak: one"), "failed", "race: two, and 1 more"),
    ],
)
def test_the_worst_comparison_or_what_the_simulator_reports_decides(
    comparisons: list[Comparison], reports: tuple[str, ...], status: str, words: str
) -> None:
    outcome = evaluated_by(comparisons, reports, "2 streams")
    assert outcome.status == status
    assert not words or outcome.words == words


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
def test_packages_are_reported_and_kernels_that_should_overlap_are_put_on_two_streams() -> None:
    outcome = environment.ask_packages()
    assert {"numpy", "numba-cuda-mlir", "torch-mlir"} <= set(outcome.facts["packages"])
    assert outcome.facts["llvm"] in outcome.words
    code = program_of(OVERLAPPING, Bed(STUB, "sm_90").target, DeviceOptions(device_arguments=True))
    assert code.stream_slots == 2
    assert code.llvm.count(".entry") == 1  # launched twice


def refuse(*_: object) -> None:
    raise DeviceError("CUDA_ERROR_LAUNCH_FAILED")


def changed(*given: object) -> tuple[object, ...]:
    return tuple(each + 1.0 for each in called(*given))  # type: ignore[arg-type] # arrays


@pytest.mark.mlir
@pytest.mark.parametrize(
    ("device_call", "words"),
    [(refuse, "^CUDA_ERROR_LAUNCH_FAILED$"), pytest.param(changed, "differs by", marks=pytest.mark.slow)],
)
def test_a_program_that_the_device_refuses_or_that_gives_something_else_is_reported(
    monkeypatch: pytest.MonkeyPatch, device_call: object, words: str
) -> None:
    monkeypatch.setattr("benchmarks.gpu_check.random_programs.called", device_call)
    outcome = random_programs(Bed(SIMULATOR, "sm_90"))
    assert outcome.status == "failed"
    assert re.search(words, outcome.words)
    assert "@main" in outcome.facts["program"]


@pytest.mark.mlir
@pytest.mark.parametrize("device", [SIMULATOR, STUB])
@pytest.mark.slow
def test_random_programs_agree_with_the_host_and_a_graph_reads_memory_anew(device: str) -> None:
    assert random_programs(Bed(device, "sm_90")).words == "2 programs"
    outcome = as_device_graph(Bed(device, "sm_90"))
    assert (outcome.status, outcome.words) == ("passed", "3 launches of one graph")
    assert device != STUB or as_graph(Bed(STUB, "sm_90")).status == "passed"  # on host memory


def test_code_is_for_the_gpu_or_the_simulator_and_the_chip_is_that_of_the_gpu_here_if_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    targets = [Bed(device, "sm_80").target.text for device in (CUDA, SIMULATOR, STUB)]
    assert targets == ["cuda:sm_80", "simulator:sm_80", "simulator:sm_80"]
    assert present(Bed(STUB, "sm_90").here()).facts.chip == Bed(STUB, "sm_90").open().chip == "sm_90"
    assert Bed(SIMULATOR, "sm_90").here() is None
    outcome = environment.ask_gpu(Bed(STUB, "sm_90"))
    assert (outcome.status, outcome.facts["gpu"]["chip"]) == ("passed", "sm_90")
    assert environment.ask_gpu(Bed(SIMULATOR, "sm_80")).words == "PTX simulator, sm_80"
    if not has_driver():
        with pytest.raises(DeviceError, match="no CUDA driver"):
            bed_of(CUDA)
    monkeypatch.setattr(probe, "describe_gpu", lambda: replace(HERE, facts=replace(FACTS, chip="sm_80")))
    assert bed_of(CUDA) == Bed(CUDA, "sm_80")
    monkeypatch.setattr(probe, "describe_gpu", lambda: replace(HERE, facts=replace(FACTS, chip="sm_70")))
    with pytest.raises(DeviceError, match="GPU: found Simulated GPU, sm_70, allowed sm_80"):
        bed_of(CUDA)


@pytest.mark.skipif(find_ptxas() is None, reason="there is no ptxas here")
def test_a_chip_that_is_not_known_is_a_failure() -> None:
    assert environment.ask_ptxas(Bed(SIMULATOR, "sm_90")).status == "passed"
    with pytest.raises(UsageError, match="chip: found 'sm_33', allowed"):
        environment.ask_ptxas(Bed(SIMULATOR, "sm_33"))


@pytest.mark.parametrize("device", [SIMULATOR, STUB])
def test_stand_ins_have_no_clock_no_sensors_and_no_baseline(device: str) -> None:
    bed = Bed(device, "sm_90")
    with pytest.raises(DeviceError, match=f"device: found {device}, allowed cuda: no clock"):
        bed.gpu()
    assert environment.ask_sensors(bed).words == f"no sensors on the {device}"
    assert environment.ask_cublas(bed).words == f"no cuBLAS on the {device}"
    (check,) = (check for check in programs.checks(bed) if check.name.startswith("overlap"))
    assert check.ask().status == "skipped"


def test_the_sanitizer_is_found_as_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "locate", lambda name: None)
    monkeypatch.setattr(sanitizer_tool, "SANITIZER_PLACES", (tmp_path / "none", tmp_path))
    assert environment.ask_sanitizer().status == "skipped"
    tool = tmp_path / "compute-sanitizer"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    assert environment.find_sanitizer() == tool
