"""Sums with large terms and addends: what any legal order computes is right, a few units more are wrong."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tuner.core.dtypes import number_type
from tuner.core.epilogues import BEFORE, EPILOGUES, SUM, Epilogue
from tuner.core.matmul import Matmul
from tuner.core.numpy_types import widened
from tuner.core.problem import Problem
from tuner.core.problem_classes import TextProblem
from tuner.core.quantization import WeightFormat, quantized_text
from tuner.mlir.fusions.function import fusion_arguments
from tuner.mlir.reference.fusion_reference import Expected, evaluate, worst_error
from tuner.payload.comparison import compare
from tuner.payload.drawing import draw, draw_base
from tuner.payload.reference import NUMPY_DTYPES, as_stored
from tuner.targets.cpu.fusion_draws import FusionDraws

Array = npt.NDArray[np.generic]
FLOATS = ("f32", "f64", "f16", "bf16")
ADDING = tuple(name for name, row in EPILOGUES.items() if any(step.operation == "add" for step in row.steps))
SHAPE = (3, 24)
DEPTHS = (1, 3, 16, 17, 64, 700)
FUNCTIONS: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "exp": np.exp,
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
}


def chain(a: Array, b: Array, start: Array, dtype: npt.DTypeLike) -> Array:
    """Returns start + A B, product after product, each sum rounded once to ``dtype``."""
    sums = start.astype(dtype)
    left = widened(a).astype(np.float64)
    right = widened(b).astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        for term in range(left.shape[1]):
            sums = (sums.astype(np.float64) + left[:, term, None] * right[term]).astype(dtype)
    return sums


def finished(
    epilogue: Epilogue,
    a: Array,
    b: Array,
    arguments: Mapping[str, Array],
    problem: Problem,
    *,
    is_first: bool,
) -> Array:
    """Returns the epilogue of A B; ``is_first``: sums begin with the arguments that are added to them."""
    dtype = NUMPY_DTYPES[problem.accumulator]
    steps = list(epilogue.steps)
    start = np.zeros(SHAPE, dtype)
    name = SUM
    while is_first and steps and steps[0].operation == "add" and steps[0].operands[0] == name:
        step = steps.pop(0)
        start = start + widened(arguments[str(step.operands[1])]).astype(dtype)
        name = step.name
    known = {argument: widened(array).astype(dtype) for argument, array in arguments.items()}
    known[name] = chain(a, b, start, dtype)
    with np.errstate(over="ignore"):
        for step in steps:
            operands = [known[operand] if isinstance(operand, str) else operand for operand in step.operands]
            known[step.name] = np.asarray(FUNCTIONS[step.operation](*operands)).astype(dtype)
    return as_stored(known[epilogue.result], problem.result_dtype)


def large(shape: tuple[int, ...], scale: int, dtype: str, rng: np.random.Generator) -> Array:
    """Returns numbers of which every third is 2**scale times as large as the others."""
    numbers = np.asarray(rng.standard_normal(shape))
    flat = numbers.reshape(-1)
    flat[::3] *= 2.0 ** min(scale, number_type(dtype).bias_exponent)
    return as_stored(numbers, dtype)


def a_few_units_more(expected: Expected, dtype: str) -> Array:
    """Returns numbers of ``dtype`` that are off by the tolerance and three units in the last place."""
    size = np.abs(expected.value) + expected.tolerance
    more = expected.tolerance + 3 * number_type(dtype).epsilon * size + 3 * number_type(dtype).smallest
    return as_stored(expected.value + more, dtype)


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(FLOATS),
    st.sampled_from(ADDING),
    st.sampled_from(DEPTHS),
    st.integers(0, 24),
    st.integers(0, 2**32),
    st.booleans(),
)
@example("f32", "residual", 700, 20, 0, True)
def test_a_matmul_that_begins_with_its_addend_or_ends_with_it_is_right(
    dtype: str, name: str, depth: int, scale: int, seed: int, is_first: bool
) -> None:
    problem = Matmul(*SHAPE, depth, dtype, epilogue=name)
    rng = np.random.default_rng(seed)
    inputs = draw(problem, draw_base(problem, rng), rng)
    extra = tuple(large(array.shape, scale, problem.result_dtype, rng) for array in inputs.extra)
    before = None if inputs.before is None else large(SHAPE, scale, problem.result_dtype, rng)
    inputs = replace(inputs, extra=extra, before=before)
    names = [argument.name for argument in problem.extra_arguments]
    arguments = dict(zip(names, extra, strict=True))
    if before is not None:
        arguments[BEFORE] = before
    result = finished(EPILOGUES[name], inputs.a, inputs.b, arguments, problem, is_first=is_first)
    verdict, worst = compare(inputs, result)
    assert verdict.max_error <= 1.0, worst
    wrong = a_few_units_more(Expected(inputs.expected, inputs.tolerance), problem.result_dtype)
    assert compare(inputs, wrong)[0].max_error > 1.0


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(FLOATS),
    st.sampled_from([name for name in ADDING if not EPILOGUES[name].reads_output]),
    st.sampled_from(DEPTHS),
    st.integers(0, 24),
    st.integers(0, 2**32),
    st.booleans(),
)
@example("f32", "residual", 700, 20, 0, True)
def test_a_fusion_with_large_terms_and_addends_is_right_in_either_order(
    dtype: str, name: str, depth: int, scale: int, seed: int, is_first: bool
) -> None:
    problem = Matmul(*SHAPE, depth, dtype, epilogue=name, weights="constant")
    assert isinstance(problem, TextProblem)
    rng = np.random.default_rng(seed)
    a = large((SHAPE[0], depth), min(scale, 6) if dtype == "f16" else scale, dtype, rng)
    b = as_stored(rng.standard_normal((depth, SHAPE[1])), dtype)
    extra = [large(argument.shape, scale, problem.result_dtype, rng) for argument in problem.extra_arguments]
    (expected,) = evaluate(problem.text, (a, b, *extra))
    names = [argument.name for argument in problem.extra_arguments]
    result = finished(EPILOGUES[name], a, b, dict(zip(names, extra, strict=True)), problem, is_first=is_first)
    assert worst_error(expected, result) <= 1.0
    assert worst_error(expected, a_few_units_more(expected, problem.result_dtype)) > 1.0


def test_a_term_that_exceeds_all_others_rounds_each_sum_after_it() -> None:
    problem = Matmul(1, 2048, 512, weights="constant")
    assert isinstance(problem, TextProblem)
    rng = np.random.default_rng(0)
    a = rng.standard_normal((1, 512)).astype(np.float32)
    b = rng.standard_normal((512, 2048)).astype(np.float32)
    a[0, 3] = 2.0**23
    (expected,) = evaluate(problem.text, (a, b))
    result = chain(a, b, np.zeros((1, 2048)), np.float32)
    assert 0.1 < worst_error(expected, result) <= 1.0


@pytest.mark.slow
def test_the_special_draw_of_a_residual_accepts_products_in_the_order_of_k() -> None:
    problem = Matmul(64, 2048, 512, "f32", "nt", "residual", weights="constant")
    assert isinstance(problem, TextProblem)
    inputs = tuple(argument for argument in fusion_arguments(problem.text) if not argument.is_output)
    (drawn,) = FusionDraws(problem, np.random.default_rng(0)).special
    a, b, addend = (
        memory.reshape(argument.shape) for memory, argument in zip(drawn.inputs, inputs, strict=True)
    )
    with np.errstate(invalid="ignore"):
        result = chain(a, b, np.zeros(problem.c_shape), np.float32) + addend
    assert worst_error(drawn.expected[0], result) <= 1.0


@pytest.mark.parametrize("depth", [1, 5, 16])
def test_the_bound_of_a_short_sum_is_the_worst_case(depth: int) -> None:
    problem = Matmul(*SHAPE, depth, epilogue="residual", weights="constant")
    assert isinstance(problem, TextProblem)
    rng = np.random.default_rng(0)
    a = rng.standard_normal((SHAPE[0], depth)).astype(np.float32)
    b = rng.standard_normal((depth, SHAPE[1])).astype(np.float32)
    addend = large(SHAPE, 20, "f32", rng).astype(np.float32)
    (expected,) = evaluate(problem.text, (a, b, addend))
    wide = [array.astype(np.float64) for array in (a, b, addend)]
    magnitudes = np.abs(wide[0]) @ np.abs(wide[1]) + np.abs(wide[2])
    assert np.all(expected.tolerance <= 1.01 * (depth + 2) * 2.0**-24 * magnitudes + 2.0**-120)


@pytest.mark.parametrize("k", DEPTHS)
def test_a_chain_with_one_large_activation_is_right_for_quantized_weights(k: int) -> None:
    m, n = 8, 100
    rng = np.random.default_rng(0)
    a = rng.standard_normal((m, k)).astype(np.float32)
    a[:, 0] = 2.0**20 * 1.37  # in each partial sum after it
    weights = rng.integers(-127, 128, (n, k)).astype(np.int8)
    weights[:, 0] = 113
    scales = rng.uniform(0.5, 1.0, (n, 1)).astype(np.float32)
    text = quantized_text((m, n, k), "f32", WeightFormat(8, 0, "f32"))
    (expected,) = evaluate(text, (a, weights, scales))
    sums = chain(a, weights.T, np.zeros((m, n)), np.float32).astype(np.float32) * scales.T
    assert worst_error(expected, sums) <= 1
    sums[0, 0] = np.float32(expected.value[0, 0] + 1.5 * expected.tolerance[0, 0])
    assert worst_error(expected, sums) > 1
