"""Inputs of a kernel, what C is then in float64, and the tolerance of each of its elements.

``BaseDraw`` has A, B and their product. ``Inputs`` has what a kernel gets for one comparison; ``block`` and
``tile`` give the expected values and tolerances of a part of C, after scaling, special numbers and the
epilogue.
"""

import itertools
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tuner.core.bounded import Bounded, apply
from tuner.core.dtypes import FLOAT8S, INPUT_DTYPES, STORED, SUM_DTYPES, number_type
from tuner.core.epilogues import BEFORE, OPERATIONS, SUM, Epilogue
from tuner.core.errors import UsageError
from tuner.core.numpy_types import (
    DTYPES,
    FLOAT8_SUM_ROUNDING,
    Places,
    fill_with_nan,
    hard_to_scale,
    narrowed,
    wide,
)
from tuner.core.problem import SCALED_COLUMNS, SCALED_DEPTH, Problem
from tuner.payload.group_offsets import NO_GROUP, groups_of_rows
from tuner.payload.special_numbers import SpecialNumbers

Array = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]
Result = TypeVar("Result")
# dtype, or MLIR type in memory -> numpy type; types of a package that is not installed are left out.
NUMPY_DTYPES: dict[str, np.dtype[Any]] = {
    dtype: DTYPES[stored]
    for dtype in dict.fromkeys((*INPUT_DTYPES, *SUM_DTYPES, *STORED.values()))
    if (stored := STORED.get(dtype, dtype)) in DTYPES
}
# The tolerance of a dot product of K terms is min(16, 2 K) u |a| |b|, with 2-norms. The bound for any order
# of summation is gamma_K |a|^T |b|, about K u |a|^T |b| (Higham 2002, Accuracy and Stability of Numerical
# Algorithms, section 3.1); the tolerance lacks its factor K from 8 terms on. Errors of random terms stay
# below 4 u |a| |b| over millions of elements (measured for K = 64 .. 4096); a missing or doubled term is
# about |a| |b| / K. 16 leaves a margin up to K = 1e5.
ERROR_FACTOR = 16.0
# Tensor cores add the products of 256 bits of A to a sum at once, and cut the result off: each step loses
# half a unit in the last place on average, always towards zero (Fasi et al. 2021,
# doi.org/10.7717/peerj-cs.330). An H200 was off by 0.0088 of 591.7 in tf32 at K = 4096: more than the
# tolerance above, half of what this adds.
TRUNCATED_BITS = 256  # of the numbers of A that a step multiplies
# of arrays that several threads work on: numpy lets go of the GIL
THREADED_ELEMENTS = 2**20
THREADS = 8
ROUNDED_OFF = 2.0**-54  # times a float64: adding less changes nothing
SMALL_TILE = 2**14  # below so many elements, adding a number is faster than finding out if it is needed


@dataclass(frozen=True, eq=False)
class BaseDraw:
    """Random A and B, the norms of A's rows and of B's columns, and scales and offsets if any.

    Inputs are made from a base by factors of rows and columns, so that the product is computed only once.
    """

    a: Array  # (m, k), for layout tn (k, m); with the batch in front, if there is one
    b: Array  # (k, n), for layout nt (n, k); with the batch in front, if there is one
    layout: str
    row_norm: Float64  # (rows,), of A
    column_norm: Float64  # (matrices of B, n)
    scales: tuple[Array, ...] = ()  # of A and B, as ``Problem.scales`` says; () without them
    offsets: tuple[Array, ...] = ()  # of groups of rows, as ``Problem.offsets`` says; () without groups

    @property
    def without_layout(self) -> tuple[Array, Array]:
        """Returns A and B without the layout's transposition: views (batch, m, k) and (batch, k, n)."""
        a, b = (matrices.reshape(-1, *matrices.shape[-2:]) for matrices in (self.a, self.b))
        if self.layout == "tn":
            a = a.swapaxes(1, 2)
        if self.layout == "nt":
            b = b.swapaxes(1, 2)
        return a, b

    @cached_property
    def hard_to_scale(self) -> tuple[Places, Places]:
        """Returns the indices of A's and B's bf16 elements that a change of the exponent does not scale."""
        return hard_to_scale(self.a), hard_to_scale(self.b)

    @cached_property
    def sums(self) -> tuple[Float64, Float64]:
        """Returns the sums of the rows of A, (batch, m), and of the columns of B, (matrices of B, n)."""
        a, b = self.without_layout
        return a.sum(axis=2, dtype=np.float64), b.sum(axis=1, dtype=np.float64)

    @cached_property
    def product(self) -> Float64:
        """Returns A times B in float64, shape (batch * m, n); it is computed once."""
        return self.part(slice(None), slice(None))

    def part(self, rows: slice | Array, columns: slice) -> Float64:
        """Computes and returns a part of A times B in float64: some rows and a range of columns.

        ``rows``: a slice, or row numbers; they count through all matrices of the batch. NaN for a row that is
        in no group.
        """
        numbers = np.arange(len(self.row_norm))[rows]
        matrices = self.matrices_of(numbers)
        part = np.full((len(numbers), len(range(self.column_norm.shape[1])[columns])), np.nan)
        for matrix in np.unique(matrices[matrices != NO_GROUP]).tolist():
            here = matrices == matrix
            of_matrix = numbers[here] - self.rows_of(matrix).start
            a, b = self.factors_of(matrix)
            if self.scales:
                left, right = scaled_operands(a, b, self.scales, of_matrix, columns)
            else:
                left = wide(a[of_matrix])
                right = wide(b[:, columns])
            part[here] = left @ right
        return part

    def matrices_of(self, rows: Array) -> npt.NDArray[np.int64]:
        """Returns, for each row number, the index of the matrix of B that multiplies the row.

        ``rows``: numbers that count through all matrices of a batch. -1 for a row that is in no group.
        """
        if self.offsets:
            return groups_of_rows(self.offsets[0], rows)
        return rows // (len(self.row_norm) // len(self.column_norm))

    def rows_of(self, matrix: int) -> slice:
        """Returns the slice of the rows of A and C that the matrix of B with index ``matrix`` multiplies."""
        if self.offsets:
            first, end = self.offsets[0][matrix : matrix + 2].tolist()
            return slice(first, end)
        m = len(self.row_norm) // len(self.column_norm)
        return slice(matrix * m, (matrix + 1) * m)

    def factors_of(self, matrix: int) -> tuple[Array, Array]:
        """Returns the rows of A, (rows, k), that matrix ``matrix`` of B multiplies, and that matrix, (k, n).

        ``matrix``: its index. Both are views.
        """
        a, b = self.without_layout
        if self.offsets:
            return a[0][self.rows_of(matrix)], b[matrix]
        return a[matrix], b[matrix]

    def scales_at(self, rows: Array, columns: Array, k: int) -> tuple[Float64, Float64]:
        """Returns the scales of elements (row, k) of A and (k, column) of B; ones without scales."""
        if not self.scales:
            return np.ones(len(rows)), np.ones(len(columns))
        of_a, of_b = self.scales
        step = k // SCALED_DEPTH
        return wide(of_a[rows, step]), wide(of_b[columns // SCALED_COLUMNS, step])


@dataclass(frozen=True)
class Flip:
    """An element of A or B whose highest bit (the sign, for floats) was inverted after the draw."""

    array: str  # "A" or "B"
    row: int
    column: int
    matrix: int = 0  # of the batch


@dataclass(frozen=True, eq=False)
class Inputs:
    """One draw of a kernel's inputs, with which the expected C and its tolerances are computed."""

    problem: Problem
    base: BaseDraw
    a: Array  # as stored
    b: Array  # as stored
    extra: tuple[Array, ...]  # of the epilogue, in the order of the kernel's arguments
    rows: Float64  # (rows,), the factor of each row of A
    columns: Float64  # (matrices of B, n), the factor of each column of B
    result_rounding: float = 0.0  # relative; for a library that stores C in a narrower type
    flip: Flip | None = None  # a bit flipped after the draw
    special: SpecialNumbers | None = None  # put into A and B after the draw
    before: Array | None = None  # (rows, n), what C holds where an epilogue reads it

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Returns the input arrays in the order of the kernel's arguments, without C."""
        return (self.a, self.b, *self.base.scales, *self.base.offsets, *self.extra)

    @property
    def output_before(self) -> Array:
        """Returns a new array (rows, n), C before a call: ``unwritten_output`` if no kernel may read it."""
        if self.before is None:
            return unwritten_output(self.problem)
        return self.before.copy()

    @property
    def named(self) -> dict[str, Array]:
        """Returns the input arrays by the name of the kernel's argument: "a", "b", "bias"."""
        *inputs, _ = self.problem.arguments
        return {argument.name: array for argument, array in zip(inputs, self.arrays, strict=True)}

    @property
    def expected(self) -> Float64:
        """Returns the expected C in float64, shape (batch * m, n)."""
        return self.block(0, self.problem.rows)[0]

    @property
    def tolerance(self) -> Float64:
        """Returns the allowed absolute error of each element of C, shape (batch * m, n)."""
        return self.block(0, self.problem.rows)[1]

    def block(self, start: int, stop: int) -> tuple[Float64, Float64]:
        """Returns (expected values, allowed absolute errors) of rows ``start`` to ``stop`` (exclusive) of C.

        Both have the shape (stop - start, n). Rows count through all matrices of the batch.
        """
        rows = slice(start, stop)
        return self._finish(rows, slice(None), self.base.product[rows])

    def tile(self, rows: slice | Array, columns: slice) -> tuple[Float64, Float64]:
        """Returns (expected values, allowed absolute errors) of a part of C, in O(k) operations per element.

        ``rows``: a slice, or row numbers, which count through the batch; ``columns``: a slice.
        """
        return self._finish(rows, columns, self.base.part(rows, columns))

    def _finish(self, rows: slice | Array, columns: slice, product: Float64) -> tuple[Float64, Float64]:
        matrices = self.base.matrices_of(np.arange(self.problem.rows)[rows])
        if self.problem.b_matrices == 1:
            matrices = matrices[:1]  # broadcast
        expected = product * self.rows[rows, None]
        expected *= self.columns[matrices][:, columns]
        if self.flip is not None:
            self._correct(expected, self.flip, rows, columns)
        tolerance = self._tolerance_of_sums(rows, columns, matrices, expected)
        if self.special is not None:
            of_c = (self._in_matrix(self.special.matrix, rows), np.arange(self.problem.sizes[1])[columns])
            unit = 2 * sum_rounding(self.problem)
            least = self._lost_below_normal
            self.special.put(expected, tolerance, *of_c, unit, least)
        if self.result_rounding:
            tolerance = tolerance + np.abs(expected) * self.result_rounding
        if self.problem.after_product.steps:
            expected, tolerance = self._after_product(expected, tolerance, rows, columns)
        if self.problem.output:
            # the last rounding, of a sum that may itself be off by the tolerance so far
            tolerance = tolerance + (np.abs(expected) + tolerance) * number_type(self.problem.output).rounding
            tolerance += number_type(self.problem.output).smallest / 2
        can_be_infinite = self.special is not None or bool(self.problem.after_product.steps)
        if can_be_infinite and not np.isfinite(tolerance.max(initial=0.0)):
            tolerance[~np.isfinite(expected)] = 0.0
        return expected, tolerance

    def _in_matrix(self, matrix: int, rows: slice | Array) -> Array:
        """Returns for each row of C its index among the rows that a matrix of B multiplies; else -1."""
        own = self.base.rows_of(matrix)
        numbers = np.arange(self.problem.rows)[rows]
        return np.where((numbers >= own.start) & (numbers < own.stop), numbers - own.start, -1)

    @property
    def _lost_below_normal(self) -> float:
        """Returns the absolute error that sums may have from subnormal products and partial sums."""
        return self.problem.sizes[2] * number_type(self.problem.accumulator).smallest

    def _tolerance_of_sums(
        self, rows: slice | Array, columns: slice, matrices: Array, expected: Float64
    ) -> Float64:
        """Returns the tolerances of sums of products; of integers 0, broadcast to the shape and read-only."""
        k = self.problem.sizes[2]
        unit = sum_rounding(self.problem)
        if not unit:
            return np.broadcast_to(np.zeros(()), expected.shape)
        bits = 8 * self.base.a.itemsize
        steps = k * bits / TRUNCATED_BITS if number_type(self.problem.dtype).cuts_sums else 0.0
        factor = min(ERROR_FACTOR, 2.0 * k) + steps / k**0.5  # |a| |b| / sqrt(k): a typical sum
        of_rows = self.base.row_norm[rows, None] * np.abs(self.rows[rows, None])
        of_columns = self.base.column_norm[matrices][:, columns] * np.abs(self.columns[matrices][:, columns])
        of_columns *= factor * unit
        tolerance: Float64 = of_rows * of_columns
        if steps:
            more = np.abs(expected)
            more *= steps * unit
            tolerance += more
        lost = self._lost_below_normal
        # where the least tolerance is so large, this would be rounded off
        if tolerance.size < SMALL_TILE or of_rows.min() * of_columns.min() * ROUNDED_OFF < lost:
            tolerance += lost
        return tolerance

    def _after_product(
        self, expected: Float64, tolerance: Float64, rows: slice | Array, columns: slice
    ) -> tuple[Float64, Float64]:
        """Returns the values of the epilogue for these sums of products, and their tolerances."""
        epilogue = self.problem.after_product
        n = self.problem.sizes[1]
        elements = {}
        for argument, array in zip(epilogue.arguments, self.extra, strict=True):
            numbers = array
            if argument.axes == "mn":
                numbers = array.reshape(-1, n)[rows]
            if argument.axes:
                numbers = numbers[..., columns]
            elements[argument.name] = wide(numbers)
        if self.before is not None:
            elements[BEFORE] = wide(self.before[rows][:, columns])
        sums = Bounded(expected, tolerance, self.problem.accumulator, self.problem.sizes[2])
        result = after_sums(epilogue, sums, elements)
        if number_type(sums.element).is_float:
            return result.value, result.error
        return result.value, tolerance

    def _correct(self, expected: Float64, flip: Flip, rows: slice | Array, columns: slice) -> None:
        is_a = flip.array == "A"
        matrix = flip.matrix
        row_of_flip = flip.row
        if is_a and self.base.offsets:
            matrix = int(self.base.matrices_of(np.array([flip.row]))[0])
            row_of_flip -= self.base.rows_of(matrix).start
        a, b = self.base.factors_of(matrix)
        of_rows = self._in_matrix(matrix, rows)
        of_columns = np.arange(self.problem.sizes[1])[columns]
        at_rows = np.flatnonzero(of_rows == row_of_flip if is_a else of_rows >= 0)
        at_columns = np.flatnonzero((of_columns == flip.column) | is_a)
        row = of_rows[at_rows]
        column = of_columns[at_columns]
        inner = flip.column if is_a else flip.row
        scale_a, scale_b = self.base.scales_at(row, column, inner)
        of_a = wide(a[row, inner]) * self.rows[row + self.base.rows_of(matrix).start] * scale_a
        of_b = wide(b[inner, column]) * self.columns[matrix, column] * scale_b
        if is_a:
            changes = (_flip_change(of_a, a.dtype), of_b)
        else:
            changes = (of_a, _flip_change(of_b, b.dtype))
        expected[np.ix_(at_rows, at_columns)] += np.outer(*changes)


def output_dtype(problem: Problem) -> np.dtype[Any]:
    """Returns the numpy type of C and of the epilogue's arguments."""
    return NUMPY_DTYPES[problem.result_dtype]


def unwritten_output(problem: Problem) -> Array:
    """Returns an array for C, (batch * m, n), that is filled with NaN, of integers with the least number.

    Elements that a kernel does not write are then wrong.
    """
    c = np.empty((problem.rows, problem.sizes[1]), output_dtype(problem))
    fill_with_nan(c)
    return c


def after_sums(epilogue: Epilogue, sums: Bounded, arguments: Mapping[str, Float64]) -> Bounded:
    """Returns the epilogue of sums of products, in float64, with the error that a kernel's values may have.

    ``arguments``: elements of the epilogue's other arguments by name, of shapes that broadcast to that of
    ``sums``.
    """
    element = sums.element
    known = {name: Bounded.exact(elements, element) for name, elements in arguments.items()}
    known[SUM] = sums
    for step in epilogue.steps:
        operands = [
            known[operand]
            if isinstance(operand, str)
            else Bounded.exact(DTYPES[element].type(operand), element)  # as a kernel has the constant
            for operand in step.operands
        ]
        known[step.name] = apply(OPERATIONS[step.operation].op(element), operands, element)
    return known[epilogue.result]


def sum_rounding(problem: Problem) -> float:
    """Returns the unit roundoff that is assumed for sums of products: the accumulator's; for fp8 2**-14."""
    if problem.dtype in FLOAT8S:
        return FLOAT8_SUM_ROUNDING
    return number_type(problem.accumulator).rounding


def scaled_operands(
    a: Array, b: Array, scales: tuple[Array, ...], rows: slice | Array, columns: slice
) -> tuple[Float64, Float64]:
    """Returns rows of A and columns of B, each element times its scale, in float64 and exact.

    ``a``: (m, k), ``b``: (k, n); ``scales``: (m, k / 128) and (n / 128, k / 128), rounded up, f32.
    """
    of_a, of_b = scales
    k, n = b.shape
    of_columns = of_b[np.arange(n)[columns] // SCALED_COLUMNS]
    of_rows, of_columns = (scale.repeat(SCALED_DEPTH, axis=1)[:, :k] for scale in (of_a[rows], of_columns))
    return wide(a[rows]) * of_rows, wide(b[:, columns]) * of_columns.T


def by_rows(rows: int, elements: int, work: Callable[[slice], Result]) -> list[Result]:
    """Calls ``work`` for slices that divide the numbers 0 to ``rows`` - 1; returns the results in order.

    From THREADED_ELEMENTS (2**20) ``elements`` on, up to 8 slices on as many threads, else one slice.
    """
    threads = min(THREADS, rows) if elements >= THREADED_ELEMENTS else 1
    bounds = [part * rows // threads for part in range(threads + 1)]
    parts = [slice(low, high) for low, high in itertools.pairwise(bounds)]
    if threads == 1:
        return [work(parts[0])]
    with ThreadPoolExecutor(threads) as pool:
        return [*pool.map(work, parts)]


def reference_bytes(problem: Problem) -> int:
    """Returns the estimated peak memory in bytes of drawing inputs and computing the reference.

    It is five times the problem's arrays, plus A, B and C in float64.
    """
    _, n, k = problem.sizes
    # the float64 copies of A, B and C
    return 5 * problem.bytes + 8 * (problem.rows * (k + n) + problem.b_matrices * k * n)


def as_stored(numbers: Array, dtype: str) -> Array:
    """Returns numbers converted to the numpy type of a dtype; in bf16 a NaN may become a number.

    Raises UsageError if the dtype needs the package ml_dtypes and it is not installed.
    """
    if dtype not in NUMPY_DTYPES:
        raise UsageError(
            f"dtype: {dtype} needs the package ml_dtypes, which is missing", "pip install ml_dtypes"
        )
    if dtype == "bf16":
        return narrowed(numbers)
    return numbers.astype(NUMPY_DTYPES[dtype])


def _flip_change(numbers: Float64, dtype: np.dtype[Any]) -> Float64:
    if dtype.kind == "i":
        top_bit = 2.0 ** (8 * dtype.itemsize - 1)
        return np.where(numbers < 0, top_bit, -top_bit)
    return -2 * numbers
