"""A product of groups of rows on a GPU, simulated: verified, watched, called, without a baseline."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.gpu.target.simulated_cuda import device_with_a_clock, evaluator_on, require_watched
from tests.gpu.target.strategies.points import compiled, mma_sync
from tuner.core.errors import TunerError, UsageError
from tuner.core.matmul import GroupedMatmul
from tuner.gpu.target.callables import GpuCallable
from tuner.payload.comparison import compare
from tuner.payload.drawing import draw, draw_base
from tuner.payload.group_offsets import offsets_of
from tuner.payload.reference import Array, Inputs

pytestmark = pytest.mark.mlir
POINT = mma_sync(GroupedMatmul(4, 60, 64, 64, layout="nt"), group=1, block_m=32)


@pytest.mark.slow
def test_a_kernel_is_verified_and_watched_while_it_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    require_watched(evaluator_on(device_with_a_clock()), POINT.problem, compiled(POINT), monkeypatch)


def inputs_of(offsets: Array) -> Inputs:
    rng = np.random.default_rng(0)
    base = replace(draw_base(POINT.problem, rng), offsets=(offsets,))
    return draw(POINT.problem, base, rng)


def test_a_kernel_is_called_with_offsets_after_a_and_b_and_leaves_other_rows() -> None:
    inputs = inputs_of(offsets_of(np.array([7, 0, 40, 1]), 5))
    kernel = GpuCallable(POINT.problem, compiled(POINT), device_with_a_clock())
    out = np.full(POINT.problem.c_shape, np.nan, np.float32)
    assert kernel(*inputs.arrays, out=out) is out
    verdict, worst = compare(inputs, out)
    assert verdict.max_error <= 1.0, worst
    assert np.isnan(out[:5]).all()


@pytest.mark.parametrize(
    ("offsets", "found"),
    [
        ([0, 30, 20, 60, 60], "found numbers that fall"),
        ([-1, 0, 0, 10, 20], "found -1 to 20"),
        ([0, 0, 0, 10, 61], "found 0 to 61"),
    ],
)
def test_offsets_that_fall_or_leave_the_rows_are_refused(offsets: list[int], found: str) -> None:
    inputs = inputs_of(offsets_of(np.array([7, 0, 40, 1])))
    a, b, _ = inputs.arrays
    kernel = GpuCallable(POINT.problem, compiled(POINT), device_with_a_clock())
    line = f"offsets: {found}, allowed numbers from 0 to 60 that do not fall"
    with pytest.raises(UsageError, match=f"^{re.escape(line)}$"):
        kernel(a, b, np.array(offsets, np.int32))


def test_cublas_is_no_baseline() -> None:
    with pytest.raises(TunerError, match=r"^cuBLAS: products of groups of rows are not compared$"):
        evaluator_on(device_with_a_clock()).load_baselines(POINT.problem, np.random.default_rng(0))
