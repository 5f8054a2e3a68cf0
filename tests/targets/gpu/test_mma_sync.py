"""The tensor-core strategy: right and without races on the PTX simulator; why its constraints are there."""

import re
from typing import Any

import numpy as np
import pytest

from benchmarks.gpu_check.gpu_point import GpuPoint, feasible_set
from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError, Stage
from tuner.core.problem import Matmul, Problem
from tuner.cost_model.launch_limits import require_launchable
from tuner.targets.gpu.ptxas import find_ptxas

pytestmark = pytest.mark.mlir

STRATEGY = "matmul_gpu_mma_sync"
SMALL: dict[str, Any] = {
    "block_m": 64,
    "block_n": 64,
    "block_k": 32,
    "warps_m": 2,
    "warps_n": 2,
    "depth": 2,
    "prefetch": 0,
    "shared": "swizzle",
    "group": 1,
    "splits": 1,
    "split_by": "atomic",
    "exchange": 0,
    "pack": 0,
}


def point(problem: Problem, chip: str = "sm_90", **knobs: Any) -> GpuPoint:
    return GpuPoint(problem, Candidate.of(STRATEGY, SMALL | knobs), chip)


POINTS = (
    point(Matmul(128, 64, 96, "f16")),
    point(Matmul(67, 130, 130, "f16", epilogue="bias_relu", output="f16"), "sm_80", depth=4),
    point(Matmul(97, 33, 91, "f16"), depth=0, block_n=32),
    point(Matmul(65, 99, 91, "f16", "tn"), pack=1, shared="pad"),
    point(Matmul(64, 128, 64, "bf16", "nt", "bias_relu"), depth=1),
    point(Matmul(72, 72, 72, "bf16", "tn", output="bf16"), warps_n=1),
    point(Matmul(64, 64, 160, "f16", "nt"), splits=2, depth=2),
    point(
        Matmul(65, 65, 160, "bf16", "nt", "bias_relu", "bf16"),
        splits=2,
        split_by="workspace",
        block_k=16,
        warps_n=1,
    ),
    point(Matmul(70, 130, 40, "tf32"), block_k=16),
    point(Matmul(70, 66, 40, "tf32", "nt", "bias_relu"), block_k=16, depth=3),
    point(Matmul(64, 64, 75, "tf32", "tn"), block_k=16, depth=5),
    point(Matmul(320, 130, 16, "f16"), group=4, block_k=16),
    point(Matmul(1, 1, 1, "f16"), block_m=32, block_n=32, depth=0),
    point(Matmul(128, 64, 128, "i8", "nt", "bias_relu"), "sm_80", prefetch=1),
    point(Matmul(64, 64, 128, "i8"), exchange=1),
    point(Matmul(67, 61, 133, "i8", "nt", "bias_relu"), block_k=64, depth=0, warps_m=1),
    point(Matmul(64, 64, 128, "i8", "tn"), splits=2),
    point(Matmul(33, 35, 137, "i8", "nn", "bias_relu"), depth=0, splits=2, split_by="workspace"),
    point(Matmul(128, 64, 128, "e4m3", "nt", "bias_relu"), "sm_89", prefetch=1),
    point(Matmul(64, 128, 128, "e5m2", output="f16"), exchange=1),
    point(
        Matmul(35, 37, 69, "e4m3", "tn", "bias_relu", "bf16"),
        "sm_89",
        block_m=32,
        block_n=32,
        depth=0,
        warps_m=1,
    ),
    point(Matmul(33, 35, 137, "e5m2", "nt", "bias_relu"), depth=0, splits=2, split_by="workspace"),
)


@pytest.mark.parametrize("one", POINTS, ids=lambda one: f"{one.problem.key} {one.candidate.text}")
def test_a_point_is_right_and_free_of_races(one: GpuPoint) -> None:
    allowed = feasible_set(one.problem, STRATEGY, one.chip)
    assert allowed.row_of(one.candidate) is not None
    verdict, worst, simulations = one.run(one.program())
    assert verdict.max_error <= 1.0, worst
    assert [simulation.hazards for simulation in simulations] == [()] * len(simulations)


def test_random_points_are_right_and_free_of_races() -> None:
    rng = np.random.default_rng(5)
    for dtype, layout in (("f16", "nn"), ("bf16", "nt"), ("tf32", "tn")):
        sizes = (int(rng.integers(1, 150)), int(rng.integers(1, 150)), int(rng.integers(1, 150)))
        problem = Matmul(*sizes, dtype, layout)
        allowed = feasible_set(problem, STRATEGY)
        drawn = GpuPoint(problem, allowed.candidate(int(rng.integers(allowed.rows))))
        verdict, worst, simulations = drawn.run(drawn.program())
        assert verdict.max_error <= 1.0, f"{problem.key} {drawn.candidate.text}: {worst}"
        assert not any(simulation.hazards for simulation in simulations), drawn.candidate.text


@pytest.mark.parametrize(
    ("dtype", "layout", "instruction"),
    [
        ("f16", "nn", "m16n8k16.row.col.f32.f16.f16.f32"),
        ("bf16", "nn", "m16n8k16.row.col.f32.bf16.bf16.f32"),
        ("tf32", "nt", "m16n8k8.row.col.f32.tf32.tf32.f32"),
        ("i8", "nt", "m16n8k32.row.col.satfinite.s32.s8.s8.s32"),
        ("e4m3", "nt", "m16n8k32.row.col.f32.e4m3.e4m3.f32"),
    ],
)
def test_the_main_loop_is_tensor_cores_fed_by_ldmatrix_and_cp_async(
    dtype: str, layout: str, instruction: str
) -> None:
    knobs: dict[str, Any] = {
        "block_m": 128,
        "block_n": 128,
        "block_k": {"tf32": 16, "i8": 64, "e4m3": 64}.get(dtype, 32),
        "depth": 3,
    }
    # of e4m3 Hopper has no mma.sync: ptxas makes it of conversions to f16 and their mma
    chip = "sm_89" if dtype == "e4m3" else "sm_90"
    big = point(Matmul(4096, 4096, 4096, dtype, layout), chip, **knobs)
    program = big.program()
    assert program.ptx.count(f"mma.sync.aligned.{instruction}") == 64
    assert program.ptx.count("ldmatrix.sync.aligned.m8n8.x4") == 16
    copies = re.findall(r"cp\.async\.cg\.shared\.global[^;]*, 16", program.ptx)
    assert len(copies) == 8 * (knobs["depth"] + 1)  # before the loop and in it
    assert program.launches[0].dynamic_shared_bytes == 65536
    assert ".extern .shared" in program.ptx
    ptxas = find_ptxas()
    if ptxas is not None:
        (resources,) = ptxas.assemble(program).resources
        assert resources.spill_store_bytes == 0
        assert resources.registers <= 255


@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")
def test_what_spills_is_right_comes_last_and_is_not_refused() -> None:
    """Its 128 x 128 sums of one warp are 512 registers of each thread."""
    ptxas = find_ptxas()
    assert ptxas is not None
    one = point(Matmul(128, 128, 64, "f16"), block_m=128, block_n=128, block_k=16, warps_m=1, warps_n=1)
    allowed = feasible_set(one.problem, STRATEGY)
    row = allowed.row_of(one.candidate)
    assert row is not None
    assert not allowed.is_preferred[row]
    program = ptxas.assemble(one.program())
    assert program.resources[0].spilled_bytes > 1000
    require_launchable(program)
    verdict, worst, _ = one.run(program)
    assert verdict.max_error <= 1.0, worst


def test_sums_stay_in_registers_for_all_of_k() -> None:
    program = point(Matmul(256, 256, 4096, "f16")).program()
    loop = program.ptx[program.ptx.index("ldmatrix") : program.ptx.rindex("mma.sync")]
    assert "st.global" not in loop


def test_a_buffer_less_than_depth_and_one_is_a_race() -> None:
    """Why the script makes depth + 1 buffers: with fewer, a tile is overwritten while it is read."""
    one = point(Matmul(64, 64, 256, "f16"))
    script = one.script()
    assert "factor = 3 : i64" in script
    _, _, simulations = one.run(one.program(script.replace("factor = 3 : i64", "factor = 2 : i64")))
    assert any(simulation.races for simulation in simulations)


def test_a_missing_barrier_is_a_race() -> None:
    one = point(Matmul(64, 64, 256, "f16"))
    lines = [line for line in one.script().splitlines() if "tuner.insert_barriers" not in line]
    _, _, simulations = one.run(one.program("\n".join(lines)))
    assert any(simulation.races for simulation in simulations)


def test_upstream_addresses_of_a_transposed_a_are_wrong() -> None:
    """Why the script has tuner.fix_transposed_a; once this fails, upstream is right and the op can go."""
    one = point(Matmul(64, 64, 64, "f16", "tn"))
    lines = [line for line in one.script().splitlines() if "tuner.fix_transposed_a" not in line]
    verdict, _, _ = one.run(one.program("\n".join(lines)))
    assert not verdict.max_error <= 1.0


def test_too_much_shared_memory_is_refused_by_the_constraint_and_by_the_compiler() -> None:
    knobs: dict[str, Any] = {"block_m": 256, "block_n": 128, "block_k": 128, "depth": 3, "warps_m": 4}
    huge = point(Matmul(512, 512, 1024, "f16"), **knobs)
    assert feasible_set(huge.problem, STRATEGY).row_of(huge.candidate) is None
    with pytest.raises(CandidateError, match="found 393216 bytes, allowed 232448") as caught:
        huge.program()
    assert caught.value.stage == Stage.RESOURCES


def test_a_chip_with_less_shared_memory_allows_less() -> None:
    problem = Matmul(1024, 1024, 1024, "f16")
    rows = [feasible_set(problem, STRATEGY, chip).rows for chip in ("sm_90", "sm_80", "sm_86")]
    assert rows == sorted(rows, reverse=True)
    assert len(set(rows)) == 3


def test_the_first_points_of_the_space_file_can_be_launched() -> None:
    ptxas = find_ptxas()
    if ptxas is None:
        pytest.skip("needs ptxas")
    knobs: dict[str, Any] = {
        "block_m": 128,
        "block_n": 256,
        "block_k": 32,
        "warps_n": 4,
        "depth": 3,
        "group": 8,
    }
    program = ptxas.assemble(point(Matmul(5376, 5376, 2048, "f16"), **knobs).program())
    require_launchable(program)
    assert program.launches[0].dynamic_shared_bytes >= 81920


@pytest.mark.parametrize(
    ("knobs", "why"),
    [
        ({"block_m": 48}, "not of the choices"),
        ({"warps_m": 8}, "a warp of 8 rows"),
        ({"block_k": 8}, "less than one mma.sync"),
        (
            {"block_m": 32, "block_n": 32, "block_k": 16, "warps_m": 2, "warps_n": 2},
            "fewer vectors than threads",
        ),
        ({"pack": 1}, "nothing to pack"),
        ({"split_by": "workspace"}, "nothing to split"),
    ],
)
def test_what_cannot_work_or_says_nothing_new_is_not_in_the_space(knobs: dict[str, Any], why: str) -> None:
    problem = Matmul(512, 512, 512, "f16")
    assert feasible_set(problem, STRATEGY).row_of(Candidate.of(STRATEGY, SMALL)) is not None
    assert feasible_set(problem, STRATEGY).row_of(Candidate.of(STRATEGY, SMALL | knobs)) is None, why


@pytest.mark.parametrize(
    ("knobs", "why"),
    [
        ({"block_m": 256, "block_n": 256, "warps_m": 2, "warps_n": 2}, "512 sums of a thread"),
        (
            {"block_m": 256, "block_n": 128, "warps_m": 8, "warps_n": 4, "block_k": 64},
            "64 registers of each of 1024 threads",
        ),
    ],
)
def test_what_spills_comes_last(knobs: dict[str, Any], why: str) -> None:
    allowed = feasible_set(Matmul(512, 512, 512, "f16"), STRATEGY)
    row = allowed.row_of(Candidate.of(STRATEGY, SMALL | knobs))
    assert row is not None, why
    assert not allowed.is_preferred[row], why
