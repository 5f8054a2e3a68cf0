"""The reference of fusions: convolutions by their definition, bounds, integers with both results of a tie."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests import byte_fusion_texts as byte_texts
from tests import fusion_texts as texts
from tests.fusion_runs import draw_inputs
from tests.mlir.convolution_texts import Convolution
from tuner.core.bounded import INTEGER_ORDERS, Bounded, apply
from tuner.core.errors import UsageError
from tuner.core.numpy_types import DTYPES
from tuner.mlir.fusions.convolutions import LAYOUTS
from tuner.mlir.reference.fusion_reference import FusionReference, evaluate, worst_error

Array = npt.NDArray[np.float64]


def by_definition(convolution: Convolution, x: Array, weights: Array) -> Array:
    of_x, of_weights, of_y = LAYOUTS[convolution.name]
    sizes = dict(zip(of_weights, weights.shape, strict=True))
    sizes |= dict(zip(of_y, convolution.shapes[-1], strict=True))
    summed = [each for each in of_weights if each not in of_y]
    found = np.zeros(convolution.shapes[-1])
    for place in product(*(range(sizes[each]) for each in (*of_y, *summed))):
        at = dict(zip((*of_y, *summed), place, strict=True))
        of_window = {
            side: at[side] * convolution.all_strides[number]
            + at[side.lower()] * convolution.all_dilations[number]
            for number, side in enumerate("DHW")
            if side in of_y
        }
        one = x[tuple((at | of_window)[each] for each in of_x)]
        found[place[: len(of_y)]] += one * weights[tuple(at[each] for each in of_weights)]
    return found


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_a_convolution_is_the_sum_over_its_window(name: str) -> None:
    height, two = (3, 2) if "h" in LAYOUTS[name][1] else (1, 1)
    convolution = Convolution(name, 2, 2, 3, 2, height, 2, (two, 3), strides=(two, 3), dilations=(1, 2))
    convolution = replace(convolution, planes=(2, 3, 2, 2))
    rng = np.random.default_rng(0)
    x, weights = (rng.standard_normal(shape) for shape in convolution.shapes[:2])
    (found,) = evaluate(convolution.text(), (x, weights))
    np.testing.assert_allclose(found.value, by_definition(convolution, x, weights), rtol=1e-12, atol=1e-12)
    assert (found.tolerance < 5e-5).all()


# The reference of fusions: values as numpy has them, bounds that float32 keeps and a wrong number breaks.
RNG = np.random.default_rng(0)


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def test_a_softmax_a_norm_and_a_transpose_are_those_of_numpy() -> None:
    rows = f32(4, 9)
    (found,) = evaluate(texts.softmax(4, 9), (rows,))
    powers = np.exp(rows.astype(np.float64) - rows.max(axis=1, keepdims=True))
    np.testing.assert_allclose(found.value, powers / powers.sum(axis=1, keepdims=True), rtol=1e-12)
    assert ((found.tolerance > 0) & (found.tolerance < 1e-5)).all()
    rows, scale, shift = f32(4, 30), f32(30), f32(30)
    (found,) = evaluate(texts.layer_norm(4, 30), (rows, scale, shift))
    wide = rows.astype(np.float64)
    norm = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + np.float32(1e-5))
    np.testing.assert_allclose(found.value, norm * scale + shift, rtol=1e-9)
    array = f32(3, 4, 5)
    (found,) = evaluate(texts.transpose((3, 4, 5), (2, 0, 1)), (array,))
    np.testing.assert_array_equal(found.value, array.transpose(2, 0, 1))
    assert not found.tolerance.any()  # exact


@pytest.mark.parametrize(
    ("text", "dtype", "factor"),
    [
        *((texts.product(6, 11, 40, each), np.float32, 100) for each in texts.EPILOGUES),
        *((byte_texts.product(6, 11, 40, each), np.float32, 10) for each in ("scale", "columns", "residual")),
        (byte_texts.product(6, 11, 40, "requantized"), np.int8, 10),
    ],
)
def test_float_results_are_within_bounds_but_for_a_lost_product(text: str, dtype: type, factor: int) -> None:
    inputs = draw_inputs(text, np.random.default_rng(0))
    (expected,) = evaluate(text, inputs)
    less = [each.copy() for each in inputs]
    less[0][:, 17] = 0
    (other,) = evaluate(text, tuple(less))
    assert worst_error(expected, expected.value.astype(dtype)) <= 1
    assert worst_error(expected, other.value.astype(dtype)) > factor


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


@pytest.mark.parametrize("element", ["f32", "bf16", "f16"])
def test_inputs_are_positive_where_others_give_nan(element: str) -> None:
    text = texts.elementwise((4, 9), "math.log %x0", element)
    (inputs,) = draw_inputs(text, RNG)
    assert (inputs.astype(np.float64) > 0).all()
    assert inputs.dtype == DTYPES[element]


# Integers in the reference of fusions: as numpy computes them in their type, with both results of a tie.
BYTES = np.arange(-128, 128, dtype=np.int8)
LEFT, RIGHT = (each.reshape(-1).astype(np.int8) for each in np.meshgrid(BYTES, BYTES))


def exact(numbers: object, element: str = "i8") -> Bounded:
    return Bounded.exact(numbers, element)


def converted(name: str, numbers: Bounded, element: str) -> Bounded:
    return apply(f"arith.{name}", (numbers,), element)


UFUNCS = {"addi": "add", "subi": "subtract", "muli": "multiply", "maxsi": "maximum", "minsi": "minimum"}
UFUNCS |= {f"{name}i": f"bitwise_{name}" for name in ("and", "or", "xor")}


@pytest.mark.parametrize("name", UFUNCS)
def test_all_pairs_of_bytes_give_what_numpy_gives(name: str) -> None:
    with np.errstate(over="ignore"):
        found = apply(f"arith.{name}", (exact(LEFT), exact(RIGHT)), "i8")
        np.testing.assert_array_equal(found.value, getattr(np, UFUNCS[name])(LEFT, RIGHT).astype(np.float64))
    assert not found.error.any()
    shifted = apply("arith.shrsi", (exact(BYTES), exact(3)), "i8")
    np.testing.assert_array_equal(shifted.value, BYTES >> 3)


@pytest.mark.parametrize("predicate", range(len(INTEGER_ORDERS)))
def test_comparisons_are_those_of_signed_and_unsigned_bytes(predicate: int) -> None:
    orders = [np.less, np.less_equal, np.greater, np.greater_equal]
    ufunc = [np.equal, np.not_equal, *orders, *orders][predicate]
    kind = np.uint8 if predicate > 5 else np.int8  # eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge
    found = apply("arith.cmpi", (exact(LEFT), exact(RIGHT)), "i1", predicate)
    np.testing.assert_array_equal(found.value, ufunc(LEFT.view(kind), RIGHT.view(kind)))


@pytest.mark.parametrize(
    ("name", "source", "numbers", "expected"),
    [
        ("extsi", "i8", BYTES, BYTES),
        ("extui", "i8", BYTES, BYTES.view(np.uint8)),
        ("sitofp", "i8", BYTES, BYTES),
        ("uitofp", "i8", BYTES, BYTES.view(np.uint8)),
        ("extui", "i1", [True, False], [1, 0]),
        ("extsi", "i1", [True, False], [-1, 0]),
        ("sitofp", "i1", [True, False], [-1, 0]),
        ("trunci", "i32", [300, -129, 127], [44, 127, 127]),
    ],
)
def test_conversions_keep_numbers_or_low_bits(name: str, source: str, numbers: Any, expected: Any) -> None:
    element = "f32" if name.endswith("fp") else "i8" if source == "i32" else "i32"
    found = converted(name, exact(numbers, source), element)
    np.testing.assert_array_equal(found.value, expected)
    assert not found.error.any()


def test_a_large_integer_is_rounded_to_a_float() -> None:
    numbers = np.array([2**24, 2**24 + 1, -(2**31)])
    found = converted("sitofp", exact(numbers, "i32"), "f32")
    assert (np.abs(numbers.astype(np.float32) - found.value) <= found.error).all()
    assert list(found.error > 0) == [False, True, True]


def test_floats_round_to_zero_and_those_near_two_integers_may_be_either() -> None:
    numbers = exact([-128.9, 1.5, -1.5, 127.9, 128.0, np.nan, np.inf, -129.0], "f32")
    found = converted("fptosi", numbers, "i8")
    np.testing.assert_array_equal(found.value, [-128, 1, -1, 127, -128, 0, 0, 127])  # as on x86
    assert not found.error.any()
    found = converted("fptoui", exact([200.5, -0.5, -1.0], "f32"), "i8")
    assert list(found.value) == [200 - 256, 0, -1]
    assert not found.error.any()
    beyond = Bounded(np.array([127.9, 3e9]), np.array([0.2, 1.0]), "f32")
    assert (converted("fptosi", beyond, "i8").error >= 255).all()
    near = Bounded(np.array([2.0, 2.5]), np.array([1e-6, 1e-6]), "f32")
    found = converted("fptosi", near, "i8")
    np.testing.assert_array_equal(found.value, [2, 2])
    np.testing.assert_array_equal(found.error, [1, 0])
    other = apply("arith.addi", (found, exact([125, 0])), "i8")
    assert list(other.error) == [256, 0]  # 127 or 128, which is -128


@pytest.mark.parametrize("epilogue", ["none", "bias", "relu"])
def test_integer_results_are_exact_and_one_wrong_bit_is_noticed(epilogue: str) -> None:
    text = byte_texts.product(6, 11, 40, epilogue)
    inputs = draw_inputs(text, np.random.default_rng(0))
    assert min(each.min() for each in inputs[:2]) == -128
    (expected,) = evaluate(text, inputs)
    sums = inputs[0].astype(np.int32) @ inputs[1].astype(np.int32)
    if epilogue != "none":
        sums = sums + inputs[2].astype(np.int32) if epilogue == "bias" else np.maximum(sums, 0)
    np.testing.assert_array_equal(expected.value, sums)
    assert not expected.tolerance.any()
    assert worst_error(expected, sums) == 0
    sums[3, 5] ^= 1
    assert worst_error(expected, sums) > 1e300  # no tolerance


def test_unsigned_bytes_are_not_negative() -> None:
    text = texts.elementwise((256,), "arith.addf %f, %f")
    text = text.replace("%y = ", "%f = arith.uitofp %x0 : i8 to f32\n %y = ")
    for part in ("%a: memref<256xf32>", "memref<256xf32> to", "ins(%a_t : tensor<256xf32>", "%x0: f32"):
        text = text.replace(part, part.replace("f32", "i8"), 1)
    text = text.replace("memref<256xi8> to tensor<256xf32>", "memref<256xi8> to tensor<256xi8>")
    (found,) = evaluate(text, (BYTES,))
    np.testing.assert_array_equal(found.value, 2.0 * BYTES.view(np.uint8))


OF_BYTES, TRUTHS = draw_inputs(byte_texts.product(2, 3, 4), RNG), (np.array([True, False] * 2),)
ROOT = texts.elementwise((4,), "math.cbrt %x0")
SUMS = texts.row_sums(3, 4)
OTHER_SUM = SUMS.replace("arith.addf %x0, %o", "arith.subf %x0, %o")
OF_WHOLE = SUMS.replace("f32", "i32").replace("arith.addf %x0", "arith.ori %x0").replace("0.0 :", "0 :")
QUOTIENT = byte_texts.product(2, 3, 4, "relu").replace("arith.maxsi", "arith.divsi")
OF_TRUTHS = texts.elementwise((4,), "arith.addi %x0, %x0", "i1")


@pytest.mark.parametrize(
    ("text", "inputs", "found"),
    [
        (ROOT, (f32(4),), r"fusion: found math\.cbrt, allowed arith\.addf, "),
        (OTHER_SUM, (f32(3, 4),), r"found a reduction by arith\.subf of f32, allowed sums"),
        (OF_WHOLE, (np.ones((3, 4), np.int32),), r"found a reduction by arith\.ori of i32, allowed sums"),
        (QUOTIENT, OF_BYTES, r"fusion: found arith\.divsi, allowed arith\.addf, arith\.addi, "),
        (OF_TRUTHS, TRUTHS, r"found arith\.addi of i1, allowed arith\.andi, arith\.ori, "),
    ],
)
def test_an_unknown_operation_or_reduction_is_refused_by_name(text: str, inputs: Any, found: str) -> None:
    with pytest.raises(UsageError, match=found):
        evaluate(text, inputs)


# Special numbers: what is NaN, infinite and finite follows from the reference, unless rounding decides it.


def test_where_rounding_decides_between_nan_and_infinity_any_number_is_right() -> None:
    text = texts.product(4, 8, 1, "gelu")
    a, b, bias = np.array([[1.0], [2.0], [0.5], [-np.inf]], np.float32), f32(1, 8), f32(8)
    b[...] = np.abs(b)
    (expected,) = FusionReference(text).evaluate((a, b, bias), 0)  # -inf times 1 + erf(-inf)
    assert (expected.tolerance[3] == np.inf).all()
    assert np.isfinite(expected.tolerance[:3]).all()
    for last in (np.nan, -np.inf, 7.0):
        found = expected.value.copy()
        found[3] = last
        assert worst_error(expected, found) <= 1
    found[0, 0] = np.nan
    assert worst_error(expected, found) == np.inf


def test_a_softmax_has_defined_places_of_nan() -> None:
    rows = f32(4, 6)
    rows[0, 1], rows[1, 2], rows[2, 3] = np.nan, np.inf, -np.inf
    (expected,) = FusionReference(texts.softmax(4, 6)).evaluate((rows,), 0)
    assert np.isfinite(expected.tolerance).all()
    assert np.isnan(expected.value).all(axis=1).tolist() == [True, True, False, False]
    assert expected.value[2, 3] == 0.0


# Matmuls whose operands are read through indexing maps: transposed, of a batch, and repeated.
LOOPS = {"linalg.matmul": "mnk", "linalg.batch_matmul": "bmnk"}
EXTENTS = {"b": 2, "m": 3, "n": 5, "k": 4}


def product_text(name: str, a: str, b: str) -> str:
    """Returns the text of a fusion of one product whose operands have the loops ``a`` and ``b``."""
    c = LOOPS[name].replace("k", "")
    sizes = {letters: "x".join(str(EXTENTS[letter]) for letter in letters) for letters in (a, b, c)}
    domain = ", ".join(LOOPS[name])
    maps = ", ".join(f"affine_map<({domain}) -> ({', '.join(letters)})>" for letters in (a, b, c))
    memrefs = [f"memref<{sizes[letters]}xf32>" for letters in (a, b, c)]
    tensors = [f"tensor<{sizes[letters]}xf32>" for letters in (a, b, c)]
    return f"""func.func @fusion(%a: {memrefs[0]}, %b: {memrefs[1]}, %c: {memrefs[2]}) {{
  %A = bufferization.to_tensor %a restrict : {memrefs[0]} to {tensors[0]}
  %B = bufferization.to_tensor %b restrict : {memrefs[1]} to {tensors[1]}
  %C = bufferization.to_tensor %c restrict writable : {memrefs[2]} to {tensors[2]}
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%C : {tensors[2]}) -> {tensors[2]}
  %p = {name} indexing_maps = [{maps}] {{contraction, root}}
    ins(%A, %B : {tensors[0]}, {tensors[1]}) outs(%start : {tensors[2]}) -> {tensors[2]}
  bufferization.materialize_in_destination %p in restrict writable %c : ({tensors[2]}, {memrefs[2]}) -> ()
  return
}}"""


@st.composite
def products(draw: st.DrawFn) -> tuple[str, str, str]:
    name = draw(st.sampled_from(sorted(LOOPS)))
    batch = LOOPS[name].removesuffix("mnk")
    operands = []
    for own in ("mk", "kn"):
        repeated = draw(st.booleans()) and draw(st.booleans())
        operands.append(batch + ("k" if repeated else "".join(draw(st.permutations(own)))))
    return name, operands[0], operands[1]


@settings(max_examples=40)
@given(products(), st.integers(0, 9))
@example(("linalg.matmul", "mk", "nk"), 0)
@example(("linalg.matmul", "km", "kn"), 0)
def test_a_product_reads_its_operands_through_its_indexing_maps(
    found: tuple[str, str, str], seed: int
) -> None:
    name, a, b = found
    rng = np.random.default_rng(seed)
    arrays = [
        rng.standard_normal([EXTENTS[letter] for letter in letters]).astype(np.float32) for letters in (a, b)
    ]
    (product_,) = evaluate(product_text(name, a, b), tuple(arrays))
    c = LOOPS[name].replace("k", "")
    wide = [array.astype(np.float64) for array in arrays]
    ones = np.ones([EXTENTS[letter] for letter in c])  # a loop that neither operand has
    expected = np.einsum(f"{a},{b},{c}->{c}", *wide, ones)
    np.testing.assert_allclose(product_.value, expected, rtol=1e-12, atol=1e-12)
    assert (product_.tolerance < 1e-5).all()
