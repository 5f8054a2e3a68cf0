"""Points of each strategy for GPUs: feasible, right and free of races on the PTX simulator."""

import itertools
import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
import pytest

from benchmarks.gpu_check.points import gpu_strategies, is_allowed
from tests.epilogues import EPILOGUES
from tests.gpu.target.strategies import points
from tests.gpu.target.strategies.points import MMA_SYNC, SIMT, compiled, mma_sync, require_right, simt, wgmma
from tests.support.gpu_point import GpuPoint, feasible_set
from tests.targets.evaluation import fails
from tests.tuning.fakes import present
from tuner.core import epilogues
from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError, Stage, UsageError
from tuner.core.gpu import chip_of
from tuner.core.machine import gpu_machine
from tuner.core.matmul import BatchMatmul, Matmul
from tuner.core.problem import LAYOUTS, Problem
from tuner.gpu.ptxsim.ptx.geometry import Index3
from tuner.space.enumeration import is_possible
from tuner.space.scripts.choice import default_script

pytestmark = pytest.mark.mlir
OF_F64 = {"thread_m": 2, "thread_n": 2, "unroll_k": 2}  # vectors of 16 bytes
OF_NT = {"thread_n": 1, "split_n": 8, "pad_bytes": 16}  # neighbours read neighbouring rows of B
OF_TRANSPOSED = {"transpose": 1, "pad_bytes": 16, "block_m": 64, "split_m": 2}
Knobs = dict[str, Any]
Build = Callable[..., GpuPoint]
Seed = points.Seed
SHARED_READS = ("ld.shared", "ldmatrix")
KINDS = list(itertools.product(("f32", "f64", "i8"), LAYOUTS))
THIN = ((1, 1, 1), (1, 97, 3))
NAIVE_KINDS = list(itertools.product(("f32", "f64", "i8"), LAYOUTS, EPILOGUES))
NAIVE_POINTS = [((37, 70, 19), *kind) for kind in NAIVE_KINDS] + [
    (sizes, *kind) for sizes in THIN for kind in NAIVE_KINDS if kind[1:] == ("nn", "bias_relu")
]


def case(build: Build, problem: Problem, seed: Seed = None, **knobs: Any) -> Any:
    """Returns parameters: what makes the point, and the seed of a random order of threads."""
    return pytest.param(partial(build, problem, **knobs), seed, id=f"{build.__name__} {problem.key} {knobs}")


POINTS = (
    case(simt, Matmul(64, 64, 40)),
    case(simt, Matmul(67, 130, 50, epilogue="bias_relu"), chip="sm_80", depth=4),
    case(simt, Matmul(97, 130, 91), block_m=64, depth=1),
    case(simt, Matmul(97, 33, 91), depth=0, block_n=32, split_n=1),
    case(simt, Matmul(300, 70, 16), depth=1, group=8),
    case(simt, Matmul(65, 99, 44, layout="tn"), block_m=64, thread_m=8, unroll_k=1),
    case(simt, Matmul(67, 61, 37, epilogue="bias_relu"), **OF_TRANSPOSED),
    case(simt, Matmul(70, 72, 44, layout="nt"), **OF_TRANSPOSED, depth=3),
    case(simt, Matmul(64, 64, 70), 1, **OF_TRANSPOSED, block_k=16, depth=3, prefetch=1),
    case(simt, Matmul(70, 72, 44, layout="nt", epilogue="bias_relu"), **OF_NT),
    case(simt, Matmul(61, 66, 33, "f64", epilogue="bias_relu"), **OF_F64, split_m=2, block_n=32),
    case(simt, Matmul(64, 66, 34, "f64", "nt"), **(OF_F64 | OF_NT | {"split_n": 4, "split_m": 2})),
    case(simt, Matmul(31, 65, 40, "f64", "tn"), **OF_F64, depth=3, split_m=2),
    case(simt, Matmul(1, 1, 1), depth=1, block_n=32, split_n=1),
    case(simt, Matmul(64, 64, 40, "i8", epilogue="bias_relu"), chip="sm_80", depth=3),
    case(simt, Matmul(64, 128, 48, "i8", "nt"), **OF_NT),
    case(simt, Matmul(67, 70, 44, "i8", "tn"), depth=0),
    case(mma_sync, Matmul(128, 64, 96, "f16")),
    case(mma_sync, Matmul(67, 130, 130, "f16", epilogue="bias_relu", output="f16"), chip="sm_80", depth=4),
    case(mma_sync, Matmul(97, 33, 91, "f16"), depth=0, block_n=32),
    case(mma_sync, Matmul(65, 99, 91, "f16", "tn"), pack=1, shared="pad"),
    case(mma_sync, Matmul(64, 128, 64, "bf16", "nt", "bias_relu"), depth=1),
    case(mma_sync, Matmul(72, 72, 72, "bf16", "tn", output="bf16"), warps_n=1),
    case(mma_sync, Matmul(64, 64, 160, "f16", "nt"), splits=2, depth=2),
    case(mma_sync, Matmul(65, 65, 160, "bf16", "nt", "bias_relu", "bf16"),
         splits=2, split_by="workspace", block_k=16, warps_n=1),
    case(mma_sync, Matmul(70, 130, 40, "tf32"), block_k=16),
    case(mma_sync, Matmul(70, 66, 40, "tf32", "nt", "bias_relu"), block_k=16, depth=3),
    case(mma_sync, Matmul(64, 64, 75, "tf32", "tn"), block_k=16, depth=5),
    case(mma_sync, Matmul(320, 130, 16, "f16"), group=4, block_k=16),
    case(mma_sync, Matmul(1, 1, 1, "f16"), block_m=32, block_n=32, depth=0),
    case(mma_sync, Matmul(128, 64, 128, "i8", "nt", "bias_relu"), chip="sm_80", prefetch=1),
    case(mma_sync, Matmul(64, 64, 128, "i8"), exchange=1),
    case(mma_sync, Matmul(67, 61, 133, "i8", "nt", "bias_relu"), block_k=64, depth=0, warps_m=1),
    case(mma_sync, Matmul(64, 64, 128, "i8", "tn"), splits=2),
    case(mma_sync, Matmul(33, 35, 137, "i8", "nn", "bias_relu"), depth=0, splits=2, split_by="workspace"),
    case(mma_sync, Matmul(128, 64, 128, "e4m3", "nt", "bias_relu"), chip="sm_89", prefetch=1),
    case(mma_sync, Matmul(64, 128, 128, "e5m2", output="f16"), exchange=1),
    case(mma_sync, Matmul(35, 37, 69, "e4m3", "tn", "bias_relu", "bf16"),
         chip="sm_89", block_m=32, block_n=32, depth=0, warps_m=1),
    case(mma_sync, Matmul(33, 35, 137, "e5m2", "nt", "bias_relu"), depth=0, splits=2, split_by="workspace"),
    # f32 by three products of tf32, both operands split in registers
    case(mma_sync, Matmul(64, 64, 96, "tf32x3"), prefetch=1, promote=32),
    case(mma_sync, Matmul(67, 130, 50, "tf32x3", "nn", "bias_relu"), 1, chip="sm_80", block_k=16, promote=16),
    case(mma_sync, Matmul(72, 68, 200, "tf32x3", "nt"), 2, chip="sm_89", promote=16, shared="pad"),
    case(mma_sync, Matmul(60, 36, 132, "tf32x3", "tn"), 3, chip="sm_120", block_n=32, promote=32, splits=2),
    case(mma_sync, Matmul(33, 35, 137, "tf32x3"), depth=0, promote=32, splits=2, split_by="workspace"),
    case(mma_sync, BatchMatmul(2, 60, 68, 72, "tf32x3"), 4, chip="sm_86", promote=32, prefetch=2),
    case(wgmma, Matmul(128, 128, 256, "f16"), block_m=128, block_n=128, consumers=2, stages=3),
    case(wgmma, Matmul(131, 72, 104, "f16", epilogue="bias_relu", output="f16"), 1),
    case(wgmma, Matmul(72, 68, 72, "bf16", "nt", "bias_relu", "bf16"), block_k=128),
    case(wgmma, Matmul(136, 136, 200, "bf16", "tn"), 2, block_m=128, consumers=2, stages=4),
    case(wgmma, Matmul(70, 130, 100, "tf32", "nt"), block_n=128, block_k=32, stages=3),
    case(wgmma, Matmul(192, 64, 64, "f16"), 3, block_m=192, consumers=3),
    case(wgmma, Matmul(320, 72, 8, "f16", "nt"), group=4),
    case(wgmma, Matmul(1, 8, 8, "f16"), block_m=8),
    case(wgmma, Matmul(70, 66, 144, "i8", "nt", "bias_relu"), 4, block_k=128),
    case(wgmma, Matmul(130, 72, 272, "e4m3", "nt", "bias_relu", "f16"),
         5, block_k=128, stages=3, cluster="2x1"),
    case(wgmma, Matmul(60, 130, 400, "e5m2", "nt"), block_k=128, block_n=128, cluster="1x2"),
    # clusters: tiles shared by multicast
    case(wgmma, Matmul(192, 64, 256, "f16"), cluster="2x1", stages=3),
    case(wgmma, Matmul(131, 200, 104, "f16", epilogue="bias_relu", output="f16"), 1, cluster="1x2"),
    case(wgmma, Matmul(72, 68, 136, "bf16", "nt", "bias_relu", "bf16"), 2, cluster="2x1", block_k=128),
    case(wgmma, Matmul(72, 200, 200, "bf16", "tn"), 3, cluster="1x2", block_n=128, stages=4),
    case(wgmma, Matmul(130, 70, 100, "tf32", "nt"), 4, cluster="2x1", block_k=32, stages=3),
    case(wgmma, Matmul(264, 136, 72, "f16", "nt"), 5, cluster="1x2", block_m=128, consumers=2),
    case(wgmma, Matmul(328, 136, 8, "f16", "nt"), cluster="2x1", group=4),
    case(wgmma, Matmul(328, 136, 8, "f16"), cluster="1x2", group=4),
    case(wgmma, Matmul(136, 328, 8, "f16"), cluster="2x1", group=4, bands="columns"),
    case(wgmma, Matmul(136, 328, 8, "f16"), cluster="1x2", group=4, bands="columns"),
    # parts of K by blocks of their own; K of no whole tiles: zeros follow
    case(wgmma, Matmul(60, 56, 456, "f16", "nn", "bias_relu", "f16"), 1, splits=4),
    case(wgmma, Matmul(60, 72, 400, "i8", "nt", "bias_relu"), 2, splits=2, block_k=128, cluster="1x2"),
    case(wgmma, Matmul(60, 72, 400, "i8", "nt", "bias_relu"), 3, splits=2, block_k=128, cluster="1x2",
         split_by="last_block"),
    case(mma_sync, Matmul(33, 35, 137, "i8", "nn", "bias_relu"), depth=0, splits=2, split_by="last_block"),
    case(mma_sync, Matmul(65, 67, 160, "f16", "nt", "bias_relu", "f16"), 2, splits=2, split_by="last_block"),
    case(mma_sync, Matmul(64, 64, 160, "f16", "nt"), splits=2, depth=2, split_by="last_block"),
    case(wgmma, BatchMatmul(2, 56, 64, 200, "bf16", "tn", output="bf16"), splits=2),
    # several tiles of C per block
    case(wgmma, Matmul(131, 72, 136, "f16", "nn", "bias_relu", "f16"), 1, tiles=3, stages=3),
    case(wgmma, Matmul(72, 136, 40, "tf32", "nt"), 2, tiles=2, block_k=32, cluster="1x2"),
    case(wgmma, Matmul(328, 72, 72, "bf16", "tn"), tiles=3, group=4, cluster="2x1"),
    case(wgmma, Matmul(136, 328, 8, "f16"), tiles=4, group=4, bands="columns"),
    # C by TMA, or by 16 bytes of a row per lane
    case(wgmma, Matmul(70, 72, 72, "f16", "nn", "bias_relu", "f16"), 1, stores="tma", tiles=3),
    case(wgmma, Matmul(136, 200, 40, "bf16", "nt", "bias_relu", "bf16"),
         2, stores="tma", cluster="2x1", block_m=128, block_n=128, consumers=2),
    case(wgmma, BatchMatmul(2, 136, 72, 8, "f16", "tn", output="f16"), stores="tma", block_m=128),
    case(wgmma, Matmul(67, 128, 72, "f16", "nn", "bias_relu", "f16"), 3, stores="exchange", tiles=2),
    case(wgmma, Matmul(66, 64, 40, "tf32", "nt"), stores="exchange", block_k=32),
    # tf32 nn: B in registers, operands exchanged
    case(wgmma, Matmul(70, 132, 420, "tf32", "nn", "bias_relu"), 1, block_k=32, block_n=128, consumers=2),
    case(wgmma, Matmul(136, 72, 100, "tf32"), 2, block_k=32, block_n=128, tiles=3, stages=3),
    case(wgmma, Matmul(136, 260, 96, "tf32"), 3, block_k=32, block_n=128, cluster="1x2", tiles=2),
    case(wgmma, Matmul(130, 200, 64, "tf32"), block_k=32, block_n=192, consumers=3, cluster="2x1"),
    case(wgmma, Matmul(200, 68, 32, "tf32"), 4, block_k=32, block_m=192),
    case(wgmma, BatchMatmul(2, 60, 72, 260, "tf32"), 5, block_k=32, splits=4, stages=3),
    case(wgmma, BatchMatmul(2, 60, 72, 260, "tf32"),
         6, block_k=32, splits=4, stages=3, split_by="last_block"),
    case(wgmma, Matmul(9, 136, 520, "bf16", "nt", "bias_relu", "bf16"),
         7, block_m=8, splits=4, cluster="2x1", split_by="last_block"),
    # few rows: operands change places; B of 16 bits may have n innermost
    case(wgmma, Matmul(16, 72, 136, "f16", "nn", "bias_relu", "f16"), 6, block_m=16),
    case(wgmma, Matmul(40, 136, 144, "bf16"), 7, block_m=48, block_n=128, consumers=2),
    case(wgmma, Matmul(1, 136, 264, "bf16"), 8, block_m=8, splits=2, split_by="last_block"),
    case(wgmma, Matmul(1, 136, 264, "bf16", "nt"), 1, block_m=8, block_n=128, stages=5),
    case(wgmma, Matmul(16, 72, 136, "f16", "nt", "bias_relu", "f16"), 2, block_m=16),
    case(wgmma, Matmul(21, 131, 104, "f16", "nt"), 3, block_m=24, block_n=128, consumers=2),
    case(wgmma, Matmul(32, 71, 72, "bf16", "nt", "bias_relu"), block_m=32),
    case(wgmma, Matmul(40, 136, 144, "i8", "nt"), 4, block_m=48, block_k=128, block_n=128),
    case(wgmma, Matmul(7, 64, 144, "e4m3", "nt"), 5, block_m=8, block_k=128),
    case(wgmma, Matmul(15, 136, 456, "bf16", "nt", "bias_relu", "bf16"),
         1, block_m=8, splits=4, cluster="2x1"),
    case(wgmma, Matmul(60, 136, 100, "tf32", "nt"), 2, block_m=32, block_k=32, cluster="1x2", tiles=2),
    # f32 by three products of tf32
    case(wgmma, Matmul(128, 96, 192, "tf32x3"), block_k=32, block_n=128, consumers=2, stages=3),
    case(wgmma, Matmul(100, 72, 200, "tf32x3", "nn", "bias_relu"), 1, block_k=32, block_m=128),
    case(wgmma, Matmul(136, 72, 96, "tf32x3"), 2, block_k=32, tiles=3, stages=3),
    case(wgmma, Matmul(136, 132, 68, "tf32x3"), 3, block_k=32, cluster="1x2", tiles=2),
    case(wgmma, Matmul(136, 132, 100, "tf32x3"), 4, block_k=32, cluster="2x1"),
    case(wgmma, BatchMatmul(2, 60, 68, 72, "tf32x3"), 5, block_k=32),
    # nt: A in registers, without an exchange; of few rows B
    case(wgmma, Matmul(128, 96, 192, "tf32x3", "nt"), block_k=32, block_m=128, consumers=2, stages=3),
    case(wgmma, Matmul(100, 72, 200, "tf32x3", "nt", "bias_relu"), 1, block_k=32, block_n=128),
    case(wgmma, Matmul(136, 72, 96, "tf32x3", "nt"), 2, block_k=32, tiles=3, stages=3),
    case(wgmma, Matmul(136, 132, 68, "tf32x3", "nt"), 3, block_k=32, cluster="1x2", tiles=2),
    case(wgmma, Matmul(132, 64, 100, "tf32x3", "nt"), 4, block_k=32, cluster="2x1", stores="exchange"),
    case(wgmma, BatchMatmul(2, 68, 60, 72, "tf32x3", "nt"), 5, block_k=32),
    case(wgmma, Matmul(13, 136, 100, "tf32x3", "nt"), 6, block_m=16, block_n=128, block_k=32, consumers=2),
    # tn: the smaller operand is copied by columns before, the other one goes through registers
    case(wgmma, Matmul(70, 132, 420, "tf32", "tn", "bias_relu"), 1, block_k=32, block_n=128, consumers=2),
    case(wgmma, Matmul(200, 71, 100, "tf32", "tn"), 2, block_k=32, block_m=128, tiles=3, consumers=2),
    case(wgmma, BatchMatmul(2, 60, 72, 260, "tf32", "tn"), 3, block_k=32, splits=4, stages=3),
    case(wgmma, Matmul(136, 132, 100, "tf32", "tn"), 4, block_k=32, cluster="2x1"),
    case(wgmma, Matmul(66, 68, 76, "tf32", "tn"), block_k=32),
    case(wgmma, Matmul(66, 70, 76, "tf32", "tn"), block_k=32),  # by mma.sync, for the rows of B
    case(wgmma, Matmul(100, 72, 200, "tf32x3", "tn"), 5, block_k=32, block_m=128, consumers=2),
    case(wgmma, Matmul(71, 100, 200, "tf32x3", "tn", "bias_relu"), 6, block_k=32),
    case(wgmma, BatchMatmul(2, 68, 60, 72, "tf32x3", "tn"), 7, block_k=32),
)  # fmt: skip


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("build", "seed"), POINTS)
def test_a_point_is_right_and_free_of_races(build: Build, seed: Seed) -> None:
    one = build()
    assert points.is_feasible(one)
    require_shared_bytes(one)
    require_right(one, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "layout"), KINDS)
def test_a_random_point_of_cuda_cores_is_right_and_free_of_races(dtype: str, layout: str) -> None:
    rng = np.random.default_rng([ord(letter) for letter in dtype + layout])
    m, n, k = (int(size) for size in rng.integers(1, 120, 3))
    problem = Matmul(m, n, k, dtype, layout, str(rng.choice(["none", "bias_relu"])))
    allowed = feasible_set(problem, SIMT)
    one = GpuPoint(problem, allowed.candidate(int(rng.integers(allowed.rows))))
    require_shared_bytes(one)
    require_right(one)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "chip", "rng_seed", "multiple", "kinds"),
    [
        (MMA_SYNC, "sm_90", 5, 1, (("f16", "nn"), ("bf16", "nt"), ("tf32", "tn"))),
        (MMA_SYNC, "sm_80", 6, 1, (("tf32x3", "nn"), ("tf32x3", "nt"), ("tf32x3", "tn"))),
        (points.WGMMA, points.HOPPER, 7, 8, (("f16", "nn"), ("bf16", "tn"), ("tf32", "nt"))),
    ],
)
def test_random_points_of_tensor_cores_are_right_and_free_of_races(
    strategy: str, chip: str, rng_seed: int, multiple: int, kinds: tuple[tuple[str, str], ...]
) -> None:
    rng = np.random.default_rng(rng_seed)
    for dtype, layout in kinds:
        m, n, k = (multiple * int(size) for size in rng.integers(1, 150 if multiple == 1 else 24, 3))
        problem = Matmul(m, n, k, dtype, layout)
        allowed = feasible_set(problem, strategy, chip)
        one = GpuPoint(problem, allowed.candidate(int(rng.integers(allowed.rows))), chip)
        require_right(one, seed=None if strategy == MMA_SYNC else int(rng.integers(100)))


@pytest.mark.parametrize(("rows", "blocks"), [(1, {8}), (16, {8, 16}), (64, {32, 48, 64})])
def test_few_rows_have_blocks_of_no_more_rows(rows: int, blocks: set[int]) -> None:
    feasible = feasible_set(Matmul(rows, 14336, 4096, "bf16", "nt"), points.WGMMA, points.HOPPER)
    configurations = [dict(feasible.candidate(row).choices) for row in range(feasible.rows)]
    assert {knobs["block_m"] for knobs in configurations} == blocks
    assert {knobs["stages"] for knobs in configurations} >= {8, 11}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_a_random_point_of_few_rows_is_right_and_free_of_races(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 65))
    n = int(rng.integers(1, 300))
    dtype = str(rng.choice(["bf16", "f16", "e4m3", "i8", "tf32"]))
    k = 16 * int(rng.integers(1, 60))
    layout = "nt"
    if seed % 2 and dtype in ("bf16", "f16"):
        layout = "nn"
        n = 8 * n
    problem = Matmul(m, n, k, dtype, layout)
    allowed = feasible_set(problem, points.WGMMA, points.HOPPER)
    one = GpuPoint(problem, allowed.candidate(int(rng.integers(allowed.rows))), points.HOPPER)
    assert "wgmma" in compiled(one).text
    require_right(one, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    ("dtype", "layout"), [(dtype, layout) for dtype in ("tf32", "tf32x3") for layout in LAYOUTS]
)
def test_a_random_point_that_lanes_read_is_right_on_wgmma_without_bank_conflicts(
    dtype: str, layout: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    m, n, k = (4 * int(size) for size in rng.integers(1, 60, 3))
    problem = Matmul(m, n, k, dtype, layout)
    allowed = feasible_set(problem, points.WGMMA, points.HOPPER)
    one = GpuPoint(problem, allowed.candidate(int(rng.integers(allowed.rows))), points.HOPPER)
    assert "wgmma" in compiled(one).text
    for simulation in require_right(one, seed=seed):
        reads = [found for found in simulation.conflicts if found.instruction.startswith(SHARED_READS)]
        assert {found.ratio for found in reads} <= {1.0}


def require_shared_bytes(one: GpuPoint) -> None:
    """Asserts that CUDA cores get the stages of both tiles, the larger first, each from 128 bytes on."""
    if one.candidate.strategy != SIMT:
        return
    knobs: Knobs = dict(one.candidate.choices)
    m, n, k = (knobs[f"block_{letter}"] for letter in "mnk")
    has_columns = knobs["transpose"] == 1
    a = (k, m) if has_columns or one.problem.layout == "tn" else (m, k)
    b = (n, k) if one.problem.layout == "nt" and not has_columns else (k, n)
    sizes = (_tile_bytes(*shape, one.problem.input_bytes, knobs["pad_bytes"]) for shape in (a, b))
    less, more = sorted((knobs["depth"] + 1) * size for size in sizes)
    assert compiled(one).launches[0].dynamic_shared_bytes == -(-more // 128) * 128 + less


def _tile_bytes(rows: int, columns: int, element_bytes: int, gap_bytes: int) -> int:
    """Returns the bytes of a tile with a gap behind as many rows as are a multiple of 128 bytes.

    Of single bytes at least two rows lie together.
    """
    row_bytes = columns * element_bytes
    together = max(128 // math.gcd(128, row_bytes), 2 if element_bytes == 1 else 1)
    return rows // together * (together * row_bytes + gap_bytes)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("sizes", "dtype", "layout", "epilogue"), NAIVE_POINTS)
def test_the_naive_strategy_is_right_and_free_of_races_for_every_kind_and_shape(
    sizes: tuple[int, int, int], dtype: str, layout: str, epilogue: str
) -> None:
    problem = Matmul(*sizes, dtype, layout, epilogue)
    allowed = feasible_set(problem, points.NAIVE)
    for row in {0, allowed.rows - 1}:
        require_right(GpuPoint(problem, allowed.candidate(row)))


@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_the_naive_strategy_gives_rows_to_blocks_and_columns_to_threads(epilogue: str) -> None:
    """Buddy's mapping, with columns cut into blocks of at most 1024 threads."""
    program = points.naive(Matmul(100, 3000, 16, epilogue=epilogue), block_n=1024).program()
    (launch,) = program.launches
    assert (launch.grid, launch.block) == ((100, 3, 1), (1, 1024, 1))
    assert launch.dynamic_shared_bytes == 0
    assert sorted(launch.arguments) == sorted(buffer.name for buffer in program.buffers)


TABLE = [name for name in epilogues.EPILOGUES if name not in EPILOGUES]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("epilogue", TABLE)
def test_each_epilogue_of_the_table_is_right_in_the_naive_and_the_simt_strategy(epilogue: str) -> None:
    problem = BatchMatmul(2, 37, 70, 19, epilogue=epilogue)
    require_right(GpuPoint(problem, feasible_set(problem, points.NAIVE).candidate(0)))
    require_right(simt(Matmul(67, 130, 50, epilogue=epilogue), depth=4))


@pytest.mark.slow
@pytest.mark.parametrize("epilogue", TABLE)
def test_each_epilogue_of_the_table_is_right_on_tensor_cores(epilogue: str) -> None:
    require_right(mma_sync(Matmul(64, 72, 48, "f16", epilogue=epilogue, output="f16")))
    require_right(wgmma(Matmul(64, 128, 64, "bf16", epilogue=epilogue, output="bf16")))


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    "build",
    [
        partial(simt, Matmul(67, 130, 50, epilogue="accumulate"), depth=4),
        partial(simt, Matmul(64, 64, 40, "i8", epilogue="accumulate"), chip="sm_80", depth=3),
        partial(mma_sync, Matmul(67, 130, 130, "f16", epilogue="accumulate", output="f16"), depth=4),
        partial(mma_sync, Matmul(64, 64, 128, "i8", epilogue="accumulate"), exchange=1),
        partial(mma_sync, Matmul(65, 65, 160, "bf16", "nt", "accumulate", "bf16"),
                splits=2, split_by="workspace", block_k=16, warps_n=1),
        partial(wgmma, Matmul(70, 72, 72, "f16", "nn", "accumulate", "f16"), stores="tma", tiles=3),
        partial(wgmma, Matmul(66, 64, 40, "tf32", "nt", "accumulate"), stores="exchange", block_k=32),
        partial(wgmma, Matmul(60, 72, 400, "i8", "nt", "accumulate"), splits=2, block_k=128),
    ],
)  # fmt: skip
def test_a_program_adds_to_what_c_holds_once_for_each_element(build: Build) -> None:
    require_right(build(), seed=1)


def test_sums_are_read_after_the_wait_for_the_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM clears the sign bits of an absolute value by integer instructions, which it moves up."""
    steps = (epilogues.EpilogueStep.parsed("bent = tanh sum"),)
    rows = cast("dict[str, epilogues.Epilogue]", epilogues.EPILOGUES)
    monkeypatch.setitem(rows, "relu", epilogues.Epilogue("relu", (), steps, "tanh(A B)"))
    # sizes that no other test has: a process compiles each point once, here with another epilogue
    for dtype in ("bf16", "f16"):
        require_right(wgmma(Matmul(64, 136, 72, dtype, epilogue="relu", output=dtype)))
    require_right(wgmma(Matmul(64, 136, 72, "tf32", epilogue="relu"), block_k=32))


UNEVEN = Matmul(40, 72, 60, "f16", "nn", "bias_relu", "f16")  # rows of A: 120 bytes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "seed"),
    [
        case(wgmma, UNEVEN, 1),
        case(wgmma, Matmul(40, 70, 61, "bf16", "tn", output="bf16")),  # of neither are whole words
        case(wgmma, Matmul(40, 40, 30, "tf32", "nt"), 2, block_k=32),
        case(wgmma, Matmul(40, 70, 90, "i8", "nt"), block_k=128),
    ],
)
def test_hopper_does_uneven_rows_by_mma_sync(build: Build, seed: Seed) -> None:
    one = build()
    assert points.is_feasible(one)
    assert "mma.sync" in compiled(one).text
    assert "wgmma" not in compiled(one).text
    require_right(one, seed=seed)


# What the search spaces of the strategies for GPUs allow, and what comes last.
BASES = {
    SIMT: GpuPoint(Matmul(512, 512, 512), Candidate.of(SIMT, points.SIMT_LARGE)),
    MMA_SYNC: GpuPoint(Matmul(512, 512, 512, "f16"), Candidate.of(MMA_SYNC, points.MMA_SYNC_SMALL)),
}
LARGE_BLOCK = {"block_m": 256, "block_n": 128, "warps_m": 8, "warps_n": 4, "block_k": 64}
SMALL_BLOCK = {"block_m": 32, "block_n": 32, "block_k": 16, "warps_m": 2, "warps_n": 2}


def changed(strategy: str, knobs: Knobs) -> GpuPoint:
    base = BASES[strategy]
    return GpuPoint(base.problem, Candidate.of(strategy, dict(base.candidate.choices) | knobs))


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("strategy", "knobs", "why"),
    [
        (SIMT, {"split_m": 4, "block_m": 96, "thread_m": 8}, "a block that is not whole tiles"),
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
def test_what_cannot_work_or_is_not_new_is_not_in_the_space(strategy: str, knobs: Knobs, why: str) -> None:
    allowed = feasible_set(BASES[strategy].problem, strategy)
    assert allowed.row_of(BASES[strategy].candidate) is not None
    assert allowed.row_of(changed(strategy, knobs).candidate) is None, why
    assert not points.is_feasible(changed(strategy, knobs)), why


@pytest.mark.parametrize(
    ("strategy", "knobs", "why"),
    [
        (SIMT, {"block_m": 256, "block_n": 256}, "more than 512 threads"),
        (SIMT, {"thread_n": 2}, "stores of half a vector"),
        (SIMT, {"pad_bytes": 16}, "nothing reads across rows"),
        (SIMT, {"unroll_k": 1}, "a quarter of a vector of A"),
        (MMA_SYNC, {"block_m": 256, "block_n": 256}, "512 sums of a thread"),
        (MMA_SYNC, LARGE_BLOCK, "64 registers of each of 1024 threads"),
    ],
)
def test_what_is_believed_slow_or_spills_comes_last(strategy: str, knobs: Knobs, why: str) -> None:
    allowed = feasible_set(BASES[strategy].problem, strategy)
    preferred, late = (allowed.row_of(each.candidate) for each in (BASES[strategy], changed(strategy, knobs)))
    assert allowed.is_preferred[[present(preferred), present(late)]].tolist() == [True, False], why


SHAPES = [(1, 1, 1), (1, 97, 64), (97, 1, 3), (33, 70, 2), (4096, 1, 4096), (193, 257, 91)]


@pytest.mark.parametrize("sizes", SHAPES)
@pytest.mark.parametrize(("dtype", "layout"), [("f32", "nt"), ("f64", "tn"), ("i8", "nn")])
def test_cuda_cores_have_some_point_for_every_shape(sizes: Index3, dtype: str, layout: str) -> None:
    space = points.space_of(Matmul(*sizes, dtype, layout), SIMT)
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
    candidate = points.naive(Matmul(1, 1, 1)).candidate
    assert feasible_set(Matmul(1, 32 * 65535 + 1, 1), points.NAIVE).row_of(candidate) is None
    assert feasible_set(Matmul(1, 32 * 65535, 1), points.NAIVE).row_of(candidate) == 0


@pytest.mark.slow
def test_too_much_shared_memory_is_refused_by_the_constraint_and_by_the_compiler() -> None:
    knobs: Knobs = {"block_m": 256, "block_n": 128, "block_k": 128, "depth": 3, "warps_m": 4}
    huge = mma_sync(Matmul(512, 512, 1024, "f16"), **knobs)
    assert feasible_set(huge.problem, MMA_SYNC).row_of(huge.candidate) is None
    with fails(Stage.RESOURCES, match="found 393216 bytes, allowed 232448"):
        huge.program()


def test_other_chips_and_layouts_that_wgmma_refuses_have_no_point() -> None:
    for problem, chip, why in (
        (Matmul(64, 64, 64, "f16"), "sm_90", "matmul_gpu_wgmma: the GPU has no wgmma"),
        (Matmul(64, 64, 64, "e4m3"), points.HOPPER, "input_bytes != 1 or layout == 'nt'"),
        (Matmul(64, 64, 63, "tf32x3"), points.HOPPER, "has_whole_rows == 1"),
    ):
        with pytest.raises(UsageError, match=re.escape(why)):
            feasible_set(problem, points.WGMMA, chip)
    small = Matmul(64, 64, 64, "f16")
    with pytest.raises(CandidateError, match=r"^nvvm\.\S+ at line .*: found chip sm_90, allowed sm_90a"):
        GpuPoint(small, wgmma(small).candidate, "sm_90").program()


def test_points_of_hopper_for_rows_of_no_whole_16_bytes_come_last() -> None:
    allowed = feasible_set(UNEVEN, points.WGMMA, points.HOPPER)
    assert allowed.rows > 0
    assert not allowed.is_preferred.any()
    (entry,) = [each for each in gpu_strategies() if each.name == points.WGMMA]
    assert not is_allowed(entry, UNEVEN, points.HOPPER)
    script = default_script(UNEVEN, gpu_machine("simulator", chip_of(points.HOPPER), "PTX simulator"))
    assert "wgmma" not in present(script).text
