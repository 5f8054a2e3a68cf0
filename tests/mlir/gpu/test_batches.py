"""Batches along z of the grid: every strategy is right for every pair of matrices, on the PTX simulator."""

from typing import Any

import pytest

from benchmarks.gpu_check.gpu_point import GpuPoint, feasible_set
from tests.targets.gpu.strategies.points import mma_sync, naive, simt, wgmma
from tuner.core.problem import BatchMatmul
from tuner.mlir.gpu import batches

BY_WORKSPACE: dict[str, Any] = {"splits": 2, "split_by": "workspace", "block_k": 16, "warps_n": 1}
TWOS: dict[str, Any] = dict.fromkeys(("thread_m", "thread_n", "split_m", "split_n", "unroll_k", "depth"), 2)
POINTS = (
    mma_sync(BatchMatmul(3, 67, 130, 64, "f16", epilogue="bias_relu", output="f16")),
    mma_sync(BatchMatmul(2, 64, 64, 160, "f16", "nt"), splits=2),
    mma_sync(BatchMatmul(2, 65, 65, 160, "bf16", "nt", "bias_relu", "bf16"), **BY_WORKSPACE),
    mma_sync(BatchMatmul(2, 65, 99, 91, "f16", "tn"), pack=1, shared="pad"),
    mma_sync(BatchMatmul(5, 1, 3, 7, "bf16", "tn"), depth=0, block_m=32, block_n=32),
    simt(BatchMatmul(3, 40, 65, 33, epilogue="bias_relu"), **TWOS, block_m=64, block_k=16),
    naive(BatchMatmul(4, 5, 3, 7, "i8"), block_m=2),
    wgmma(BatchMatmul(3, 72, 68, 72, "bf16", "nt", "bias_relu", "bf16")),
    wgmma(BatchMatmul(2, 130, 72, 104, "f16"), cluster="2x1"),
    wgmma(BatchMatmul(2, 136, 72, 136, "f16", "tn"), stages=3, tiles=2),
)


@pytest.mark.slow
@pytest.mark.parametrize("one", POINTS, ids=lambda one: f"{one.problem.key} {one.candidate.text}")
def test_every_pair_is_multiplied_without_races(one: GpuPoint) -> None:
    assert feasible_set(one.problem, one.candidate.strategy, one.chip).row_of(one.candidate) is not None
    verdict, _, simulations = one.run(one.program())
    assert [simulation.hazards for simulation in simulations] == [()] * len(simulations)
    assert verdict.max_error <= 1.0


def test_the_grid_and_the_buffers_are_of_the_whole_batch() -> None:
    sizes = (65, 65, 160, "f16", "nt", "bias_relu")
    points = (mma_sync(BatchMatmul(batch, *sizes), splits=2, split_by="workspace") for batch in (1, 3))
    one, three = (point.program() for point in points)
    for before, after in zip(one.launches, three.launches, strict=True):
        assert after.grid == (*before.grid[:2], 3 * before.grid[2])
    for was, now in zip(one.buffers, three.buffers, strict=True):
        assert now.bytes == was.bytes * (1 if now.name == "bias" else 3)
    assert {each.name for each in three.buffers} >= {"a", "b", "bias", "c", "workspace"}


def test_a_tensor_map_gets_the_matrix_as_its_last_dimension() -> None:
    (launch,) = wgmma(BatchMatmul(3, 72, 64, 40, "f16")).program().launches
    layout = next(each.layout for each in launch.tensor_maps if each.buffer == "a")
    assert layout.sizes == (40, 72, 3)
    assert layout.strides_bytes == (80, 72 * 80)
    assert layout.box == (64, 64, 1)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("forgotten", ["a", "b", "c", "workspace"])
def test_a_buffer_with_forgotten_matrices_is_seen(monkeypatch: pytest.MonkeyPatch, forgotten: str) -> None:
    matrix_bytes = batches._matrix_bytes  # noqa: SLF001 - what is broken on purpose
    monkeypatch.setattr(batches, "_matrix_bytes", lambda it: 0 if it.name == forgotten else matrix_bytes(it))
    one = mma_sync(BatchMatmul(2, 64, 64, 128, "f16", "nt"), splits=2, split_by="workspace")
    verdict, _, simulations = one.run(one.program())
    assert verdict.max_error > 1.0 or any(simulation.hazards for simulation in simulations)
