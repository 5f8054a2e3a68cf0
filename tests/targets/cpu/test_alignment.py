"""Operands lie where their problem says: for verification, for timing, for the baseline, for a caller."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from tests.targets.cpu.test_evaluator import COMPILER, CPU, POINTS, QUICK, point_of, rng
from tests.targets.failures import fails
from tuner.core.errors import Stage
from tuner.core.problem import ALIGNMENTS, CACHES, Matmul, Problem
from tuner.core.records import Measurement
from tuner.payload.reference import draw, draw_base
from tuner.runtime.cpu.memory import placed_copy
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.targets.arrays import ProblemArrays
from tuner.targets.cpu import timing_checks
from tuner.targets.cpu.baseline import BaselineService, InterleavedBaselineService
from tuner.targets.cpu.blas import CompiledLibraryMatmul, openblas_code
from tuner.targets.cpu.callables import load_callable
from tuner.targets.cpu.evaluator import LoadedKernel

pytestmark = pytest.mark.mlir
WITH_OFFSETS = replace(QUICK, has_offsets=True)


def loaded(problem: Problem) -> LoadedKernel:
    return CPU.load(problem, COMPILER.compile(problem, POINTS.bind(point_of(problem))))


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "i8"])
@pytest.mark.parametrize("align", ALIGNMENTS)
def test_candidates_and_baseline_have_the_alignment_and_no_more(align: str, dtype: str) -> None:
    problem = Matmul(9, 7, 5, dtype, epilogue="bias_relu", align=align)
    arrays = ProblemArrays(problem, rng())
    assert {each.ctypes.data % 64 for each in arrays.operands} == {problem.offset_bytes}
    if dtype in ("f32", "f64"):
        inputs = draw(problem, draw_base(problem, rng()), rng())
        library = CompiledLibraryMatmul(problem, inputs, 1, openblas_code)
        assert library.operands[-1] is library.result
        assert {each.ctypes.data % 64 for each in library.operands} == {problem.offset_bytes}


@pytest.mark.slow
@pytest.mark.parametrize("align", ALIGNMENTS)
def test_kernels_are_right_at_each_alignment_and_the_fastest_are_timed_at_others(align: str) -> None:
    problem = Matmul(33, 77, 41, align=align)
    kernel = loaded(problem)
    assert CPU.verify(problem, kernel, rng()).max_error <= 1.0
    if align != "any":
        return
    (time,) = CPU.measure_together(problem, (kernel,), WITH_OFFSETS, rng())
    assert [each.offset for each in time.offsets] == [0, 4, 16, 32, 48]
    assert all(each.interval_s[0] <= each.median_s <= each.interval_s[1] for each in time.offsets)
    (time,) = CPU.measure_together(problem, (kernel,), QUICK, rng())
    assert time.offsets == ()


def test_those_near_the_fastest_are_chosen_but_few_and_only_if_their_operands_can_be_copied() -> None:
    medians_s = enumerate((1.2, 1.04, 1.0, 1.03, 1.01, 1.02))
    times = {index: Measurement((each,), 1, each, (each, each)) for index, each in medians_s}
    assert timing_checks.fastest(times) == (2, 4, 5, 3)
    assert timing_checks.fits(Matmul(2048, 2048, 2048))
    assert not timing_checks.fits(Matmul(10000, 10000, 10000))


def test_a_kernel_whose_result_depends_on_addresses_is_refused() -> None:
    problem = Matmul(8, 64, 8)
    kernel, arrays = loaded(problem), ProblemArrays(problem, rng())
    placed = timing_checks.PlacedOperands(problem, arrays.operands)
    placed.operands[2][0][...] += 1  # as if it read past its A
    calls = tuple(kernel.calls(problem, each) for each in placed.operands)
    with fails(Stage.VERIFY, match="another C where the operands lie 32 bytes"):
        placed.times(ThreadTeam(1), calls, QUICK, rng())


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("align", "offset", "is_reported"), [(64, 16, True), (16, 4, True), (16, 48, False)])
def test_an_array_that_promises_less_is_reported_once(align: int, offset: int, is_reported: bool) -> None:
    problem = Matmul(8, 64, 8, align=align)
    kernel = load_callable(problem, POINTS.bind(point_of(problem)).text, 1)
    a, b = (placed_copy(np.ones(shape, np.float32), offset) for shape in ((8, 8), (8, 64)))
    if is_reported:
        with pytest.warns(UserWarning, match=f"a and b: not at a multiple of {align} bytes") as found:
            kernel(a, b)
        assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        c = kernel(a, b)
    assert (c == 8.0).all()


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("cache", ["weights-cold", "cold"])
def test_calls_with_cold_caches_are_watched_one_by_one(cache: str, threads: int) -> None:
    problem = Matmul(33, 77, 41, cache=cache)
    point = point_of(problem, threads, "n" if threads > 1 else "none")
    kernel = CPU.load(problem, COMPILER.compile(problem, POINTS.bind(point)))
    time = CPU.measure(problem, kernel, QUICK, rng())
    assert time.median_s > 0
    (time,) = CPU.measure_together(problem, (kernel,), WITH_OFFSETS, rng())
    assert len(time.offsets) == 4


@pytest.mark.drawn(2)
@pytest.mark.parametrize("cache", CACHES)
def test_the_baseline_is_timed_in_the_same_state(cache: str) -> None:
    service = BaselineService(Matmul(64, 64, 64, cache=cache), 1, 0)
    assert service.sample(QUICK).median_s > 0
    assert InterleavedBaselineService(Matmul(64, 64, 64, cache=cache), 1, 0).sample(2) > 0
