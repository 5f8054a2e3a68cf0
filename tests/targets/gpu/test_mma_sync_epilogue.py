"""The epilogue in which lanes exchange pieces of rows: right, 16 bytes at a time, and found where broken."""

import re
from dataclasses import replace

import pytest

from benchmarks.gpu_check.gpu_point import GpuPoint, feasible_set
from tests.targets.gpu.test_mma_sync import STRATEGY, point
from tests.targets.gpu.test_mma_sync_loop import SCHEDULES, TINY
from tuner.core.problem import Matmul, Problem

pytestmark = pytest.mark.mlir


def exchanging(problem: Problem, chip: str = "sm_90", block_n: int = 32) -> GpuPoint:
    return point(problem, chip, **(TINY | {"exchange": 1, "block_n": block_n}))


POINTS = (
    exchanging(Matmul(32, 32, 32, "f16", output="f16")),
    exchanging(Matmul(33, 64, 32, "bf16", "nt", "bias_relu", "bf16"), "sm_80"),  # rows past the end
    exchanging(Matmul(32, 64, 32, "f16", "tn", "bias_relu"), block_n=64),  # f32
    exchanging(Matmul(40, 32, 32, "tf32", "nt")),
)


@pytest.mark.parametrize("one", POINTS, ids=lambda one: f"{STRATEGY} {one.problem.key}")
def test_exchanged_rows_are_right_under_all_schedules(one: GpuPoint) -> None:
    assert feasible_set(one.problem, STRATEGY, one.chip).row_of(one.candidate) is not None
    program = one.program()
    assert program.ptx.count("st.global") == program.ptx.count("st.global.v4") > 0
    for schedule in SCHEDULES:
        verdict, worst, simulations = one.run(program, schedule_seed=schedule)
        assert verdict.max_error <= 1.0, worst
        assert not any(simulation.hazards for simulation in simulations)


@pytest.mark.parametrize(("output", "stores", "shuffles"), [("f16", 16, 64), ("f32", 32, 64)])
def test_a_warp_of_64x64_stores_all_of_it_in_16_bytes_per_lane(
    output: str, stores: int, shuffles: int
) -> None:
    problem = Matmul(128, 128, 64, "f16", output="" if output == "f32" else output)
    ptx = point(problem, block_m=128, block_n=128, exchange=1, prefetch=1).program().ptx
    assert (ptx.count("st.global.v4"), ptx.count("st.global")) == (stores, stores)
    assert ptx.count("shfl.sync.bfly") == shuffles


SHUFFLE = r"(shfl\.sync\.bfly\.b32\s+[^,]+, [^,]+), {0},"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (SHUFFLE.format(1), r"\1, 2,"),  # the wrong lane
        (SHUFFLE.format(2), r"\1, 3,"),
        (r"(selp\.b32\s+%r\d+), (%r\d+), (%r\d+),", r"\1, \3, \2,"),  # the wrong tile is sent
        (r"(st\.global\.v4\.b32\s+\[[^\]]+\], \{)(%r\d+), (%r\d+)", r"\1\3, \2"),  # columns in another order
    ],
)
def test_a_broken_exchange_is_caught(old: str, new: str) -> None:
    one = POINTS[0]
    program = one.program()
    ptx, count = re.subn(old, new, program.ptx, count=1)
    assert count == 1
    verdict, _, _ = one.run(replace(program, ptx=ptx))
    assert not verdict.max_error <= 1.0
