"""Inputs and the answer: what is right is never refused, what is wrong is always seen."""

import subprocess
import sys
import threading
import tracemalloc
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.epilogues import EPILOGUES
from tuner.core import numpy_types
from tuner.core.dtypes import FLOAT8S, INPUT_DTYPES, NARROW_OUTPUTS, ROWS, number_type
from tuner.core.matmul import BatchMatmul, Matmul
from tuner.core.numpy_types import BF16, are_equal, hard_to_scale, is_nan, narrowed, scale, wide, widened
from tuner.core.problem import (
    LAYOUTS,
    Problem,
)
from tuner.core.problem_classes import MatmulProblem
from tuner.payload import comparison, drawing, reference
from tuner.payload.comparison import compare
from tuner.payload.drawing import base_of, draw, draw_base
from tuner.payload.reference import NUMPY_DTYPES, Array, Inputs, output_dtype

SEED = st.integers(0, 2**32)
LARGEST_K = 4096
LARGEST_K_OF = dict.fromkeys(FLOAT8S, 64)  # of which one product is seen: their sums are allowed 14 bits
DTYPE, LAYOUT, EPILOGUE = (st.sampled_from(tuple(each)) for each in (INPUT_DTYPES, LAYOUTS, EPILOGUES))
SMALL, DEPTH = st.integers(1, 24), st.sampled_from((1, 2, 5, 64, 333, 1024, LARGEST_K))
NARROW = st.sampled_from([(dtype, each) for dtype, outputs in NARROW_OUTPUTS.items() for each in outputs])


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    dtype = draw(DTYPE)
    k = min(draw(DEPTH), LARGEST_K_OF.get(dtype, LARGEST_K))
    return MatmulProblem("matmul", (draw(SMALL), draw(SMALL), k), dtype, draw(LAYOUT), draw(EPILOGUE))


@st.composite
def narrow_problems(draw: st.DrawFn) -> Problem:
    sizes, (dtype, output) = (draw(SMALL), draw(SMALL), draw(st.sampled_from((1, 2, 5, 64)))), draw(NARROW)
    return MatmulProblem("matmul", sizes, dtype, draw(LAYOUT), draw(EPILOGUE), output)


BATCHES = st.builds(BatchMatmul, st.integers(1, 5), SMALL, SMALL, SMALL, DTYPE, LAYOUT, EPILOGUE)
PROBLEMS, NARROW_PROBLEMS = problems(), narrow_problems()
# In tolerances. The worst over 1,500 random shapes, K up to 20,000, any order of sums, is 0.21.
RIGHT = 0.75  # of the tolerance: with K = 1 a product and a sum are rounded


def inputs_of(problem: Problem, seed: int) -> Inputs:
    rng = np.random.default_rng(seed)
    return draw(problem, draw_base(problem, rng), rng)


def operands(inputs: Inputs) -> tuple[Array, Array]:
    """Returns A (m, k) and B (k, n), of a batch each pair, in the type that the kernel adds up in."""
    layout, dtype = inputs.problem.layout, NUMPY_DTYPES[inputs.problem.accumulator]
    a = inputs.a.swapaxes(-1, -2) if layout == "tn" else inputs.a
    b = inputs.b.swapaxes(-1, -2) if layout == "nt" else inputs.b
    return a.astype(dtype), b.astype(dtype)


def flip_top_bit(array: Array, place: tuple[int, ...]) -> None:
    """Turns the highest bit of one number: of floating-point numbers the sign."""
    item_bytes = array.itemsize
    array.view(np.uint8)[(*place[:-1], place[-1] * item_bytes + item_bytes - 1)] ^= 0x80


def finish(inputs: Inputs, product: Array) -> Array:
    if inputs.extra:
        product = np.maximum(product + inputs.extra[0].astype(product.dtype), np.zeros((), product.dtype))
    finished: Array = product.astype(output_dtype(inputs.problem)) if inputs.problem.output else product
    return finished


def right_answer(inputs: Inputs) -> Array:
    """Returns C as it is compared: of a batch the rows of one pair after those of the one before."""
    a, b = operands(inputs)
    return finish(inputs, (a @ b).reshape(inputs.problem.rows, -1))


def blocked_answer(inputs: Inputs, rng: np.random.Generator) -> Array:
    """Adds up in the kernel's type, K in random blocks in a random order, term by term within a block."""
    a, b = operands(inputs)
    order = rng.permutation(a.shape[1]) if rng.random() < 0.5 else np.arange(a.shape[1])
    cuts = np.sort(rng.integers(0, len(order) + 1, int(rng.integers(0, 5))))
    total = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for block in np.split(order, cuts):
        part = np.zeros_like(total)
        for term in block:
            part += a[:, term, None] * b[term]
        total += part
    return finish(inputs, total)


@given(BATCHES, SEED)
def test_the_answer_of_a_batch_is_that_of_each_pair(problem: Problem, seed: int) -> None:
    inputs = inputs_of(problem, seed)
    assert (inputs.a.shape, inputs.b.shape) == (problem.a_shape, problem.b_shape)
    selected = right_answer(inputs)
    assert compare(inputs, selected)[0].max_error <= RIGHT
    negative = drawing.negated(inputs, (np.empty_like(inputs.a), np.empty_like(inputs.b)))
    assert compare(negative, selected)[0].max_error <= RIGHT
    assert comparison.changed_inputs(inputs, inputs.arrays) == ""
    assert reference.unwritten_output(problem).shape == selected.shape


@given(BATCHES, SEED, st.data())
def test_parts_of_a_batch_are_parts_of_the_whole(problem: Problem, seed: int, data: st.DataObject) -> None:
    inputs, n = inputs_of(problem, seed), problem.sizes[1]
    rows = np.array(data.draw(st.lists(st.integers(0, problem.rows - 1), min_size=1, max_size=9)))
    columns = slice(data.draw(st.integers(0, n - 1)), n)
    which = data.draw(st.sampled_from("AB"))
    matrix = data.draw(st.integers(0, problem.batch - 1))
    used = inputs.base.without_layout["AB".index(which)]
    row, column = (data.draw(st.integers(0, size - 1)) for size in used.shape[1:])
    changed = replace(inputs, flip=reference.Flip(which, row, column, matrix))
    for each in (inputs, changed):
        expected, tolerance = each.tile(rows, columns)
        assert np.allclose(expected, each.expected[rows, columns], rtol=1e-9, atol=1e-9)
        assert np.allclose(tolerance, each.tolerance[rows, columns], rtol=1e-9, atol=1e-12)
    stored = replace(inputs, a=inputs.a.copy(), b=inputs.b.copy())
    turned = {"A": stored.a, "B": stored.b}[which]
    is_turned = (which, problem.layout) in (("A", "tn"), ("B", "nt"))
    flip_top_bit(turned, (matrix, column, row) if is_turned else (matrix, row, column))
    assert compare(changed, right_answer(stored))[0].max_error <= RIGHT


def test_changed_places_and_signs_are_seen_and_rows_compared_alone() -> None:
    inputs = inputs_of(BatchMatmul(3, 4, 5, 6), 1)
    swapped = right_answer(inputs).reshape(3, 4, 5)[[1, 0, 2]].reshape(12, 5)
    assert compare(inputs, swapped)[0].max_error > 1
    inputs = inputs_of(Matmul(3, 5, 7), 1)
    turned = drawing.negated(inputs, (np.empty_like(inputs.a), np.empty_like(inputs.b)))
    assert np.array_equal(turned.a, -inputs.a)
    assert np.array_equal(turned.b, -inputs.b)
    assert np.array_equal(turned.expected, inputs.expected)
    inputs = inputs_of(Matmul(6, 5, 7), 1)
    result = right_answer(inputs)
    result[1, 2] += 1.0
    assert comparison.compare_rows(inputs, result, 2, 6)[0].max_error <= RIGHT
    verdict, text = comparison.compare_rows(inputs, result, 1, 3)
    assert (verdict.elements, text[:42]) == (10, "1 of 10 elements are wrong; worst at [1, 2")


@given(PROBLEMS, SEED, st.booleans(), st.data())
def test_the_answer_knows_of_a_number_whose_top_bit_is_another(
    problem: Problem, seed: int, is_a: bool, data: st.DataObject
) -> None:
    inputs = inputs_of(problem, seed)
    stored = replace(inputs, a=inputs.a.copy(), b=inputs.b.copy())
    turned, is_transposed = (stored.a, problem.layout == "tn") if is_a else (stored.b, problem.layout == "nt")
    place = tuple(data.draw(st.integers(0, size - 1)) for size in turned.shape)
    flip_top_bit(turned, place)
    a, b = (array.astype(np.float64) for array in operands(stored))
    row, column = place[::-1] if is_transposed else place
    changed = replace(inputs, flip=reference.Flip("A" if is_a else "B", row, column))
    near = 1e-12 * np.linalg.norm(a) * np.linalg.norm(b)
    assert np.abs(changed.expected - finish(inputs, a @ b)).max() <= near


@given(PROBLEMS, SEED)
def test_each_draw_is_fresh(problem: Problem, seed: int) -> None:
    rng = np.random.default_rng(seed)
    square = replace(problem, sizes=(24, 24, problem.sizes[2]))
    base = draw_base(square, rng)
    one, other = (draw(square, base, rng) for _ in range(2))
    assert np.mean(one.a == other.a) < 0.75  # a factor of four or six is the same by chance
    assert np.mean(one.b == other.b) < 0.75
    assert compare(other, right_answer(one))[0].max_error > 1.0  # the answer of an earlier draw is wrong


@given(PROBLEMS, SEED)
def test_a_draw_into_given_arrays_leaves_the_base_alone(problem: Problem, seed: int) -> None:
    rng = np.random.default_rng(seed)
    base = draw_base(problem, rng)
    before, into = (base.a.copy(), base.b.copy()), (np.empty_like(base.a), np.empty_like(base.b))
    inputs = draw(problem, base, rng, into)
    assert all(each is given for each, given in zip((inputs.a, inputs.b), into, strict=True))
    assert all(np.array_equal(*pair) for pair in zip((base.a, base.b), before, strict=True))
    assert compare(inputs, right_answer(inputs))[0].max_error <= RIGHT


@given(PROBLEMS, SEED)
def test_inputs_are_as_payloads_take_them_and_any_order_of_sums_is_right(problem: Problem, seed: int) -> None:
    """The answer follows from an earlier product by exact factors: it must fit the inputs that are there."""
    inputs, rng = inputs_of(problem, seed), np.random.default_rng(seed)
    m, n, k = problem.sizes
    assert inputs.a.shape == ((k, m) if problem.layout == "tn" else (m, k))
    assert inputs.b.shape == ((n, k) if problem.layout == "nt" else (k, n))
    assert {inputs.a.dtype, inputs.b.dtype} == {NUMPY_DTYPES[problem.dtype]}
    assert all(array.flags.c_contiguous for array in inputs.arrays)
    assert len(inputs.arrays) == (3 if problem.epilogue == "bias_relu" else 2)
    a, b = (array.astype(np.float64) for array in operands(inputs))
    near = 1e-12 * np.linalg.norm(a) * np.linalg.norm(b)
    assert np.abs(inputs.expected - finish(inputs, a @ b)).max() <= near
    for selected in (right_answer(inputs), blocked_answer(inputs, rng), blocked_answer(inputs, rng)):
        verdict, _ = compare(inputs, selected)
        assert verdict.max_error <= RIGHT
        assert verdict.elements == selected.size


@given(PROBLEMS, SEED, st.data())
def test_one_wrong_element_is_seen_and_named(problem: Problem, seed: int, data: st.DataObject) -> None:
    """Wrong by a typical term of its sum: the least that a lost or doubled product does; or no number."""
    inputs = inputs_of(problem, seed)
    selected = right_answer(inputs)
    place = tuple(data.draw(st.integers(0, extent - 1)) for extent in selected.shape)
    a, b = operands(inputs)
    right = selected[place]
    selected[place] += np.linalg.norm(a[place[0]]) * np.linalg.norm(b[:, place[1]]) / problem.sizes[2]
    verdict, text = compare(inputs, selected)
    assert verdict.max_error > 1.0
    where = f"worst at [{place[0]}, {place[1]}]"
    assert text.startswith(f"1 of {selected.size} elements are wrong; {where}: found ")
    for poison in () if problem.dtype == "i8" else (np.nan, np.inf, -np.inf):
        selected[place] = right + poison
        verdict, text = compare(inputs, selected)
        assert verdict.max_error == np.inf
        assert f"worst at [{place[0]}, {place[1]}]" in text


@pytest.mark.parametrize("epilogue", EPILOGUES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_of_integers_are_compared_exactly(layout: str, epilogue: str) -> None:
    inputs = inputs_of(MatmulProblem("matmul", (24, 17, 1000), "i8", layout, epilogue), 3)
    selected, unwritten = right_answer(inputs), reference.unwritten_output(inputs.problem)
    assert selected.dtype == np.int32
    assert compare(inputs, selected)[0].max_error == 0.0
    selected[5, 6] += 1
    verdict, text = compare(inputs, selected)
    assert verdict.max_error > 1.0
    assert text.startswith("1 of 408 elements are wrong; worst at [5, 6]")
    assert set(unwritten.ravel().tolist()) == {-(2**31)}
    assert compare(inputs, unwritten)[1].startswith("408 of 408 elements are wrong")


@given(PROBLEMS, SEED, st.data())
def test_a_product_or_an_epilogue_left_out_is_seen(problem: Problem, seed: int, data: st.DataObject) -> None:
    problem = replace(problem, sizes=(16, 16, problem.sizes[2]))
    inputs, with_bias = (inputs_of(each, seed) for each in (problem, replace(problem, epilogue="bias_relu")))
    a, b = operands(inputs)
    a[:, data.draw(st.integers(0, problem.sizes[2] - 1))] = 0
    assert compare(inputs, finish(inputs, a @ b))[0].max_error > 1.0
    a, b = operands(with_bias)
    for left_out in (a @ b, np.maximum(a @ b, 0), a @ b + with_bias.extra[0]):
        assert compare(with_bias, left_out)[0].max_error > 1.0


@given(PROBLEMS, SEED, st.data())
def test_two_rows_that_changed_places_are_seen(problem: Problem, seed: int, data: st.DataObject) -> None:
    problem = replace(problem, sizes=(max(2, problem.sizes[0]), 16, problem.sizes[2]))
    inputs = inputs_of(problem, seed)
    one, other = data.draw(st.permutations(range(problem.sizes[0])))[:2]
    selected = right_answer(inputs)
    swapped = selected.copy()
    swapped[[one, other]] = selected[[other, one]]
    if np.array_equal(selected, swapped):  # relu may leave two rows of zeros
        assert problem.epilogue == "bias_relu"
        return
    assert compare(inputs, swapped)[0].max_error > 1.0


def test_a_wrong_element_is_found_in_any_block_and_a_less_precise_library_gets_more_room() -> None:
    n = 1000
    m = 3 * (comparison.BLOCK_ELEMENTS // n)  # compared in three blocks
    inputs = inputs_of(MatmulProblem("matmul", (m, n, 2), "f32"), 0)
    for row in (0, m // 2, m - 1):
        selected = right_answer(inputs)
        selected[row, n - 1] += 1.0
        assert f"1 of {m * n} elements are wrong; worst at [{row}, {n - 1}]" in compare(inputs, selected)[1]
    inputs = inputs_of(MatmulProblem("matmul", (16, 16, 64), "bf16"), 0)
    rounded = right_answer(inputs).astype(NUMPY_DTYPES["bf16"]).astype(np.float32)
    assert compare(inputs, rounded)[0].max_error > 1.0
    assert compare(replace(inputs, result_rounding=2.0**-8), rounded)[0].max_error <= 1.0


@pytest.mark.parametrize("sizes", [(300, 300, 300), (1, 1000, 1000), (1000, 1, 1000), (1000, 1000, 1)])
@pytest.mark.parametrize("dtype", INPUT_DTYPES)
def test_the_memory_that_is_asked_for_beforehand_suffices(sizes: tuple[int, int, int], dtype: str) -> None:
    problem = MatmulProblem("matmul", sizes, dtype)
    tracemalloc.start()
    compare(inputs_of(problem, 0), np.zeros(sizes[:2], output_dtype(problem)))
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    few_bytes = 2**23  # whatever the problem
    assert peak_bytes <= reference.reference_bytes(problem) + few_bytes


@given(PROBLEMS | NARROW_PROBLEMS, SEED, st.data())
def test_a_tile_is_the_part_of_the_whole_answer(problem: Problem, seed: int, data: st.DataObject) -> None:
    inputs = inputs_of(problem, seed)
    cuts = [sorted(data.draw(st.tuples(*[st.integers(0, size)] * 2))) for size in problem.sizes[:2]]
    rows, columns = (slice(*cut) for cut in cuts)
    expected, tolerance = inputs.tile(rows, columns)
    near = 1e-12 * np.outer(inputs.base.row_norm, inputs.base.column_norm)[rows, columns] * 4
    assert (np.abs(expected - inputs.expected[rows, columns]) <= near).all()
    assert tolerance == pytest.approx(inputs.tolerance[rows, columns], rel=1e-9)


@given(NARROW_PROBLEMS, SEED)
def test_a_narrow_output_may_be_off_by_its_rounding_and_no_more(problem: Problem, seed: int) -> None:
    inputs = inputs_of(problem, seed)
    right = right_answer(inputs)
    for selected in (right, blocked_answer(inputs, np.random.default_rng(seed))):
        assert selected.dtype == NUMPY_DTYPES[problem.output]
        assert compare(inputs, selected)[0].max_error <= 1.0
    further = 1 + 4 * number_type(problem.output).rounding
    wrong = (right.astype(np.float64) * further).astype(output_dtype(problem))
    is_exact = problem.dtype not in FLOAT8S  # whose sums may be off by as much
    if is_exact and np.abs(right.astype(np.float64)).max() > 0.1:  # relu may leave zeros only
        assert compare(inputs, wrong)[0].max_error > 1.0
    inputs = inputs_of(MatmulProblem("matmul", (16, 16, 32), "f16", output="f16"), seed)
    a, b = operands(inputs)
    a[:, 7] = 0  # a term is lost
    assert compare(inputs, finish(inputs, a @ b))[0].max_error > 1.0


def test_an_infinity_in_f16_is_right_where_the_sum_is_too_large_and_wrong_elsewhere() -> None:
    inputs = inputs_of(MatmulProblem("matmul", (4, 4, 8), "f16", output="f16"), 0)
    large = np.full((4, 4), 2.0**13, np.float16)
    a, b = (array.astype(np.float16) for array in (np.full((4, 8), 128.0), np.full((8, 4), 64.0)))
    inputs = replace(inputs, base=drawing.base_of(inputs.problem, a, b), a=a, b=b)
    inputs = replace(inputs, rows=np.array([1.0, -1.0, 0.5, 1.0]), columns=np.ones((1, 4)))
    assert inputs.expected[:, 0].tolist() == [65536.0, -65536.0, 32768.0, 65536.0]
    right = np.array([np.inf, -np.inf, 32768.0, np.inf], np.float16)[:, None] + np.zeros((4, 4), np.float16)
    assert compare(inputs, right)[0].max_error == 0.0
    assert comparison.not_finite(right) == 0
    for row, number in ((0, -np.inf), (2, np.inf), (0, np.nan), (1, 65504.0), (0, 2.0**13)):
        wrong = right.copy()
        wrong[row, 1] = number
        assert compare(inputs, wrong)[0].max_error > 1.0, (row, number)
    assert compare(inputs, large)[0].max_error > 1.0
    assert comparison.not_finite(np.array([[np.nan, np.inf]], np.float16)) == 1
    assert comparison.not_finite(np.array([[np.nan, np.inf]], np.float32)) == 2


@given(SEED)
def test_inputs_have_the_bits_of_their_types(seed: int) -> None:
    for array in inputs_of(
        MatmulProblem("matmul", (24, 24, 64), "tf32"), seed
    ).arrays:  # ten bits of mantissa
        assert not (array.view(np.uint32) & 0x1FFF).any()
        assert (array.view(np.uint32) & 0x2000).any()  # and not fewer
    inputs = inputs_of(MatmulProblem("matmul", (200, 200, 200), "f16"), seed)
    scaled = inputs.base.a.astype(np.float64) * inputs.rows[:, None]
    assert np.array_equal(inputs.a.astype(np.float64), scaled)  # times their factors they are exact
    base = draw_base(Matmul(8, 8, 8, "f64"), np.random.default_rng(seed))
    assert all((array.astype(np.float32) != array).all() for array in (base.a, base.b))


def test_few_numbers_are_hard_to_scale_and_tf32_and_bf16_are_as_ml_dtypes_has_them() -> None:
    step = np.float32(2.0**-10)
    numbers = np.array([1 + step / 2, 1 + 3 * step / 2, 1 + step * 0.51, -1 - step * 0.49], np.float32)
    assert drawing.round_inputs(numbers, "tf32").tolist() == [1.0, 1 + 2 * step, 1 + step, -1.0]
    every = np.arange(2**16, dtype=np.uint16).view(BF16)
    assert widened(every).dtype == np.float32
    assert np.array_equal(widened(every), every.astype(np.float32), equal_nan=True)
    array = np.arange(3, dtype=np.float16)
    assert widened(array) is array
    numbers = narrowed(np.array([1.0, 0.0, -2.0, 1e-39, -1.8e-38, 3e38, np.inf, 0.25]))
    assert hard_to_scale(numbers)[0].tolist() == [1, 3, 4, 5, 6]
    one, other = (narrowed(np.array([1.0, number])) for number in (2.0, 2.5))
    assert are_equal(one, one.copy())
    assert not are_equal(one, other)
    assert not are_equal(np.zeros(2), np.ones(2))


NUMBERS = st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=40)
WITHOUT = """
import sys

sys.modules["ml_dtypes"] = None
import numpy as np
from tuner.core.matmul import Matmul
from tuner.payload.comparison import compare
from tuner.payload.drawing import draw, draw_base
from tuner.core.numpy_types import narrowed
problem = Matmul(9, 7, 33, dtype="bf16", layout="LAYOUT", epilogue="bias_relu", output="bf16")
rng = np.random.default_rng(5)
inputs = draw(problem, draw_base(problem, rng), rng)
assert inputs.a.dtype == np.uint16
print([array.view(np.uint16).tolist() for array in inputs.arrays])
right = narrowed(inputs.expected)
print(compare(inputs, right)[0].max_error <= 1)
right[3, 2] = 0x4500  # 2048
print(compare(inputs, right)[1][:30])
"""


@given(NUMBERS)
def test_rounding_is_that_of_ml_dtypes(numbers: list[float]) -> None:
    array = np.array(numbers, np.float32)
    with np.errstate(over="ignore"):
        expected = array.astype(ml_dtypes.bfloat16)
    assert np.array_equal(narrowed(array).view(np.uint16), expected.view(np.uint16))


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0, -0.5, -1.0, -2.0])
def test_every_number_is_scaled_as_by_a_product_in_f32(factor: float) -> None:
    every = np.arange(2**16, dtype=np.uint16).view(BF16)
    numbers = every[~is_nan(every)]
    scaled, factors = np.empty_like(numbers), narrowed(np.array([factor]))
    with np.errstate(over="ignore"):
        scale(numbers, factors, scaled, hard_to_scale(numbers))
        assert are_equal(scaled, narrowed(widened(numbers) * np.float32(factor)))


@pytest.mark.parametrize("dtype", ["tf32", "f16", "bf16"])
def test_sums_that_tensor_cores_cut_off_are_right(dtype: str) -> None:
    problem, step = Matmul(64, 96, 8192, dtype), 8 if dtype == "tf32" else 16
    inputs = draw(problem, draw_base(problem, np.random.default_rng(0)), np.random.default_rng(1))
    a, b = (widened(each).astype(np.float64) for each in inputs.arrays)
    c = np.zeros((64, 96))
    for k in range(0, 8192, step):
        c += a[:, k : k + step] @ b[k : k + step]
        c = (c.view(np.int64) >> 29 << 29).view(np.float64)  # 52 - 23 bits of the mantissa
    verdict, _ = compare(inputs, c.astype(np.float32))
    assert 0.05 < verdict.max_error < 0.6


@pytest.mark.parametrize("dtype", ["tf32x3", "bf16x6"])
def test_modes_that_promise_the_errors_of_f32_have_its_tolerance_and_tf32_has_not(dtype: str) -> None:
    assert ROWS[dtype].promised == "f32"
    # also if PTX got a name for it: the tolerance does not depend on what multiplies
    assert not replace(ROWS[dtype], ptx="tf32").cuts_sums
    tolerances = {}
    for name in ("f32", dtype, "tf32"):
        problem = Matmul(16, 24, 2048, name)
        a = np.ones((16, 2048), np.float32)
        b = np.ones((2048, 24), np.float32)
        inputs = draw(problem, base_of(problem, a, b), np.random.default_rng(1))
        tolerances[name] = inputs.tolerance
    np.testing.assert_array_equal(tolerances[dtype], tolerances["f32"])
    assert (tolerances["tf32"] > 2 * tolerances["f32"]).all()


def test_threads_compare_what_one_would_and_multiply_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found, multiplying = [], []

    def noted(numbers: Array) -> Array:
        if numbers.shape == (1030, 4):
            multiplying.append(threading.current_thread())
        return wide(numbers)

    monkeypatch.setattr(reference, "wide", noted)
    for threads in (1, 4):
        monkeypatch.setattr(reference, "THREADS", threads)
        problem = Matmul(1030, 1100, 4)
        inputs = draw(problem, draw_base(problem, np.random.default_rng(0)), np.random.default_rng(1))
        result = np.matmul(*inputs.arrays)
        result[777, 5] += 1.0
        found.append(compare(inputs, result))
    assert found[0] == found[1]
    assert "1 of 1133000 elements are wrong; worst at [777, 5]" in found[0][1]
    assert multiplying == [threading.main_thread()] * 2


@pytest.mark.parametrize("is_row", [True, False])
def test_factors_of_rows_and_columns_scale_zeros_too(is_row: bool) -> None:
    array = narrowed(np.array([[1.5, -3.0, 0.0], [-0.0, 1e-39, 2.0]]))
    factors = narrowed(np.array([2.0, -0.5] if is_row else [2.0, -0.5, 1.0]))
    across = factors[:, None] if is_row else factors
    scaled = np.empty_like(array)
    scale(array, across, scaled, hard_to_scale(array))
    assert are_equal(scaled, narrowed(widened(array) * widened(across)))


@pytest.mark.parametrize("dtype", [BF16, *map(np.dtype, ("f2", "f4", "f8", "i4"))], ids=str)
def test_what_is_filled_with_nan_is_reported_from_what_is_written(dtype: "np.dtype[Any]") -> None:
    array = np.zeros(3, dtype)
    numpy_types.fill_with_nan(array)
    assert is_nan(array).all()
    assert dtype.kind == "i" or np.isnan(array.astype(np.float64)).all()
    numpy_types.fill_with(array[1:2], 1)
    assert is_nan(array).tolist() == [True, False, True]
    numpy_types.fill_with(array, 1)
    assert widened(array).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
def test_without_ml_dtypes_the_same_inputs_are_drawn_and_compared(layout: str) -> None:
    problem = Matmul(9, 7, 33, dtype="bf16", layout=layout, epilogue="bias_relu", output="bf16")
    inputs = inputs_of(problem, 5)
    program = [sys.executable, "-c", WITHOUT.replace("LAYOUT", layout)]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    *found, wrong = done.stdout.splitlines()
    assert found == [str([array.view(np.uint16).tolist() for array in inputs.arrays]), "True"]
    assert wrong.startswith("1 of 63 elements are wrong;")
