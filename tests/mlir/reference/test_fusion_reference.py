"""Convolutions by a product of matrices are those by their definition."""

from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from tests import group_texts as texts
from tests.mlir.convolution_texts import Convolution
from tuner.core.errors import UsageError
from tuner.mlir.ir.linalg import LAYOUTS
from tuner.mlir.reference.fusion_reference import draw_inputs, evaluate, input_shapes, worst_error

pytestmark = pytest.mark.mlir

Array = npt.NDArray[np.float64]


def by_definition(convolution: Convolution, x: Array, weights: Array) -> Array:
    """Returns the sums over the window, one element of the output after the other."""
    of_x, of_weights, of_y = LAYOUTS[convolution.name]
    sizes = dict(zip(of_weights, weights.shape, strict=True))
    sizes |= dict(zip(of_y, convolution.shapes[-1], strict=True))
    summed = [each for each in of_weights if each not in of_y]
    found = np.zeros(convolution.shapes[-1])
    for place in product(*(range(sizes[each]) for each in (*of_y, *summed))):
        at = dict(zip((*of_y, *summed), place, strict=True))
        of_window = {
            side: at[side] * convolution.strides[number] + at[side.lower()] * convolution.dilations[number]
            for number, side in enumerate("HW")
            if side in of_y
        }
        one = x[tuple((at | of_window)[each] for each in of_x)]
        found[place[: len(of_y)]] += one * weights[tuple(at[each] for each in of_weights)]
    return found


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_a_convolution_is_the_sum_over_its_window(name: str) -> None:
    has_rows = "h" in LAYOUTS[name][1]
    convolution = Convolution(
        name,
        images=2,
        groups=2,
        channels=3,
        filters=2,
        height=3 if has_rows else 1,
        width=2,
        window=(2 if has_rows else 1, 3),
        strides=(2 if has_rows else 1, 3),
        dilations=(1, 2),
    )
    rng = np.random.default_rng(0)
    x, weights = (rng.standard_normal(shape) for shape in convolution.shapes[:2])
    (found,) = evaluate(convolution.text(), (x, weights))
    np.testing.assert_allclose(found.value, by_definition(convolution, x, weights), rtol=1e-12, atol=1e-12)
    assert (found.tolerance < 1e-5).all()


# The reference of fusions: values as numpy has them, bounds that float32 keeps and a wrong number breaks.

RNG = np.random.default_rng(0)


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def test_a_softmax_is_that_of_numpy() -> None:
    rows = f32(4, 9)
    (found,) = evaluate(texts.softmax(4, 9), (rows,))
    powers = np.exp(rows.astype(np.float64) - rows.max(axis=1, keepdims=True))
    np.testing.assert_allclose(found.value, powers / powers.sum(axis=1, keepdims=True), rtol=1e-12)
    assert (found.tolerance > 0).all()
    assert (found.tolerance < 1e-5).all()


@pytest.mark.parametrize("statistics", ["f64", "f32"])
def test_a_norm_is_that_of_numpy(statistics: str) -> None:
    rows, scale, shift = f32(4, 30), f32(30), f32(30)
    (found,) = evaluate(texts.layer_norm(4, 30), (rows, scale, shift))
    wide = rows.astype(np.float64)
    norm = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + np.float32(1e-5))
    np.testing.assert_allclose(found.value, norm * scale + shift, rtol=1e-9)


@pytest.mark.parametrize("epilogue", texts.EPILOGUES)
def test_float32_stays_within_the_bounds_and_a_missing_product_does_not(epilogue: str) -> None:
    text = texts.product(6, 11, 40, epilogue)
    inputs = draw_inputs(text, RNG)
    (expected,) = evaluate(text, inputs)
    less = [each.copy() for each in inputs]
    less[0][:, 17] = 0
    (other,) = evaluate(text, tuple(less))
    assert worst_error(expected, expected.value.astype(np.float32)) <= 1
    assert worst_error(expected, other.value.astype(np.float32)) > 100


def test_a_transpose_is_exact() -> None:
    array = f32(3, 4, 5)
    (found,) = evaluate(texts.transpose((3, 4, 5), (2, 0, 1)), (array,))
    np.testing.assert_array_equal(found.value, array.transpose(2, 0, 1))
    assert not found.tolerance.any()


def test_nan_and_infinities_have_to_be_where_they_belong() -> None:
    rows = f32(3, 5)
    rows[0, 1], rows[1] = np.nan, -np.inf
    (found,) = evaluate(texts.softmax(3, 5), (rows,))
    right = found.value.astype(np.float32)
    assert np.isnan(right[:2]).all()
    assert worst_error(found, right) <= 1
    assert worst_error(found, np.nan_to_num(right)) == np.inf
    wrong = right.copy()
    wrong[2, 0] = np.nan
    assert worst_error(found, wrong) == np.inf


def test_a_comparison_within_the_errors_allows_both_results() -> None:
    text = texts.product(1, 1, 2, "bias_relu")
    a, b, bias = np.array([[1, 1e-9]], "f4"), np.array([[1], [1]], "f4"), np.array([-1], "f4")
    (found,) = evaluate(text, (a, b, bias))  # 1e-9 in float64, 0 in float32
    assert worst_error(found, np.zeros((1, 1), np.float32)) <= 1


def test_inputs_are_positive_where_others_give_nan() -> None:
    text = texts.elementwise((4, 9), "math.log %x0")
    (inputs,) = draw_inputs(text, RNG)
    assert (inputs.astype(np.float64) > 0).all()
    assert input_shapes(text) == (((4, 9), "f32"),)


def test_an_unknown_operation_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"fusion: found math\.cbrt, allowed arith\.addf, "):
        evaluate(texts.elementwise((4,), "math.cbrt %x0"), (f32(4),))


def test_a_reduction_that_is_no_sum_and_no_extreme_is_refused() -> None:
    text = texts.row_sums(3, 4).replace("arith.addf %x0, %o", "arith.subf %x0, %o")
    with pytest.raises(UsageError, match=r"found a reduction by arith\.subf, allowed sums"):
        evaluate(text, (f32(3, 4),))
