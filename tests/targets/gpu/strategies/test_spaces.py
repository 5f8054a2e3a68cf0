"""What the search spaces of the strategies for GPUs allow, and what comes last."""

import re
from typing import Any

import pytest

from benchmarks.gpu_check.gpu_point import GpuPoint, feasible_set
from benchmarks.gpu_check.points import gpu_strategies, is_allowed
from tests.targets.gpu.strategies.points import (
    HOPPER,
    MMA_SYNC,
    MMA_SYNC_SMALL,
    NAIVE,
    SIMT,
    SIMT_LARGE,
    WGMMA,
    is_feasible,
    mma_sync,
    naive,
    space_of,
    wgmma,
)
from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError, Stage, UsageError
from tuner.core.gpu import chip_of
from tuner.core.machine import gpu_machine
from tuner.core.problem import Matmul, Problem
from tuner.space.enumeration import is_possible
from tuner.space.scripts.choice import default_script

pytestmark = pytest.mark.mlir

BASES = {
    SIMT: GpuPoint(Matmul(512, 512, 512), Candidate.of(SIMT, SIMT_LARGE)),
    MMA_SYNC: GpuPoint(Matmul(512, 512, 512, "f16"), Candidate.of(MMA_SYNC, MMA_SYNC_SMALL)),
}
SMALL_BLOCK = {"block_m": 32, "block_n": 32, "block_k": 16, "warps_m": 2, "warps_n": 2}


def changed(strategy: str, knobs: dict[str, Any]) -> GpuPoint:
    base = BASES[strategy]
    return GpuPoint(base.problem, Candidate.of(strategy, dict(base.candidate.choices) | knobs))


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("strategy", "knobs", "why"),
    [
        (SIMT, {"split_m": 4, "block_m": 96, "thread_m": 8}, "a block that is no whole tiles"),
        (SIMT, {"block_m": 256, "block_n": 256, "split_m": 1}, "more than 1024 threads"),
        (SIMT, {"split_m": 4, "split_n": 8}, "a body of 8192 multiply-adds"),
        (SIMT, {"block_k": 8, "block_m": 192, "block_n": 128}, "vectors that do not go round the threads"),
        (SIMT, {"vector_a": 1}, "narrower copies than rows allow"),
        (SIMT, {"depth": 4, "block_m": 256, "block_k": 32, "split_m": 4}, "more than all shared memory"),
        (MMA_SYNC, {"block_m": 48}, "not of the choices"),
        (MMA_SYNC, {"warps_m": 8}, "a warp of 8 rows"),
        (MMA_SYNC, {"block_k": 8}, "less than one mma.sync"),
        (MMA_SYNC, SMALL_BLOCK, "fewer vectors than threads"),
        (MMA_SYNC, {"pack": 1}, "nothing to pack"),
        (MMA_SYNC, {"split_by": "workspace"}, "nothing to split"),
    ],
)
def test_what_cannot_work_or_says_nothing_new_is_not_in_the_space(
    strategy: str, knobs: dict[str, Any], why: str
) -> None:
    allowed = feasible_set(BASES[strategy].problem, strategy)
    assert allowed.row_of(BASES[strategy].candidate) is not None
    assert allowed.row_of(changed(strategy, knobs).candidate) is None, why
    assert not is_feasible(changed(strategy, knobs)), why


@pytest.mark.parametrize(
    ("strategy", "knobs", "why"),
    [
        (SIMT, {"block_m": 256, "block_n": 256}, "more than 512 threads"),
        (SIMT, {"thread_n": 2}, "stores of half a vector"),
        (SIMT, {"pad_bytes": 16}, "nothing reads across rows"),
        (SIMT, {"unroll_k": 1}, "a quarter of a vector of A"),
        (MMA_SYNC, {"block_m": 256, "block_n": 256}, "512 sums of a thread"),
        (
            MMA_SYNC,
            {"block_m": 256, "block_n": 128, "warps_m": 8, "warps_n": 4, "block_k": 64},
            "64 registers of each of 1024 threads",
        ),
    ],
)
def test_what_is_believed_slow_or_spills_comes_last(strategy: str, knobs: dict[str, Any], why: str) -> None:
    allowed = feasible_set(BASES[strategy].problem, strategy)
    preferred, late = (allowed.row_of(each.candidate) for each in (BASES[strategy], changed(strategy, knobs)))
    assert preferred is not None
    assert late is not None, why
    assert allowed.is_preferred[[preferred, late]].tolist() == [True, False], why


@pytest.mark.parametrize(
    "sizes", [(1, 1, 1), (1, 97, 64), (97, 1, 3), (33, 70, 2), (4096, 1, 4096), (193, 257, 91)]
)
@pytest.mark.parametrize(("dtype", "layout"), [("f32", "nt"), ("f64", "tn"), ("i8", "nn")])
def test_cuda_cores_have_some_point_for_every_shape(
    sizes: tuple[int, int, int], dtype: str, layout: str
) -> None:
    space = space_of(Matmul(*sizes, dtype, layout), SIMT)
    assert is_possible(space, space.constraints)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "problem"),
    [(SIMT, Matmul(4096, 4096, 4096, layout="tn")), (MMA_SYNC, Matmul(1024, 1024, 1024, "f16"))],
)
def test_a_chip_with_less_shared_memory_allows_less(strategy: str, problem: Problem) -> None:
    rows = [feasible_set(problem, strategy, chip).rows for chip in ("sm_90", "sm_80", "sm_86")]
    assert rows == sorted(rows, reverse=True)
    assert len(set(rows)) == 3


def test_more_columns_than_a_grid_has_blocks_are_not_in_the_space_of_the_naive_strategy() -> None:
    candidate = naive(Matmul(1, 1, 1)).candidate
    assert feasible_set(Matmul(1, 32 * 65535 + 1, 1), NAIVE).row_of(candidate) is None
    assert feasible_set(Matmul(1, 32 * 65535, 1), NAIVE).row_of(candidate) == 0


@pytest.mark.slow
def test_too_much_shared_memory_is_refused_by_the_constraint_and_by_the_compiler() -> None:
    knobs: dict[str, Any] = {"block_m": 256, "block_n": 128, "block_k": 128, "depth": 3, "warps_m": 4}
    huge = mma_sync(Matmul(512, 512, 1024, "f16"), **knobs)
    assert feasible_set(huge.problem, MMA_SYNC).row_of(huge.candidate) is None
    with pytest.raises(CandidateError, match="found 393216 bytes, allowed 232448") as caught:
        huge.program()
    assert caught.value.stage == Stage.RESOURCES


def test_other_chips_and_layouts_that_wgmma_refuses_have_no_point() -> None:
    for problem, chip, why in (
        (Matmul(64, 64, 64, "f16"), "sm_90", "has_wgmma == 1"),
        (Matmul(64, 64, 64, "tf32"), HOPPER, "input_bytes == 2 or layout == 'nt'"),
        (Matmul(64, 64, 64, "e4m3"), HOPPER, "input_bytes == 2 or layout == 'nt'"),
    ):
        with pytest.raises(UsageError, match=re.escape(why)):
            feasible_set(problem, WGMMA, chip)
    small = Matmul(64, 64, 64, "f16")
    with pytest.raises(CandidateError, match=r"^nvvm\.\S+ at line .*: found chip sm_90, allowed sm_90a"):
        GpuPoint(small, wgmma(small).candidate, "sm_90").program()


def test_points_of_hopper_for_rows_of_no_whole_16_bytes_come_last() -> None:
    problem = Matmul(40, 72, 60, "f16", "nn", "bias_relu", "f16")
    allowed = feasible_set(problem, WGMMA, HOPPER)
    assert allowed.rows > 0
    assert not allowed.is_preferred.any()
    (entry,) = [each for each in gpu_strategies() if each.name == WGMMA]
    assert not is_allowed(entry, problem, HOPPER)
    script = default_script(problem, gpu_machine("simulator", chip_of(HOPPER), "PTX simulator"))
    assert script is not None
    assert "wgmma" not in script.text
