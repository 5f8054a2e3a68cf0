"""The rotated loops of CUDA cores and of mma.sync: right in any order, found out where broken."""

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.gpu_check.gpu_point import GpuPoint
from tests.targets.gpu.strategies.points import compiled, mma_sync, outcome, require_right, simt
from tests.targets.gpu.strategies.rotated_loop import OF_COPIES, OF_READS, Change, broken
from tests.targets.gpu.strategies.test_points import OF_F64, case
from tuner.core.problem import Matmul, Problem

pytestmark = pytest.mark.mlir

TINY_SIMT: dict[str, Any] = {"block_m": 32, "block_n": 32, "split_n": 1, "prefetch": 1}
OF_NT: dict[str, Any] = {"split_n": 4, "thread_n": 1, "pad_bytes": 16, "depth": 3}
TINY: dict[str, Any] = {"block_m": 32, "block_n": 32, "warps_m": 2, "warps_n": 1}
BLOCK_OF_96: dict[str, Any] = {"block_m": 96, "block_n": 96, "warps_m": 3}

POINTS = (  # the first of each strategy in all orders, others in two
    *(case(simt, Matmul(32, 31, 40), seed, **TINY_SIMT, unroll_k=1) for seed in (None, 1, 2)),
    *(case(simt, Matmul(31, 32, 36, layout="nt"), seed, chip="sm_80", **(TINY_SIMT | OF_NT))
      for seed in (None, 1)),
    *(case(simt, Matmul(32, 18, 24, "f64", "tn"), seed, **TINY_SIMT, **OF_F64, split_m=2, depth=1)
      for seed in (None, 2)),
    *(case(mma_sync, Matmul(32, 32, 160, "f16"), seed, **TINY, prefetch=1, depth=1) for seed in (None, 1, 2)),
    *(case(mma_sync, Matmul(33, 30, 100, "f16", "nn", "bias_relu", "f16"), seed,
           chip="sm_80", **TINY, prefetch=2, depth=4) for seed in (None, 2)),
    *(case(mma_sync, Matmul(32, 40, 91, "f16", "tn"), seed, **TINY, prefetch=1, pack=1, shared="pad")
      for seed in (None, 1)),
    # one step of K per tile
    *(case(mma_sync, Matmul(32, 32, 64, "bf16", "nt"), seed, **TINY, prefetch=2, block_k=16)
      for seed in (None, 2)),
    *(case(mma_sync, Matmul(32, 32, 160, "bf16"), seed, **TINY, prefetch=1, splits=2) for seed in (None, 1)),
    # copies in the second step
    *(case(mma_sync, Matmul(32, 32, 136, "f16"), seed, **TINY, prefetch=1, block_k=64, depth=2)
      for seed in (None, 2)),
    # B by scalar loads
    *(case(mma_sync, Matmul(32, 34, 40, "tf32"), seed, **TINY, prefetch=1, block_k=16, depth=3)
      for seed in (None, 1)),
    *(case(mma_sync, Matmul(32, 32, 80, "tf32", "nt"), seed,
           **TINY, prefetch=2, splits=2, split_by="workspace") for seed in (None, 2)),
)  # fmt: skip


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("build", "problem", "knobs", "seed"), POINTS)
def test_a_rotated_loop_is_right_under_all_schedules(
    build: Callable[..., GpuPoint], problem: Problem, knobs: dict[str, Any], seed: int | None
) -> None:
    one = build(problem, **knobs)
    if build is simt:
        *others, behind = (part.count("ld.shared") for part in compiled(one).ptx.split("bar.sync"))
        assert 0 < behind < sum(others) / 2  # LLVM would move all of them to where the loop begins
    require_right(one, seed=seed)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("build", "problem", "knobs", "change"),
    [
        *((simt, Matmul(32, 32, 40), TINY_SIMT, change) for change in OF_READS),
        *(
            (mma_sync, Matmul(32, 32, 192, "f16"), TINY | {"prefetch": 1 + number % 2}, change)
            for number, change in enumerate(OF_COPIES + OF_READS)
        ),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_broken_loop_is_caught(
    build: Callable[..., GpuPoint], problem: Problem, knobs: dict[str, Any], change: Change
) -> None:
    one = build(problem, **knobs)
    is_right, _ = outcome(one, broken(one, change))
    assert not is_right


@pytest.mark.slow
@pytest.mark.parametrize("shared", ["swizzle", "pad"])
@pytest.mark.parametrize(
    ("problem", "knobs"),
    [
        (Matmul(96, 96, 64, "f16"), BLOCK_OF_96),  # rows of 192 bytes
        (Matmul(32, 32, 48, "bf16", "nt"), {"block_k": 16}),  # of 32
        (Matmul(96, 96, 64, "tf32", "tn"), BLOCK_OF_96),
    ],
    ids=str,
)
def test_rows_of_any_length_are_free_of_bank_conflicts(
    problem: Problem, knobs: dict[str, Any], shared: str
) -> None:
    simulations = require_right(mma_sync(problem, **(TINY | {"prefetch": 1} | knobs | {"shared": shared})))
    assert [simulation.conflict_ratio for simulation in simulations] == [1.0]
    assert simulations[0].conflicts
