"""Random points of GPU strategies are feasible, alike for a seed, and what is wrong with one is noticed."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.fuzz_gpu import schedules, turns
from benchmarks.fuzzing.gpu_outcome import check, simulate
from benchmarks.fuzzing.gpu_points import GpuKernelKind, draw, kinds
from benchmarks.gpu_check.gpu_point import GpuPoint, feasible_set
from benchmarks.gpu_check.points import gpu_strategies
from tuner.core.candidate import Candidate
from tuner.core.problem import Matmul

pytestmark = pytest.mark.mlir

WGMMA = "matmul_gpu_wgmma"


def test_kinds_are_all_that_a_strategy_says_it_is_there_for() -> None:
    for entry in gpu_strategies():
        found = kinds(entry.name)
        assert {kind.dtype for kind in found} == set(entry.dtypes)
        assert {kind.layout for kind in found} == set(entry.layouts)
        assert {kind.epilogue for kind in found} == set(entry.epilogues)
    assert {kind.chip for kind in kinds(WGMMA)} == {"sm_90a"}


def test_points_are_feasible_and_alike_for_a_seed() -> None:
    for kind in (kinds("matmul_gpu_mma_sync")[0], kinds(WGMMA)[-1]):
        point = draw(kind, np.random.default_rng(5))
        assert feasible_set(point.problem, kind.strategy, kind.chip).row_of(point.candidate) is not None
        assert point == draw(kind, np.random.default_rng(5))


def test_a_kind_that_nothing_is_allowed_for_is_an_error() -> None:
    nothing = GpuKernelKind(WGMMA, "sm_80", "f16", "nn", "none", "")
    with pytest.raises(LookupError, match="nothing allowed on any of 200 shapes"):
        draw(nothing, np.random.default_rng(0))


def test_strategies_get_their_shares() -> None:
    naive = "matmul_gpu_naive"
    assert list(turns([naive, WGMMA], 5)) == [naive, WGMMA, WGMMA, naive, WGMMA]
    rng = np.random.default_rng(0)
    assert schedules(naive, rng)[0] is None
    assert (len(schedules(naive, rng)), len(schedules(WGMMA, rng))) == (2, 4)


def smallest() -> GpuPoint:
    """Returns a point of one block."""
    problem = Matmul(8, 8, 72, "f16")
    return GpuPoint(problem, feasible_set(problem, WGMMA, "sm_90a").candidate(0), "sm_90a")


def test_wrong_results_races_and_faults_are_failures_of_their_schedule() -> None:
    point = smallest()
    found = check(point, (None, 7), 0)
    assert (found.failures, found.is_swizzled) == ((), False)
    assert 0.0 < found.max_error <= 1.0
    program = point.program()
    for edit, why in (
        (("wgmma.fence.sync.aligned;", ""), "wgmma"),
        (("mbarrier.init", "// mbarrier.init"), "mbarrier"),
    ):
        broken = replace(program, ptx=program.ptx.replace(*edit))
        outcome = simulate(point, broken, (None,), 0)
        assert not outcome.is_right
        assert outcome.failures[0].startswith("schedule None: ")
        assert why in outcome.failures[0]


def test_a_point_that_does_not_compile_is_a_failure_at_its_stage() -> None:
    (failure,) = check(replace(smallest(), chip="sm_80"), (None,), 0).failures
    assert failure.startswith("compile: ")


def test_bank_conflicts_of_swizzled_tiles_alone_are_failures() -> None:
    rng = np.random.default_rng(3)
    while True:
        point = draw(kinds("matmul_gpu_mma_sync")[0], rng)
        if dict(point.candidate.choices)["shared"] == "swizzle" and dict(point.candidate.choices)["depth"]:
            break
    program = point.program()
    assert simulate(point, program, (None,), 0).is_right
    knobs = dict(point.candidate.choices)
    plain = replace(point, candidate=Candidate.of(point.candidate.strategy, knobs | {"shared": "pad"}))
    unswizzled = plain.script().replace("pad_bytes = 16", "pad_bytes = 0")
    conflicting = point.program(unswizzled)
    assert not simulate(plain, conflicting, (None,), 0).failures
    outcome = simulate(point, conflicting, (None,), 0)
    assert outcome.conflict_ratio > 1.0
    assert "found bank conflicts" in outcome.failures[-1]
