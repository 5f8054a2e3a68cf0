"""Real cubins of our strategies: they need ptxas and nvdisasm."""

from typing import Any

import pytest

from benchmarks.gpu_points import CUDA_CORES, TENSOR_CORES, Builder, Point, point
from tuner.core.problem import Matmul, Problem
from tuner.targets.gpu.compiler import find_ptxas, locate
from tuner.targets.gpu.cycle_model import PredictedCycles, predicted

pytestmark = [
    pytest.mark.mlir,
    pytest.mark.skipif(locate("nvdisasm") is None, reason="needs nvdisasm (pip install -e '.[bench]')"),
    pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas (pip install -e '.[cuda]')"),
]
HALF, TRANSPOSED = Matmul(1024, 1024, 1024, "f16"), Matmul(1024, 1024, 1024, "f32", "nt")


@pytest.fixture(scope="module")
def builder() -> Builder:
    return Builder("sm_80")


def cycles(builder: Builder, wanted: Point) -> PredictedCycles:
    found = predicted(wanted.problem, builder.build(wanted).program)
    assert found is not None
    return found


def test_tensor_cores_are_predicted_faster_than_their_peak_allows_and_slower_than_twice_that(
    builder: Builder,
) -> None:
    found = cycles(builder, point(TENSOR_CORES, HALF))
    peak = 1024**3 / 1024 / 108  # multiply-adds per cycle and multiprocessor, multiprocessors of an A100
    assert found.parts is not None
    assert peak < found.cycles < 8 * peak


def test_bank_conflicts_are_seen_in_the_lanes_addresses(builder: Builder) -> None:
    padded = cycles(builder, point(CUDA_CORES, TRANSPOSED, pad_bytes=16))
    dense = cycles(builder, point(CUDA_CORES, TRANSPOSED, pad_bytes=0))
    assert padded.parts is not None
    assert dense.parts is not None
    assert 2 * padded.parts.memory < dense.parts.memory


@pytest.mark.parametrize(
    ("strategy", "problem", "knobs"),
    [(TENSOR_CORES, HALF, {}), (CUDA_CORES, Matmul(1024, 1024, 1024), {"unroll_k": 2})],
    ids=str,
)
def test_a_warp_that_reads_ahead_waits_less(
    builder: Builder, strategy: str, problem: Problem, knobs: dict[str, Any]
) -> None:
    ahead, behind = (cycles(builder, point(strategy, problem, **knobs, prefetch=each)) for each in (1, 0))
    assert ahead.parts is not None
    assert behind.parts is not None
    assert ahead.parts.critical_path < behind.parts.critical_path
