"""Candidates and libraries on stand-ins: ratios, algorithms, clocks; what is wrong is not timed."""

import json
import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.gpu_check.device_under_test import CUDA, Bed
from benchmarks.gpu_visit import checks_of_candidates, comparison, workbench
from benchmarks.gpu_visit.checks_of_candidates import candidate_checks, error_facts, ranking_checks
from benchmarks.gpu_visit.checks_of_code import cycle_facts
from benchmarks.gpu_visit.clock_samples import sampled_clocks
from benchmarks.gpu_visit.code_folder import COMPARISON, CodeEntry, CodeFolder, Manifest
from benchmarks.gpu_visit.operands import ResultErrors
from benchmarks.gpu_visit.workbench import Workbench
from tests.gpu.driver.stub_cublas import stub_cublas
from tests.gpu.target.simulated_cuda import Reading
from tests.support.gpu_point import GpuPoint, feasible_set
from tests.support.stub_driver import StubDriver
from tuner.core.compiled_code import KernelCode, Launch
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.records import GpuState
from tuner.gpu.target import event_timing
from tuner.gpu.target.evaluator import LocalGpu

CHIP = "sm_90"
PROBLEM = Matmul(16, 32, 16)
SAMPLE_S = 0.02


class PtxFolder(CodeFolder):
    """A folder whose programs are PTX, which the stand-in for the driver simulates."""

    def program(self, entry: CodeEntry) -> KernelCode:
        if entry.section == COMPARISON:
            return comparison.comparison(CHIP, entry.name)
        assert entry.problem is not None
        assert entry.candidate is not None
        size = Matmul(16, 32, 8) if entry.name == "wrong" else entry.problem
        return GpuPoint(size, entry.candidate, CHIP).program()


def entry_of(section: str, name: str, problem: Problem = PROBLEM) -> CodeEntry:
    candidate = feasible_set(problem, "matmul_gpu_naive", CHIP).candidate(0)
    launches = (Launch("k", (1, 1, 1), (64, 1, 1), 0, ()),)
    return CodeEntry(section, name, "", problem=problem, candidate=candidate, code="x", launches=launches)


@pytest.fixture
def bench_of(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Workbench]:
    for name in ("MIN_SAMPLES", "COLD_SAMPLES"):
        monkeypatch.setattr(event_timing, name, 2)
    monkeypatch.setattr(comparison, "BLOCKS", 1)
    device = StubDriver().open()
    setattr(device, "elapsed_s", lambda *_: SAMPLE_S)  # noqa: B010 - never kept

    def made(*entries: CodeEntry, chip: str = CHIP) -> Workbench:
        results = tuple(CodeEntry(COMPARISON, name, "", code="x") for name in comparison.CONVERSIONS)
        code = PtxFolder(Path(), Manifest(chip, "13.0", (*results, *entries)))
        bench = Workbench(Bed(CUDA, chip), code, stub_cublas)
        bench.gpu = LocalGpu(
            device, 4096, Reading(lambda: GpuState(1.5e9, None, 50.0, 300.0, ("power cap",)))
        )
        return bench

    return made


@pytest.mark.mlir
def test_a_candidate_is_timed_next_to_the_library_and_a_wrong_one_is_not_timed(
    bench_of: Callable[..., Workbench],
) -> None:
    bench = bench_of(entry_of("f32", "right"), entry_of("f32", "wrong"))
    library, right, wrong = candidate_checks("f32", bench)
    outcome = library.ask()
    assert (outcome.status, outcome.facts["library"]) == ("passed", "cuBLAS 13.1.2")
    outcome = right.ask()
    assert outcome.status == "passed"
    facts = outcome.facts
    assert (facts["median_s"], facts["ratio"], facts["library_s"]) == (SAMPLE_S, 1.0, SAMPLE_S)
    assert (facts["sm_clock_hz"], facts["slowdowns"]) == (1.5e9, ["power cap"])
    assert set(facts["knobs"]) == {"block_m", "block_n"}
    assert facts["error_against_reference"] <= 1.0
    outcome = wrong.ask()
    assert (outcome.status, "median_s" in outcome.facts) == ("failed", False)
    assert outcome.words.startswith("wrong: ")


@pytest.mark.mlir
def test_every_algorithm_of_cublaslt_is_timed_with_both_accumulations(
    bench_of: Callable[..., Workbench], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = Matmul(16, 32, 16, "e4m3", "nt")
    monkeypatch.setattr(checks_of_candidates, "entry_facts", lambda _: {})
    bench = bench_of(CodeEntry("eight_bits", "a", "", problem=problem, code="x"))
    library, fast, exact, _ = candidate_checks("eight_bits", bench)
    assert library.ask().facts["library"].endswith("fast accumulation)")
    for check, word in ((fast, "fast"), (exact, "f32")):
        outcome = check.ask()
        assert outcome.status == "passed"
        assert len(outcome.facts["algorithms_s"]) >= 2
        assert all(f"{word} accumulation" in name for name in outcome.facts["algorithms_s"])


@pytest.mark.mlir
def test_points_of_two_problems_alternate_and_have_no_library(bench_of: Callable[..., Workbench]) -> None:
    other = Matmul(16, 32, 24)
    entries = (entry_of("ranking", "a"), entry_of("ranking", "b"), entry_of("ranking", "c", other))
    checks = ranking_checks(bench_of(*entries))
    assert [check.name for check in checks] == ["a", "c", "b"]
    outcome = checks[0].ask()
    assert outcome.status == "passed"
    assert {"knobs", "median_s", "by_knobs", "by_machine_code"} <= outcome.facts.keys()
    assert "ratio" not in outcome.facts


def test_errors_without_a_number_are_texts_of_valid_json() -> None:
    facts = error_facts(ResultErrors(math.nan, math.inf, ""))
    assert json.loads(json.dumps(facts, allow_nan=False)) == {
        "error_against_reference": "nan",
        "error_of_rows": "inf",
    }
    assert error_facts(ResultErrors(None, 0.5, "")) == {"error_against_reference": None, "error_of_rows": 0.5}


def test_a_section_without_candidates_says_why(bench_of: Callable[..., Workbench]) -> None:
    (check,) = candidate_checks("f32_by_tensor_cores", bench_of())
    assert (check.ask().status, check.ask().words) == ("skipped", "the folder of code has no candidates")


def test_clocks_are_read_while_the_block_runs_and_a_gpu_without_sensors_has_none() -> None:
    clocks = iter((1.9e9, 1.5e9, 1.7e9))
    is_over = threading.Event()

    def read() -> GpuState | None:
        clock = next(clocks, None)
        if clock is not None:
            return GpuState(clock, None, None, None)
        is_over.set()
        return None

    with sampled_clocks(read) as samples:
        assert is_over.wait(60)
    facts = samples.facts
    assert (facts["sm_clock_hz"], facts["least_sm_clock_hz"], facts["readings"]) == (1.7e9, 1.5e9, 3)
    with sampled_clocks(lambda: None) as samples:
        pass
    assert samples.facts == {}


def test_a_block_takes_as_long_as_its_longest_warp() -> None:
    entry = CodeEntry(
        "micro_kernels", "a", "", launches=(Launch("k", (3, 1, 1), (64, 1, 1), 0, ()),), operations=10
    )
    cycles = np.array([10, 90, 100, 20, 70, 80], np.uint64)  # two warps of three blocks
    facts: dict[str, Any] = cycle_facts(entry, cycles, 1e-7)
    assert facts == {
        "block_cycles": 90.0,
        "cycles_per_operation": 9.0,
        "median_s": 1e-7,
        "least_clock_hz": pytest.approx(9e8),
    }
    assert workbench.STAND_IN_SIZE < 4096
