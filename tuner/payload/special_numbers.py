"""NaN, infinity, unit vectors and -128 among usual inputs: what usual draws do not show.

They are in a few rows and columns, whose results follow without a product, so a draw with them costs what
another one does. They find kernels that

- leave out products with zeros, and so lose 0 * NaN and 0 * infinity;
- read NaN or infinity in A or in B as other numbers: either operand has NaN and infinity of both signs;
- clip infinity, or overflow too early: whatever the sizes, elements of C are infinite, minus infinite, and
  near the largest number;
- read A or B with fewer bits, which rounding hides where many products are added up: the product with a unit
  vector is a row of B or a column of A, to the last bit;
- multiply bytes as if none were -128, or add such products up in fewer than 32 bits, or as f32: a row of A
  and a column of B are -128 but for some 127, another column is 127 but for some -128, over all of K;
- read NaN, infinity, large or tiny numbers in the bias as others.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.dtypes import FLOATS, PROMISED, number_type
from tuner.core.numpy_types import wide

Array = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]
Store = Callable[[Array], Array]
Kinds = tuple[int, ...]
NumbersOfKinds = dict[int, tuple[tuple[int, float], ...]]  # by kind: indices in K, and the numbers there
DTYPES = (*FLOATS, *PROMISED)  # that have infinity, and no rounding of a single product but that of the sums
FEW = 4  # fewer rows than this stay usual, unless C has as few columns; likewise columns
MANY = 32  # with as many rows and columns, most are usual in a draw that has all kinds of special ones
# Kinds of rows and columns: a unit vector; usual ones but for infinities, or for NaN; zeros but for one
# number, at the same index in K: infinity, minus infinity, one near the largest, 1, or NaN; zeros alone
UNIT, INFINITE, NAN, PLUS, MINUS, LARGE, ONE, LONE_NAN, ZERO = range(9)
# In this order, a single row is a unit vector, whose zeros meet the NaN of a single column.
ROW_KINDS = (UNIT, INFINITE, NAN)
COLUMN_KINDS = (NAN, INFINITE, UNIT)
# The product of each row and the ONE column is the row's number; likewise of the ONE row and a column.
RESULT_ROWS = (PLUS, MINUS, LARGE, ONE)
RESULT_COLUMNS = (PLUS, MINUS, ONE)
EXACT_BITS = 49  # of integers that an epilogue may add to others, exactly in float64
LONG_RUN = 1024  # longer ones have sums above 2**24, the largest number up to which f32 has all integers
OTHERS = 3  # of a long run: bytes of the other extreme, so that such sums are odd, and no number of f32
BIAS_KINDS = (np.nan, np.inf, -np.inf, -0.0, 0.0)
WIDE_SHARE = 0.5  # of a special bias: numbers of any size; the others are as drawn


@dataclass(frozen=True)
class SpecialKinds:
    """The kinds of special rows of A and columns of B in a draw; small sizes have only the first of them."""

    rows: Kinds
    columns: Kinds


@dataclass(frozen=True)
class NumberTypes:
    """The number types of a product of matrices, as far as special numbers of A and B depend on them."""

    largest: float  # near the largest number of A's type and of C's, with at most 8 significant bits
    sums: np.dtype[Any]
    store: Store  # converts numbers to the type of A and B


@dataclass(frozen=True, eq=False)
class SpecialNumbers:
    """Expected values of one matrix of C that special numbers in A or B change.

    ``put`` applies the fields in order, so that a later field overwrites earlier ones.
    """

    matrix: int  # of a batch
    less_rows: tuple[tuple[int, Float64], ...] = ()  # (row, what a zero in A takes from it, (n,))
    less_columns: tuple[tuple[int, Float64], ...] = ()  # (column, what a zero in B takes from it, (m,))
    columns: tuple[tuple[int, Float64], ...] = ()  # (column, expected values, (m,))
    rows: tuple[tuple[int, Float64], ...] = ()  # (row, expected values, (n,))

    def put(
        self,
        expected: Float64,
        tolerance: Float64,
        rows: Array,
        columns: Array,
        unit: float,
        least: float,
    ) -> None:
        """Puts the changed expected values and tolerances into arrays of a part of C, in place.

        ``rows``, ``columns``: the numbers of the arrays' rows and columns in C; rows count within this
        matrix, and those of others are -1. ``unit``: allowed relative error of an element that is one
        product, its others being 0; ``least``: the absolute one. Where both are 0, as of integers,
        ``tolerance`` is left as it is.
        """
        here = np.flatnonzero(rows >= 0)
        for row, values in self.less_rows:
            expected[rows == row] -= values[columns]
        for column, values in self.less_columns:
            at = np.flatnonzero(columns == column)
            expected[here[:, None], at] -= values[rows[here], None]
        for column, values in self.columns:
            at = np.flatnonzero(columns == column)
            expected[here[:, None], at] = values[rows[here], None]
            if unit:
                tolerance[here[:, None], at] = _allowed(values[rows[here], None], unit, least)
        for row, values in self.rows:
            expected[rows == row] = values[columns]
            if unit:
                tolerance[rows == row] = _allowed(values[columns], unit, least)


def _allowed(values: Float64, unit: float, least: float) -> Float64:
    """Returns the allowed error of single products; 0 where NaN or infinity is expected."""
    return np.where(np.isfinite(values), unit * np.abs(values) + least, 0.0)


def special_kinds(m: int, n: int) -> tuple[SpecialKinds, ...]:
    """Returns the kinds of rows and columns that each special draw of an (m, n) matrix C has.

    Whatever the sizes, one element of C is near the largest number, and by special numbers of A, and again by
    those of B, one is infinite, one minus infinite and one NaN. Large matrices have all kinds in one
    draw; of small ones that would leave no usual number, so they have several.
    """
    usual = SpecialKinds(
        ROW_KINDS if m >= FEW or n < FEW else (),
        COLUMN_KINDS if n >= FEW or m < FEW else (),
    )
    if min(m, n) >= MANY:
        return (SpecialKinds(usual.rows + RESULT_ROWS, usual.columns + RESULT_COLUMNS),)
    return (usual, *_results(m, n), *_products_with_zeros(m, n))


def _results(m: int, n: int) -> tuple[SpecialKinds, ...]:
    """Returns the kinds of draws in which elements of C are infinite or near the largest number."""
    if m >= len(RESULT_ROWS) and n >= len(RESULT_COLUMNS):
        return (SpecialKinds(RESULT_ROWS, RESULT_COLUMNS),)
    by_rows = (SpecialKinds(kinds, (ONE,)) for kinds in _batches(RESULT_ROWS[:-1], m))
    by_columns = (SpecialKinds((ONE,), kinds) for kinds in _batches(RESULT_COLUMNS[:-1], n))
    return (*by_rows, *by_columns)


def _products_with_zeros(m: int, n: int) -> tuple[SpecialKinds, ...]:
    """Returns the kinds of draws with NaN in A times zeros in B, and reversed, for few rows or columns."""
    if min(m, n) >= FEW:
        return ()
    pair = (LONE_NAN, ZERO)
    if min(m, n) > 1:
        return (SpecialKinds(pair, pair[::-1]),)
    return (SpecialKinds(pair[:1], pair[1:]), SpecialKinds(pair[1:], pair[:1]))


def _batches(kinds: Kinds, size: int) -> list[Kinds]:
    return [kinds[first : first + size] for first in range(0, len(kinds), size)]


def put_special_numbers(
    a: Array, b: Array, kinds: SpecialKinds, types: NumberTypes, rng: np.random.Generator
) -> SpecialNumbers:
    """Puts unit vectors, infinities and NaN into a few rows of A and columns of B, in place.

    ``a``: (batch, m, k), ``b``: (batch, k, n). Only one matrix of the batch is changed. Returns the values of
    C that the change makes expected.
    """
    matrix = int(rng.integers(len(a)))
    a = a[matrix]
    b = b[matrix]
    m, n = len(a), b.shape[1]
    rows = rng.permutation(m)[: len(kinds.rows)]
    columns = rng.permutation(n)[: len(kinds.columns)]
    numbers_of_rows, numbers_of_columns = _numbers_of_kinds(len(b), types.largest, rng)
    less_rows = []
    less_columns = []
    zero = types.store(np.zeros(1))[0]
    if not len(rows):  # no special row: a zero in a usual one meets the NaN of a column
        row = int(rng.integers(m))
        zero_at = numbers_of_columns[NAN][0][0]
        less_rows.append((row, wide(a[row, zero_at : zero_at + 1]) * wide(b[zero_at])))
        a[row, zero_at] = zero
    if not len(columns):
        column = int(rng.integers(n))
        zero_at = numbers_of_rows[INFINITE][-1][0]
        less_columns.append((column, wide(a[:, zero_at]) * wide(b[zero_at, column : column + 1])))
        b[zero_at, column] = zero
    _put_kinds(a, rows, kinds.rows, numbers_of_rows, types.store)
    _put_kinds(b.T, columns, kinds.columns, numbers_of_columns, types.store)
    of_rows = _products(b.T, a[rows], kinds.rows, numbers_of_rows)
    of_columns = _products(a, b.T[columns], kinds.columns, numbers_of_columns)
    with np.errstate(invalid="ignore", over="ignore"):  # infinity times 0
        both = np.einsum("rk,kc->rc", wide(a[rows]), wide(b[:, columns]))
    for values, of_both in zip(of_rows, both, strict=True):
        values[columns] = of_both
    for values in (*of_rows, *of_columns):
        _overflow(values, types.sums)
    return SpecialNumbers(
        matrix,
        tuple(less_rows),
        tuple(less_columns),
        tuple(zip(columns.tolist(), of_columns, strict=True)),
        tuple(zip(rows.tolist(), of_rows, strict=True)),
    )


def _numbers_of_kinds(
    k: int, largest: float, rng: np.random.Generator
) -> tuple[NumbersOfKinds, NumbersOfKinds]:
    """Returns kind -> ((index in K, number), ...), for rows of A and for columns of B."""
    of_rows, of_columns = (
        {UNIT: ((one, 1.0),), INFINITE: ((plus, np.inf), (minus, -np.inf)), NAN: ((nan, np.nan),)}
        for one, plus, minus, nan in rng.integers(k, size=(2, 4)).tolist()
    )
    shared = int(rng.integers(k))
    numbers = {PLUS: np.inf, MINUS: -np.inf, LARGE: largest, ONE: 1.0, LONE_NAN: np.nan, ZERO: 0.0}
    results = {kind: ((shared, number),) for kind, number in numbers.items()}
    return of_rows | results, of_columns | results


def _overflow(values: Float64, sums: np.dtype[Any]) -> None:
    """Replaces, in place, products that are too large for the type of the sums by infinity of their sign."""
    with np.errstate(over="ignore"):
        is_infinite = np.isinf(values.astype(sums))
    values[is_infinite] = np.copysign(np.inf, values[is_infinite])


def _put_kinds(matrix: Array, rows: Array, kinds: Kinds, numbers: NumbersOfKinds, store: Store) -> None:
    for row, kind in zip(rows, kinds, strict=False):
        if kind not in (INFINITE, NAN):
            matrix[row] = store(np.zeros(1))[0]
        for index, number in numbers[kind]:
            matrix[row, index] = store(np.array([number]))[0]


def _products(matrix: Array, vectors: Array, kinds: Kinds, numbers: NumbersOfKinds) -> list[Float64]:
    products = []
    with np.errstate(invalid="ignore", over="ignore"):  # infinity times 0, and the sum of infinities
        for vector, kind in zip(vectors, kinds, strict=False):
            at = sorted({index for index, _ in numbers[kind]})
            products.append((wide(matrix[:, at]) * wide(vector[at])).sum(axis=1))
    return products


def put_extreme_integers(
    a: Array, b: Array, sums: tuple[Float64, Float64], rng: np.random.Generator
) -> SpecialNumbers:
    """Fills a row of A and up to two columns of B with the ends of their integers' range, in place.

    Returns the expected values of C in this row and these columns. ``sums``: of each row of A, (batch, m),
    and of each column of B, (batch, n). ``Problem`` allows no K whose sum of extreme products exceeds the
    type of the sums.
    """
    matrix = int(rng.integers(len(a)))
    a = a[matrix]
    b = b[matrix]
    (m, k), n = a.shape, b.shape[1]
    row = int(rng.integers(m))
    columns = rng.permutation(n)[:2].tolist()
    places = other_places(k, rng)
    ends = np.iinfo(a.dtype)
    least = _ExtremeRun(_run(a, places, ends.min, ends.max), ends.min, ends.max, places)
    greatest = _ExtremeRun(_run(a, places, ends.max, ends.min), ends.max, ends.min, places)
    of_row = _products_of_run(sums[1][matrix], b.T, least)
    of_columns = [_products_of_run(sums[0][matrix], a, run) for run in (least, greatest)]
    a[row] = least.numbers
    for column, run, values in zip(columns, (least, greatest), of_columns, strict=False):
        b[:, column] = run.numbers
        values[row] = of_row[column] = float(wide(least.numbers) @ wide(run.numbers))
    return SpecialNumbers(
        matrix,
        columns=tuple(zip(columns, of_columns, strict=False)),
        rows=((row, of_row),),
    )


def other_places(length: int, rng: np.random.Generator) -> list[int]:
    """Returns random indices in a run of extreme bytes of the given length: of bytes of the other extreme."""
    if length <= LONG_RUN:
        return []
    places: list[int] = rng.permutation(length)[:OTHERS].tolist()
    return places


@dataclass(frozen=True, eq=False)
class _ExtremeRun:
    numbers: Array  # ``usual`` but at ``places``
    usual: int
    other: int
    places: list[int]


def _run(rows: Array, places: list[int], usual: int, other: int) -> Array:
    numbers = np.full(rows.shape[1], usual, rows.dtype)
    numbers[places] = other
    return numbers


def _products_of_run(sums: Float64, lines: Array, run: _ExtremeRun) -> Float64:
    """Returns the products of ``lines`` with an extreme row or column, in float64.

    ``lines``: (count, k); ``sums``: the sum of each line; ``run``: its usual number, and the indices in K at
    which it has another number.
    """
    others = wide(lines[:, run.places]).sum(axis=1)
    products: Float64 = run.usual * sums + (run.other - run.usual) * others
    return products


def special_bias(bias: Array, dtype: str, kinds: int, rng: np.random.Generator) -> Float64:
    """Returns a copy of ``bias``, 1-D, in float64, with about half of the numbers replaced by any magnitude.

    ``kinds`` random elements are then replaced by the first of BIAS_KINDS: NaN, infinities, zeros; of
    integers none are.
    """
    numbers = wide(bias)
    n = len(numbers)
    is_wide = rng.random(n) < WIDE_SHARE
    type_ = number_type(dtype)
    if not type_.is_float:
        largest = 2 ** min(type_.bits - 3, EXACT_BITS)
        numbers[is_wide] = rng.integers(-largest, largest, n)[is_wide]
        return numbers
    exponents = rng.integers(int(np.log2(type_.smallest)), type_.bias_exponent, n)
    of_any_size = rng.choice((-1.0, 1.0), n) * np.ldexp(1.0 + rng.random(n) / 2, exponents)
    numbers[is_wide] = of_any_size[is_wide]
    columns = rng.permutation(n)[:kinds]
    numbers[columns] = BIAS_KINDS[: len(columns)]
    return numbers
