"""Operands lie where their problem says; the arrays of a fusion, and what a kernel must leave alone."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests import byte_fusion_texts as byte_texts
from tests.fusion_problems import first_script, fusion_problems, program_text
from tests.fusion_runs import as_problem
from tests.targets.cpu.test_evaluator import COMPILER, CPU, POINTS, QUICK, point_of
from tests.targets.evaluation import fails, rng
from tests.texts import text_beside
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import CandidateError, Stage
from tuner.core.interfaces import Artifact, Script
from tuner.core.matmul import Matmul
from tuner.core.packings import WeightPacking, packings_comment, packings_in, threads_comment, threads_in
from tuner.core.problem import ALIGNMENTS, CACHES, COLD, WARM, WEIGHTS_COLD, Problem
from tuner.core.problem_classes import FusedProblem, TextProblem
from tuner.core.records import Measurement
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.cpu.lowering import compile_fusion
from tuner.payload.drawing import draw, draw_base
from tuner.runtime.cpu.memory import placed_copy
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.targets.arrays import ProblemArrays
from tuner.targets.cpu import placed_operands
from tuner.targets.cpu.baseline import BaselineService, InterleavedBaselineService
from tuner.targets.cpu.blas import CompiledLibraryMatmul, openblas_code
from tuner.targets.cpu.callables import load_callable
from tuner.targets.cpu.evaluator import CpuEvaluator
from tuner.targets.cpu.fusion_arrays import FusionArrays
from tuner.targets.cpu.loaded_kernel import LoadedKernel

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
    assert placed_operands.fastest(times) == (2, 4, 5, 3)
    assert placed_operands.fits(Matmul(2048, 2048, 2048))
    assert not placed_operands.fits(Matmul(10000, 10000, 10000))


def test_a_kernel_whose_result_depends_on_addresses_is_refused() -> None:
    problem = Matmul(8, 64, 8)
    kernel, arrays = loaded(problem), ProblemArrays(problem, rng())
    placed = placed_operands.PlacedOperands(problem, arrays.operands)
    placed.operands[2][0][...] += 1  # as if it read past its A
    calls = tuple(kernel.calls(each) for each in placed.operands)
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
    assert CPU.measure(problem, kernel, QUICK, rng()).median_s > 0
    (time,) = CPU.measure_together(problem, (kernel,), WITH_OFFSETS, rng())
    assert len(time.offsets) == 4


@pytest.mark.drawn(2)
@pytest.mark.parametrize("cache", CACHES)
def test_the_baseline_is_timed_in_the_same_state(cache: str) -> None:
    problem = Matmul(64, 64, 64, cache=cache)
    assert BaselineService(problem, 1, 0).sample(QUICK).median_s > 0
    assert InterleavedBaselineService(problem, 1, 0).sample(2) > 0


# y = 2 x + w, rows of 8 elements in memory of 16; w is a weight
STRIDED = text_beside(__file__, "STRIDED")
FUSION = FusedProblem("elementwise", (4, 8, 1), "f32", text=STRIDED)
EVICTING_BYTES = 300  # ten copies of 32 bytes: sixteen
Kernel = Callable[[FusionArrays], None]


def arrays_of(problem: TextProblem = FUSION) -> FusionArrays:
    return FusionArrays(problem, rng(), EVICTING_BYTES)


def correct(arrays: FusionArrays) -> None:
    """Computes y of x and w: of x and y rows of 8 of 16 elements are read and written."""
    x, w, y = arrays.operands
    for row in range(4):
        part = slice(16 * row, 16 * row + 8)
        with np.errstate(invalid="ignore"):  # the sum of infinities
            y[part] = 2 * x[part] + w


def one_wrong(arrays: FusionArrays) -> None:
    correct(arrays)
    arrays.operands[2][16 + 3] += 1e-4


def harm(array: int, element: int, value: float) -> Kernel:
    def kernel(arrays: FusionArrays) -> None:
        correct(arrays)
        arrays.operands[array][element] = value

    return kernel


def test_a_correct_result_is_accepted_for_all_inputs() -> None:
    arrays, source = arrays_of(), rng()
    for change in (arrays.flip_signs, lambda: arrays.fill(source), lambda: arrays.fill_with_extremes(source)):
        change()
        with pytest.raises(CandidateError, match="output 0"):
            arrays.evaluate()  # what was expected before is not any more
        correct(arrays)
        verdict = arrays.evaluate()
        assert verdict.elements == 32
        assert verdict.max_error <= 1.0
        arrays.compare_some_rows(source)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (one_wrong, r"output 0: 1 of 32 elements are wrong; worst at \[1, 3\]: found"),
        (harm(2, 3, np.nan), r"output 0: 1 of 32 elements are wrong; worst at \[0, 3\]: found nan"),
        (harm(2, 8, 0.0), "wrote [1-4] bytes outside of its outputs"),
        (harm(1, 0, 0.0), "changed its input 1"),
        (harm(0, 8, 0.0), "changed its input 0"),
    ],
)
def test_a_dishonest_kernel_is_refused(kernel: Kernel, message: str) -> None:
    arrays = arrays_of()
    kernel(arrays)
    with pytest.raises(CandidateError, match=message):
        arrays.evaluate()


BOTH = STRIDED.replace(" {tuner.weight}", "")  # w is drawn as x is


def misread(array: int, change: Callable[[Any], Any]) -> Kernel:
    """Computes y of an operand whose numbers it changes."""

    def kernel(arrays: FusionArrays) -> None:
        kept = arrays.operands[array].copy()
        arrays.operands[array][...] = change(kept)
        correct(arrays)
        arrays.operands[array][...] = kept

    return kernel


def nan_as_zero(numbers: Any) -> Any:
    return np.where(np.isnan(numbers), np.float32(0), numbers)


def clipped(numbers: Any) -> Any:
    return np.where(np.isinf(numbers), np.copysign(np.float32(1e38), numbers), numbers)


def without_subnormals(numbers: Any) -> Any:
    return np.where(np.abs(numbers) < np.float32(1e-38), np.float32(1), numbers)


@pytest.mark.parametrize("array", [0, 1])
@pytest.mark.parametrize("change", [nan_as_zero, clipped, without_subnormals])
def test_special_numbers_in_each_operand_of_an_elementwise_fusion_show(
    array: int, change: Callable[[Any], Any]
) -> None:
    arrays, kernel = arrays_of(replace(FUSION, text=BOTH)), misread(array, change)
    kernel(arrays)
    arrays.evaluate()  # usual numbers do not show it
    arrays.flip_signs()
    arrays.add_special_numbers(rng())
    kernel(arrays)
    with pytest.raises(CandidateError, match="output 0"):
        arrays.evaluate()
    correct(arrays)
    assert arrays.evaluate().max_error <= 1.0


def test_a_compiled_elementwise_fusion_is_right_on_special_numbers() -> None:
    clamped = """%zero = arith.constant 0.0 : f32
    %last = arith.maximumf %sum, %zero : f32
    linalg.yield %last : f32"""
    problem = replace(FUSION, text=BOTH.replace("linalg.yield %sum : f32", clamped))
    loaded = CPU.load(problem, COMPILER.compile(problem, first_script(problem)))
    assert CPU.verify(problem, loaded, rng()).elements == 32


def test_marks_are_elements_of_the_output() -> None:
    arrays = arrays_of()
    y = arrays.operands[2]
    places = (arrays.marks(rng(), 5)[:, 1] - np.uint64(y.ctypes.data + 2)) // np.uint64(4)
    assert {int(place) % 16 for place in places} <= set(range(8))
    assert len(set(places.tolist())) > 16


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("cache", "copies"), [(WARM, 1), (WEIGHTS_COLD, 16), (COLD, 1)])
def test_calls_read_copies_of_weights_one_after_the_other(cache: str, copies: int) -> None:
    problem = replace(FUSION, cache=cache)
    arrays, team = arrays_of(problem), ThreadTeam(1)
    with transform.new_context(), ir.Location.unknown():
        code = compile_fusion(problem.text, None)
    loaded = CPU.load(
        problem, Artifact(KernelCode.of_host(packings_comment(code.packings) + code.llvm_text), "")
    )
    weights = [operands[1] for operands in arrays.copies(loaded.packings)]
    prepared = loaded.calls_on(arrays)
    assert len(weights) == len({each.ctypes.data for each in weights}) == copies
    for each in weights[1:]:
        each[...] = 0.0
    for call in range(copies + 1):  # only the first copy has the numbers
        arrays.poison()
        team.repeat(prepared.calls, 1)
        if call % copies == 0:
            arrays.evaluate()
        else:
            with pytest.raises(CandidateError, match="32 of 32 elements are wrong"):
                arrays.evaluate()
    if copies > 1:
        with pytest.raises(CandidateError, match="changed its weights"):
            arrays.require_same_weights(loaded.packings)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("cache", [WARM, WEIGHTS_COLD, COLD])
@pytest.mark.parametrize("place", range(3))
def test_first_scripts_of_a_program_are_verified_and_timed(place: int, cache: str) -> None:
    problem = replace(fusion_problems()[place], cache=cache)
    loaded = CPU.load(problem, COMPILER.compile(problem, first_script(problem)))
    assert CPU.verify(problem, loaded, rng()).elements in (8 * 32, 8 * 24)
    assert CPU.measure(problem, loaded, QUICK, rng()).median_s > 0
    assert len(CPU.measure_together(problem, (loaded, loaded), QUICK, rng())) == 2
    assert CPU.load_baselines(problem, rng()) == ()


@pytest.mark.parametrize("cache", [WARM, WEIGHTS_COLD])
def test_a_script_for_two_threads_is_verified_and_timed_on_two(cache: str) -> None:
    problem = replace(fusion_problems(program_text(16, 24, 64))[0], cache=cache)
    script = Script.of(threads_comment(2) + first_script(problem).text)
    artifact = COMPILER.compile(problem, script)
    assert (threads_in(artifact.code.text), packings_in(artifact.code.text)[1] is not None) == (2, True)
    alone = COMPILER.compile(problem, first_script(problem))
    assert (threads_in(alone.code.text), alone.sha256 == artifact.sha256) == (1, False)
    with pytest.raises(CandidateError, match="script wants 2 threads, allowed 1"):
        CpuEvaluator(1).load(problem, artifact)
    loaded = CPU.load(problem, artifact)
    assert CPU.verify(problem, loaded, rng()).elements == 16 * 64
    assert CPU.measure(problem, loaded, QUICK, rng()).median_s > 0
    arrays = arrays_of(problem)
    prepared, team = loaded.calls_on(arrays), ThreadTeam(1)
    assert len(prepared.calls) == 2
    arrays.poison()
    team.repeat(prepared.calls[1:], 1)  # each computes its share alone
    with pytest.raises(CandidateError, match="512 of 1024 elements are wrong"):
        arrays.evaluate()
    team.repeat(prepared.calls[:1], 1)
    arrays.evaluate()


def test_a_weight_that_a_script_packs_is_packed() -> None:
    arrays = arrays_of(fusion_problems()[0])
    panels = arrays.copies((None, WeightPacking(16), None))[0][1].reshape(2, 24, 16)
    assert np.array_equal(panels[1], arrays.operands[1].reshape(24, 32)[:, 16:])


def test_a_fusion_that_numpy_cannot_compute_is_refused() -> None:
    unknown = replace(FUSION, text=STRIDED.replace("arith.addf %a, %a", "arith.remf %a, %a"))
    with pytest.raises(CandidateError, match=r"no reference: fusion: found arith\.remf"):
        arrays_of(unknown)


# Bytes: all of them are drawn, then the extreme ones; a mark is a pair of neighbours within a row.


def arrays_of_bytes(m: int, n: int, k: int, epilogue: str) -> FusionArrays:
    return FusionArrays(as_problem("contraction", byte_texts.product(m, n, k, epilogue)), rng(), 4096)


def test_inputs_are_all_bytes_then_the_extreme_ones_and_marks_are_pairs_within_a_row() -> None:
    arrays = arrays_of_bytes(30, 40, 50, "bias")
    a, b, *_ = arrays.operands
    assert {a.min(), b.min(), a.max(), b.max()} == {-128, 127}
    assert len(set(a.tolist())) > 200
    arrays.fill_with_extremes(rng())
    assert set(a.tolist()) == {-128, 0, 127}
    arrays = arrays_of_bytes(6, 9, 5, "requantized")
    places = arrays.marks(rng(), 5)[:, 1].astype(np.int64) - arrays.operands[-1].ctypes.data
    assert {int(each) % 9 for each in places} == set(range(8))
    assert 0 <= min(places) <= max(places) < 6 * 9 - 1
    with pytest.raises(CandidateError, match=r"no element of the result is finite .*, or has a byte next to"):
        arrays_of_bytes(6, 1, 5, "requantized").marks(rng(), 5)
