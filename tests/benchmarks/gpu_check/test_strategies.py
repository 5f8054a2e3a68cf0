"""The GPU against its simulator, and under a stand-in for compute-sanitizer: each disagreement is found."""

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.gpu_check import sanitizer
from benchmarks.gpu_check.device_runs import run_on
from benchmarks.gpu_check.device_under_test import CUDA, SIMULATOR, STUB, Bed
from benchmarks.gpu_check.points import Case, built, cases, gpu_strategies
from benchmarks.gpu_check.sanitizer import watch
from benchmarks.gpu_check.sanitizer_tool import verdict
from benchmarks.gpu_check.strategies import agree, checks, compared
from tuner.core.epilogues import EPILOGUES
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.payload.drawing import draw, draw_base
from tuner.payload.reference import Inputs

WGMMA = "matmul_gpu_wgmma"
WGMMA_LACKS = {(dtype, layout) for dtype in ("i8", "e4m3", "e5m2") for layout in ("nn", "tn")}
NAIVE = Case("matmul_gpu_naive", Matmul(9, 33, 5))


def inputs(problem: Problem) -> Inputs:
    rng = np.random.default_rng(0)
    return draw(problem, draw_base(problem, rng), rng)


INPUTS = inputs(Matmul(4, 6, 8))
RIGHT = INPUTS.expected.astype(np.float32)


def test_every_strategy_has_every_dtype_and_layout_and_odd_sizes_also_in_a_list_cut_short() -> None:
    for entry in gpu_strategies():
        problems = [case.problem for case in cases("sm_90a") if case.strategy == entry.name]
        kinds = {(problem.dtype, problem.layout) for problem in problems}
        every = {(dtype, layout) for dtype in entry.dtypes for layout in entry.layouts}
        assert kinds == every - (WGMMA_LACKS if entry.name == WGMMA else set())
        assert {problem.epilogue for problem in problems} <= set(entry.epilogues)
        assert any(size % 8 for problem in problems for size in problem.sizes)
        assert len(problems) >= 3
    assert {case.problem.epilogue for case in cases("sm_90a")} == set(EPILOGUES)
    every_name = [case.name for case in cases("sm_90a")]
    assert len(every_name) == len(set(every_name))
    names = [entry.name for entry in gpu_strategies() if entry.name != WGMMA]
    assert [case.strategy for case in cases("sm_90")[: len(names)]] == names
    assert WGMMA in [case.strategy for case in cases("sm_90a")[: len(names) + 1]]
    quick = checks(Bed(SIMULATOR, "sm_90", is_quick=True))
    assert len(quick) == len(names) < len(checks(Bed(SIMULATOR, "sm_90"))) < len(checks(Bed(CUDA, "sm_90")))
    (check,) = sanitizer.checks(Bed(SIMULATOR, "sm_90"))
    assert check.ask().status == "skipped"


def test_equal_results_agree_and_wrong_ones_of_the_simulator_or_too_far_apart_are_reported() -> None:
    outcome = compared(INPUTS, RIGHT, RIGHT.copy(), {})
    assert (outcome.status, outcome.facts["other_bits"], outcome.facts["difference"]) == ("passed", 0, 0.0)
    found, simulated = RIGHT.copy(), RIGHT.copy()
    found[1, 2] = np.nextafter(found[1, 2], np.float32(np.inf))
    outcome = compared(INPUTS, found, RIGHT, {})
    assert (outcome.status, outcome.facts["other_bits"]) == ("passed", 1)
    simulated[0, 0] += 100.0
    assert compared(INPUTS, RIGHT, simulated, {}).words.startswith("the simulator is wrong: 1 of 24")
    off = (0.9 * INPUTS.tolerance).astype(np.float32)
    outcome = compared(INPUTS, RIGHT + off, RIGHT - off, {})
    assert (outcome.status, outcome.facts["difference"]) == ("failed", pytest.approx(1.8, rel=0.1))
    assert len(outcome.facts["disagreements"]) == 5


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 100.0])
def test_a_wrong_element_of_the_gpu_is_reported_with_its_place(wrong: float) -> None:
    found = RIGHT.copy()
    found[3, 5] = wrong
    outcome = compared(INPUTS, found, RIGHT, {})
    assert outcome.status == "failed"
    assert outcome.words.startswith("the GPU is wrong: 1 of 24 elements are wrong; worst at [3, 5]")
    (place,) = outcome.facts["disagreements"]
    assert (place["row"], place["column"], place["gpu"]) == (3, 5, str(np.float32(wrong)))


@pytest.mark.mlir
@pytest.mark.parametrize("device", [SIMULATOR, STUB])
def test_a_point_agrees_on_what_stands_for_a_gpu(device: str) -> None:
    bed = Bed(device, "sm_90")
    outcome = agree(NAIVE, bed.open(), *built(NAIVE, bed.target))
    assert (outcome.status, outcome.facts["other_bits"], outcome.facts["elements"]) == ("passed", 0, 9 * 33)


@pytest.mark.mlir
def test_a_kernel_that_leaves_elements_out_is_found_and_writes_beyond_c_are_counted() -> None:
    bed = Bed(SIMULATOR, "sm_90")
    _, program = built(Case(NAIVE.strategy, Matmul(9, 33, 4)), bed.target)
    wanted = inputs(NAIVE.problem)
    found, stray_bytes = run_on(SimulatedDevice("sm_90"), program, wanted)
    assert stray_bytes == 0
    assert compared(wanted, found, wanted.expected.astype(np.float32), {}).status == "failed"
    _, program = built(Case("matmul_gpu_mma_sync", Matmul(8, 8, 8, "f16")), bed.target)
    narrow = inputs(Matmul(8, 8, 8, "f16", output="f16"))
    assert run_on(SimulatedDevice("sm_90"), program, narrow)[1] == 8 * 8 * 2


CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
WRONG = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at matmul_kernel+0x3f0
========= ERROR SUMMARY: 2 errors
"""
HAZARDS = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at matmul_kernel+0x510 and Read access
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
# Printed on a machine without a driver
NOTHING = """========= COMPUTE-SANITIZER
========= Error: process didn't terminate successfully
========= Error: Target application terminated before first instrumented API call
"""


@pytest.mark.parametrize(
    ("code", "text", "status", "options"),
    [
        (0, CLEAN, "passed", "tool: 0 errors, exit code 0"),
        (1, CLEAN, "failed", "tool: 0 errors, exit code 1"),
        (9, WRONG, "failed", "tool: 2 errors, exit code 9: Invalid __global__ write of size 4 bytes"),
        (0, HAZARDS, "failed", "tool: 1 hazard, exit code 0: Error: Race reported between Write access at"),
        (255, NOTHING, "failed", "tool: no summary, exit code 255: Error: Target application terminated"),
        (1, "", "failed", "tool: no summary, exit code 1: no output"),
    ],
)
def test_only_a_summary_of_nothing_passes(code: int, text: str, status: str, options: str) -> None:
    outcome = verdict("tool", code, text)
    assert outcome.status == status
    assert outcome.words.startswith(options)


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    path = tmp_path / "compute-sanitizer"
    path.write_text(
        f"#!{sys.executable}\nimport subprocess, sys\n"
        "assert sys.argv[1:5] == ['--tool', 'memcheck', '--error-exitcode', '9']\n"
        "code = subprocess.run(sys.argv[5:]).returncode\n"
        "print('========= ERROR SUMMARY: 0 errors')\nsys.exit(code)\n"
    )
    path.chmod(0o755)
    return path


@pytest.mark.slow
@pytest.mark.mlir
@pytest.mark.usefixtures("built_stub")
def test_the_run_that_is_watched_computes_the_right_c_and_one_that_cannot_begin_has_failed(
    tool: Path,
) -> None:
    for chip, status, code in (("sm_90", "passed", 0), ("sm_70", "failed", 1)):
        outcome = watch(tool, "memcheck", Bed(STUB, chip, is_quick=True), "matmul_gpu_naive")
        assert (outcome.status, outcome.words) == (status, f"memcheck: 0 errors, exit code {code}")
