"""The table of types: each row is what numpy and ml_dtypes say, and other tables follow from it."""

import ml_dtypes
import numpy as np
import pytest

from tuner.core.dtypes import (
    CPU_DTYPES,
    FLOAT8S,
    FLOATS,
    IEEE,
    INPUT_DTYPES,
    MATH,
    NUMBER_TYPES,
    PLAIN_DTYPES,
    ROWS,
    STORED,
    SUM_DTYPES,
    TENSOR_DTYPES,
    TILE_DTYPES,
    NumberType,
    dtype_of_math,
    number_type,
)
from tuner.core.errors import UsageError
from tuner.core.matmul import BatchMatmul, Matmul
from tuner.core.numpy_types import DTYPES

ALL_FLOATS = [
    row for row in ROWS.values() if (row.is_float and row.name not in STORED) or row.name in FLOAT8S
]


@pytest.mark.parametrize(
    ("bits", "sums", "deepest"),
    [(8, "i32", 2**17 - 1), (16, "i32", 1), (16, "i64", 2**33 - 1), (8, "i16", 1), (32, "i64", 1)],
)
def test_the_type_of_sums_says_how_many_products_of_integers_fit(bits: int, sums: str, deepest: int) -> None:
    row = NumberType(f"i{bits}", bits, f"int{bits}", sums=sums)
    assert row.depth_limit == deepest
    largest = 4 ** (bits - 1)
    assert deepest * largest < 2 ** (ROWS[sums].bits - 1) <= (deepest + 1) * largest


def test_floats_and_integers_that_are_not_multiplied_have_no_limit_of_products() -> None:
    assert {row.name for row in ROWS.values() if row.depth_limit} == {"i8"}


@pytest.mark.parametrize("row", ALL_FLOATS, ids=lambda row: str(row.name))
def test_the_limits_of_a_float_are_those_of_its_numpy_type(row: NumberType) -> None:
    limits = ml_dtypes.finfo(DTYPES[row.mlir])  # type: ignore[no-untyped-call]
    assert row.format is not None
    assert row.bits == limits.bits
    assert row.epsilon == float(limits.eps)
    assert row.largest == float(limits.max)
    assert row.format.smallest_normal == float(limits.smallest_normal)
    assert row.smallest == float(limits.smallest_subnormal)
    if row.format.has_infinity and row.name != "f64":
        below = (row.largest + row.format.overflow) / 2
        with np.errstate(over="ignore"):
            made = np.float64(row.format.overflow).astype(DTYPES[row.mlir])
        assert np.isinf(made)
        assert float(np.float64(below).astype(DTYPES[row.mlir])) == row.largest


def test_tf32_has_the_mantissa_of_f16_and_the_exponents_of_f32() -> None:
    assert ROWS["tf32"].mlir == "f32"
    assert ROWS["tf32"].epsilon == ROWS["f16"].epsilon
    assert number_type("tf32").format != number_type("f32").format
    assert number_type("tf32").smallest == 2.0**-136


@pytest.mark.parametrize("name", INPUT_DTYPES)
def test_each_type_that_is_multiplied_has_sums_a_c_type_and_extreme_numbers(name: str) -> None:
    row = ROWS[name]
    assert row.extremes is not None
    assert row.c
    assert all(ROWS[output].bias_exponent or output == "i32" for output in (row.sums, *row.narrow))
    assert row.name in (*CPU_DTYPES, *TILE_DTYPES, *TENSOR_DTYPES, "tf32x3")  # the last by products of tf32
    assert row.is_float == ROWS[row.sums].is_float
    assert ROWS[row.sums].bits >= row.bits
    largest = 4 * row.extremes.largest_whole * 2.0 ** (row.extremes.large + row.extremes.column)
    assert largest * 2**10 < ROWS[row.sums].largest


def test_names_of_rows_and_of_mlir_find_the_same_row() -> None:
    for mlir, row in NUMBER_TYPES.items():
        assert number_type(mlir) == number_type(row.name) == row
    assert {name for name in FLOATS if np.dtype(DTYPES[name]).itemsize * 8 != ROWS[name].bits} == set()
    assert SUM_DTYPES == ("f32", "f64", "i32")


def test_each_mode_of_f32_is_a_type_that_is_stored_as_f32_and_no_plain_type_is() -> None:
    assert MATH[IEEE] == "f32"
    for math, dtype in MATH.items():
        assert ROWS[dtype].mlir == "f32"
        assert dtype_of_math("f32", math) == dtype
        assert Matmul(8, 8, 8, math=math) == Matmul(8, 8, 8, dtype)
        assert BatchMatmul(2, 8, 8, 8, "f32", math=math) == BatchMatmul(2, 8, 8, 8, dtype)
    assert sorted(name for name in INPUT_DTYPES if ROWS[name].mlir == "f32") == sorted(MATH.values())
    assert {*INPUT_DTYPES} - {*PLAIN_DTYPES} == {*MATH.values()} - {"f32"}


def test_a_mode_is_of_f32_alone_and_an_unknown_one_is_refused() -> None:
    assert Matmul(8, 8, 8, "bf16", math="ieee").dtype == "bf16"
    with pytest.raises(UsageError, match=r"^math tf32 cannot be combined with dtype bf16, only with f32; --"):
        Matmul(8, 8, 8, "bf16", math="tf32")
    with pytest.raises(UsageError, match=r"^math tf32x3 cannot be combined with dtype tf32, only with f32"):
        BatchMatmul(2, 8, 8, 8, "tf32", math="tf32x3")
    with pytest.raises(UsageError, match=r"^math: found 'bf16x3', allowed ieee, tf32, tf32x3, bf16x6"):
        Matmul(8, 8, 8, math="bf16x3")
