"""Integers in the reference of fusions: as numpy computes them in their type, with both results of a tie."""

import numpy as np
import pytest

from tests import byte_group_texts as byte_texts
from tests import group_texts as texts
from tuner.core.errors import UsageError
from tuner.mlir.reference.fusion_reference import draw_inputs, evaluate, worst_error
from tuner.mlir.reference.scalar_ops import (
    INTEGER_COMPARISONS,
    Bounded,
    compared_integers,
    converted_integer,
    integer_op,
)

pytestmark = pytest.mark.mlir
RNG = np.random.default_rng(0)
BYTES = np.arange(-128, 128, dtype=np.int8)
LEFT, RIGHT = (each.reshape(-1).astype(np.int8) for each in np.meshgrid(BYTES, BYTES))


def exact(numbers: object, element: str = "i8") -> Bounded:
    return Bounded.exact(numbers, element)


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("arith.addi", np.add),
        ("arith.subi", np.subtract),
        ("arith.muli", np.multiply),
        ("arith.maxsi", np.maximum),
        ("arith.minsi", np.minimum),
        ("arith.andi", np.bitwise_and),
        ("arith.ori", np.bitwise_or),
        ("arith.xori", np.bitwise_xor),
    ],
)
def test_all_pairs_of_bytes_give_what_numpy_gives(name: str, of: np.ufunc) -> None:
    with np.errstate(over="ignore"):
        found = integer_op(name, exact(LEFT), exact(RIGHT), "i8")
        np.testing.assert_array_equal(found.value, of(LEFT, RIGHT).astype(np.float64))
    assert not found.error.any()


def test_shifts_keep_the_sign() -> None:
    found = integer_op("arith.shrsi", exact(BYTES), exact(3), "i8")
    np.testing.assert_array_equal(found.value, BYTES >> 3)


@pytest.mark.parametrize("predicate", range(len(INTEGER_COMPARISONS)))
def test_comparisons_are_those_of_signed_and_unsigned_bytes(predicate: int) -> None:
    names = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]
    kind = np.uint8 if names[predicate][0] == "u" else np.int8
    of = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater"}
    ufunc = getattr(np, (of | {"ge": "greater_equal"})[names[predicate][-2:]])
    found = compared_integers(predicate, exact(LEFT), exact(RIGHT), "i8")
    np.testing.assert_array_equal(found.value, ufunc(LEFT.view(kind), RIGHT.view(kind)))


@pytest.mark.parametrize(
    ("name", "source", "numbers", "expected"),
    [
        ("arith.extsi", "i8", BYTES, BYTES),
        ("arith.extui", "i8", BYTES, BYTES.view(np.uint8)),
        ("arith.sitofp", "i8", BYTES, BYTES),
        ("arith.uitofp", "i8", BYTES, BYTES.view(np.uint8)),
        ("arith.extui", "i1", [True, False], [1, 0]),
        ("arith.extsi", "i1", [True, False], [-1, 0]),
        ("arith.sitofp", "i1", [True, False], [-1, 0]),
    ],
)
def test_conversions_keep_the_numbers(name: str, source: str, numbers: object, expected: object) -> None:
    element = "f32" if name.endswith("fp") else "i32"
    found = converted_integer(name, exact(numbers, source), source, element)
    np.testing.assert_array_equal(found.value, expected)
    assert not found.error.any()


def test_a_large_integer_is_rounded_to_a_float() -> None:
    numbers = np.array([2**24, 2**24 + 1, -(2**31)])
    found = converted_integer("arith.sitofp", exact(numbers, "i32"), "i32", "f32")
    assert (np.abs(numbers.astype(np.float32) - found.value) <= found.error).all()
    assert list(found.error > 0) == [False, True, True]


def test_a_narrower_integer_keeps_the_low_bits() -> None:
    found = converted_integer("arith.trunci", exact([300, -129, 127], "i32"), "i32", "i8")
    np.testing.assert_array_equal(found.value, [44, 127, 127])


def test_floats_round_to_zero_and_what_no_integer_is_near_to_may_be_any() -> None:
    numbers = exact([-128.9, 1.5, -1.5, 127.9, 128.0, np.nan, np.inf, -129.0], "f32")
    found = converted_integer("arith.fptosi", numbers, "f32", "i8")
    np.testing.assert_array_equal(found.value[:4], [-128, 1, -1, 127])
    assert not found.error[:4].any()
    assert (found.error[4:] >= 255).all()
    found = converted_integer("arith.fptoui", exact([200.5, -0.5, -1.0], "f32"), "f32", "i8")
    assert list(found.value[:2]) == [200 - 256, 0]
    assert list(found.error > 0) == [False, False, True]


def test_a_float_that_may_be_another_integer_may_give_that_one() -> None:
    near = Bounded(np.array([2.0, 2.5]), np.array([1e-6, 1e-6]), "f32")
    found = converted_integer("arith.fptosi", near, "f32", "i8")
    np.testing.assert_array_equal(found.value, [2, 2])
    np.testing.assert_array_equal(found.error, [1, 0])
    other = integer_op("arith.addi", Bounded(found.value, found.error, "i8"), exact([125, 0]), "i8")
    assert list(other.error) == [256, 0]  # 127 or 128, which is -128


@pytest.mark.parametrize("epilogue", ["none", "bias", "relu"])
def test_integer_results_are_exact_and_one_wrong_bit_is_noticed(epilogue: str) -> None:
    text = byte_texts.product(6, 11, 40, epilogue)
    inputs = draw_inputs(text, RNG)
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


@pytest.mark.parametrize("epilogue", ["scale", "columns", "residual", "requantized"])
def test_float_epilogues_of_bytes_are_within_the_bounds_and_a_missing_product_is_not(epilogue: str) -> None:
    text = byte_texts.product(6, 11, 40, epilogue)
    inputs = draw_inputs(text, RNG)
    (expected,) = evaluate(text, inputs)
    less = [each.copy() for each in inputs]
    less[0][:, 17] = 0
    (other,) = evaluate(text, tuple(less))
    kind = np.int8 if epilogue == "requantized" else np.float32
    assert worst_error(expected, expected.value.astype(kind)) <= 1
    assert worst_error(expected, other.value.astype(kind)) > 10


def test_unsigned_bytes_are_not_negative() -> None:
    text = texts.elementwise((256,), "arith.addf %f, %f").replace(
        "%y = ", "%f = arith.uitofp %x0 : i8 to f32\n %y = "
    )
    for part in ("%a: memref<256xf32>", "memref<256xf32> to", "ins(%a_t : tensor<256xf32>", "%x0: f32"):
        text = text.replace(part, part.replace("f32", "i8"), 1)
    text = text.replace("memref<256xi8> to tensor<256xf32>", "memref<256xi8> to tensor<256xi8>")
    (found,) = evaluate(text, (BYTES,))
    np.testing.assert_array_equal(found.value, 2.0 * BYTES.view(np.uint8))


def test_an_unknown_operation_on_integers_is_refused() -> None:
    text = byte_texts.product(2, 3, 4, "relu").replace("arith.maxsi", "arith.divsi")
    with pytest.raises(UsageError, match=r"fusion: found arith\.divsi, allowed arith\.addf, arith\.addi, "):
        evaluate(text, draw_inputs(byte_texts.product(2, 3, 4), RNG))


def test_sums_of_truths_are_refused() -> None:
    with pytest.raises(
        UsageError, match=r"fusion: found arith\.addi of i1, allowed arith\.andi, arith\.ori, "
    ):
        evaluate(texts.elementwise((4,), "arith.addi %x0, %x0", "i1"), (np.array([True, False] * 2),))
