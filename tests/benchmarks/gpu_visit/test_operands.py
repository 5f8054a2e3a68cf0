"""Operands on a stand-in for the driver whose kernels run: right results pass, wrong ones are found."""

import itertools

import numpy as np
import pytest

from benchmarks.gpu_visit import comparison
from benchmarks.gpu_visit.operands import (
    RANDOM_BITS,
    DeviceOperands,
    random_inputs,
    random_operand,
    sized_for,
    widened_operands,
)
from tests.gpu.driver.stub_cublas import stub_cublas
from tests.gpu.target.strategies.points import compiled, mma_sync, wgmma
from tests.support.gpu_point import GpuPoint, feasible_set
from tests.support.stub_driver import StubDriver
from tuner.core.errors import TunerError
from tuner.core.matmul import GroupedMatmul, Matmul
from tuner.core.problem import SCALES, Problem
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.gpu.target.arrays import LoadedKernels
from tuner.gpu.target.evaluator import LocalGpu
from tuner.gpu.target.event_timing import Enqueue
from tuner.payload.reference import scaled_operands

CHIP = "sm_90"


@pytest.mark.parametrize("dtype", [*RANDOM_BITS, "i8"])
def test_random_numbers_are_of_their_type_and_neither_zero_nor_special(dtype: str) -> None:
    numbers = random_operand((64, 80), dtype, np.random.default_rng(0)).astype(np.float64)
    size = np.abs(numbers)
    if dtype == "i8":
        assert (numbers.min(), numbers.max()) == (-32, 31)
    else:
        assert 0.5 <= size.min() < 0.6 < 1.7 < size.max() < 2.0
    assert abs((numbers < 0).mean() - 0.5) < 0.05
    if dtype == "tf32":
        assert not (numbers.astype(np.float32).view(np.uint32) & 0x1FFF).any()


@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
def test_inputs_have_the_norms_of_their_rows_and_columns_in_every_layout(layout: str) -> None:
    inputs = random_inputs(Matmul(6, 10, 8, "f16", layout), np.random.default_rng(0))
    a, b = (each[0].astype(np.float64) for each in inputs.base.without_layout)
    np.testing.assert_allclose(inputs.base.row_norm, np.linalg.norm(a, axis=1), rtol=1e-6)
    np.testing.assert_allclose(inputs.base.column_norm[0], np.linalg.norm(b, axis=0), rtol=1e-6)
    np.testing.assert_allclose(inputs.tile(slice(2, 4), slice(None))[0], (a @ b)[2:4], rtol=1e-12)


def test_scales_are_positive_and_in_the_norms_and_in_the_reference_operands() -> None:
    problem = Matmul(6, 130, 140, "e4m3", "nt", scales=SCALES)
    inputs = random_inputs(problem, np.random.default_rng(0))
    a, b = scaled_operands(inputs.base.a, inputs.base.b.T, inputs.base.scales, slice(None), slice(None))
    assert min(scale.min() for scale in inputs.base.scales) >= 0.5
    np.testing.assert_allclose(inputs.base.row_norm, np.linalg.norm(a, axis=1), rtol=1e-6)
    np.testing.assert_allclose(inputs.base.column_norm[0], np.linalg.norm(b, axis=0), rtol=1e-6)
    wide = widened_operands(inputs.a, inputs.b, inputs.base.scales)
    for rounded, exact in zip(wide, (a, b.T), strict=True):
        np.testing.assert_allclose(rounded, exact, rtol=2.0**-24)


def test_each_group_has_norms_of_its_own_matrix_and_the_rows_of_a_group_its_product() -> None:
    problem = GroupedMatmul(3, 20, 10, 8, layout="nt")
    inputs = random_inputs(problem, np.random.default_rng(0))
    (offsets,) = inputs.base.offsets
    b = inputs.b.astype(np.float64)
    np.testing.assert_allclose(inputs.base.column_norm, np.linalg.norm(b, axis=2), rtol=1e-6)
    expected, _ = inputs.tile(np.arange(20), slice(None))
    for group, (first, end) in enumerate(itertools.pairwise(offsets.tolist())):
        own = inputs.a[first:end].astype(np.float64) @ b[group].T
        np.testing.assert_allclose(expected[first:end], own, rtol=1e-12)


@pytest.mark.mlir
def test_a_grouped_result_is_right_and_that_of_another_a_is_not() -> None:
    require_right_until_exchanged(mma_sync(GroupedMatmul(4, 100, 64, 64, layout="nt"), group=1), "a", "b")


def no_cublas() -> str:
    raise TunerError("no cuBLAS found")


@pytest.mark.mlir
def test_a_result_with_scales_is_right_and_one_with_scales_of_others_is_not() -> None:
    problem = Matmul(64, 72, 144, "e4m3", "nt", scales=SCALES)
    require_right_until_exchanged(wgmma(problem, block_k=128), "scale_b", "scale_a")


def require_right_until_exchanged(one: GpuPoint, operand: str, other: str) -> None:
    """Asserts that a result is right, and that one with ``other`` in place of ``operand`` is found wrong."""
    device = SimulatedDevice("sm_90a")  # the stand-in for the driver makes no tensor maps
    program = comparison.comparison("sm_90a", "f32")
    operands = DeviceOperands(LocalGpu(device, 4096), one.problem, program, no_cublas)
    loaded = LoadedKernels(device, compiled(one))
    errors = operands.errors_of(loaded.work(operands.addresses))
    assert errors.is_right, errors
    exchanged = operands.addresses | {operand: operands.addresses[other]}
    assert not operands.errors_of(loaded.work(exchanged)).is_right
    operands.close()


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> LocalGpu:
    monkeypatch.setattr(comparison, "BLOCKS", 1)  # a simulated one is slow
    return LocalGpu(StubDriver().open(), 4096)


def naive(gpu: LocalGpu, problem: Problem, operands: DeviceOperands) -> Enqueue:
    point = GpuPoint(problem, feasible_set(problem, "matmul_gpu_naive", CHIP).candidate(0), CHIP)
    loaded = LoadedKernels(gpu.device, point.program())
    work = loaded.work(operands.addresses)
    setattr(operands, "kept", loaded)  # noqa: B010 - its kernels live as long as the operands
    return work


@pytest.mark.mlir
@pytest.mark.parametrize(
    ("problem", "result"),
    [(Matmul(70, 33, 16), "f32"), (Matmul(5, 40, 16, "f32", "tn"), "f32"), (Matmul(9, 32, 16, "i8"), "i32")],
    ids=lambda value: value.key if isinstance(value, Problem) else None,
)
def test_a_right_result_is_near_the_reference_and_near_float64(
    gpu: LocalGpu, problem: Problem, result: str
) -> None:
    program = comparison.comparison(CHIP, result)
    operands = DeviceOperands(gpu, problem, program, stub_cublas)
    errors = operands.errors_of(naive(gpu, problem, operands))
    assert errors.is_right
    assert errors.against_reference is not None
    assert errors.against_reference <= 1.0
    operands.close()


@pytest.mark.mlir
@pytest.mark.parametrize("find", [stub_cublas, no_cublas])
def test_a_result_that_lacks_elements_is_wrong_with_a_reference_and_without(
    gpu: LocalGpu, find: object
) -> None:
    problem = Matmul(70, 33, 16)
    operands = DeviceOperands(gpu, problem, comparison.comparison(CHIP, "f32"), find)  # type: ignore[arg-type]
    errors = operands.errors_of(lambda _: None)
    assert not errors.is_right
    assert "elements are wrong" in errors.text
    assert (errors.against_reference is None) == (find is no_cublas)
    shorter = naive(gpu, Matmul(70, 33, 8), operands)  # half of K
    assert not operands.errors_of(shorter).is_right
    operands.close()


@pytest.mark.mlir
def test_a_wrong_row_that_is_not_compared_with_float64_is_found_on_the_device(gpu: LocalGpu) -> None:
    problem = Matmul(70, 33, 16)
    operands = DeviceOperands(gpu, problem, comparison.comparison(CHIP, "f32"), stub_cublas)
    right = naive(gpu, problem, operands)
    hidden = next(row for row in range(70) if row not in operands.compared_rows)

    def wrong(stream: int) -> None:
        right(stream)
        gpu.device.fill(operands.addresses["c"] + hidden * 33 * 4, 0x7FC00000, 4, 1, stream)

    errors = operands.errors_of(wrong)
    assert errors.against_float64 <= 1.0
    assert not errors.is_right
    operands.close()


def test_on_a_stand_in_no_size_is_large() -> None:
    small = sized_for(Matmul(1, 4096, 14336, "bf16", "nt"), 64)
    assert (small.sizes, small.dtype, small.layout) == ((1, 64, 64), "bf16", "nt")
