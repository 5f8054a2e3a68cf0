"""Random inputs, their product in float64, and the tolerance of each element, of all rows or of samples."""

import itertools
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tuner.core.dtypes import FLOAT8S, INPUT_DTYPES, STORED, number_type, sum_roundings
from tuner.core.epilogues import BEFORE
from tuner.core.errors import CandidateError, Stage, UsageError
from tuner.core.numpy_types import (
    BF16,
    DTYPES,
    FLOAT8_STEPS,
    FLOAT8_SUM_ROUNDING,
    Places,
    are_equal,
    fill_with_nan,
    hard_to_scale,
    is_nan,
    narrowed,
    scale,
    widened,
)
from tuner.core.problem import SCALED_COLUMNS, SCALED_DEPTH, Problem
from tuner.core.records import Verdict
from tuner.payload.epilogue_values import Arithmetic, BoundedValue, evaluate
from tuner.payload.group_offsets import draw_offsets, grouped_part, groups_of_rows
from tuner.payload.special_numbers import (
    BIAS_KINDS,
    FEW,
    SPECIAL,
    SpecialNumbers,
    put_extreme_bytes,
    put_special_numbers,
    special_bias,
)
from tuner.payload.special_numbers import DTYPES as SPECIAL_DTYPES

Array = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]
Result = TypeVar("Result")
# dtype, or MLIR type in memory -> numpy type; types of a package that is not installed are left out.
NUMPY_DTYPES: dict[str, np.dtype[Any]] = {
    dtype: DTYPES[stored]
    for dtype in dict.fromkeys((*INPUT_DTYPES, "i32", *STORED.values()))
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
# f16 inputs are multiples of 2**-20, so that their halves are multiples of the smallest number, 2**-24
F16_STEPS = np.float32(2.0**20)
F16 = np.dtype(np.float16)
F16_OVERFLOW = 65520.0  # 65504, the largest number of f16, and half of its last place
INTEGER_LARGEST = 63  # of a base: twice this number, of either sign, is an i8 as well
BYTE_BITS = 8
INTEGER_DEVIATION = 21.0  # standard deviation of a base: a third of the largest number
TF32_DROPPED_BITS = 13  # of the mantissa of an f32
BLOCK_ELEMENTS = 2**17  # compared at once: a megabyte in float64 fits in the cache
# of arrays that several threads work on: numpy lets go of the GIL
THREADED_ELEMENTS = 2**20
THREADS = 8
FACTORS = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])  # of rows and columns
INTEGER_FACTORS = np.array([-2.0, -1.0, 1.0, 2.0])
TINY = 1e-300  # where the tolerance is 0, any difference is wrong
ROUNDED_OFF = 2.0**-54  # times a float64: adding less changes nothing
SMALL_TILE = 2**14  # below so many elements, adding a number is faster than finding out if it is needed
WHOLE_FLOP = 2**40  # of the largest problem compared whole: some 10 s in float64 on a few cores
SAMPLED_ROWS = 256
SCALE_OCTAVES = 8.0  # powers of two over which drawn scales of blocks are spread
GOLDEN = 0.6180339887  # multiples modulo 1: a low-discrepancy sequence, no period as tiles have


@dataclass(frozen=True, eq=False)
class BaseDraw:
    """Random A and B, and the norms of A's rows and B's columns.

    Inputs are made from it by factors of rows and columns, so that the product is computed only once.
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
        """Returns A times B in float64, (m of all matrices of the batch, n); it is computed once."""
        if self.scales or self.offsets:
            return self.part(slice(None), slice(None))
        a, b = self.without_layout
        product: Float64 = _wide(a) @ _wide(b)
        return product.reshape(-1, b.shape[2])

    def part(self, rows: slice | Array, columns: slice) -> Float64:
        """Computes and returns a part of A times B in float64: some rows and a range of columns.

        ``rows``: a slice, or row numbers; they count through all matrices of the batch.
        """
        a, b = self.without_layout
        if self.scales:
            of_rows, of_columns = scaled_operands(a[0], b[0], self.scales, rows, columns)
            return of_rows @ of_columns
        if self.offsets:
            numbers = np.arange(a.shape[1])[rows]
            return grouped_part(_wide(a[0, rows]), b[:, :, columns], self.matrices_of(numbers))
        if len(a) == 1:
            return _wide(a[0, rows]) @ _wide(b[0][:, columns])
        # a batch: the matrix and the row in it of each number
        matrices, of_rows = np.divmod(np.arange(len(self.row_norm))[rows], a.shape[1])
        part = np.empty((len(of_rows), len(range(b.shape[2])[columns])))
        for matrix in np.unique(matrices):
            here = matrices == matrix
            part[here] = _wide(a[matrix, of_rows[here]]) @ _wide(b[matrix][:, columns])
        return part

    def matrices_of(self, rows: Array) -> npt.NDArray[np.int64]:
        """Returns which matrix of B multiplies each row; rows count through all matrices of a batch."""
        if self.offsets:
            return groups_of_rows(self.offsets[0], rows)
        return rows // (len(self.row_norm) // len(self.column_norm))

    def rows_of(self, matrix: int) -> slice:
        """Returns the rows of A and C that a matrix of B multiplies."""
        if self.offsets:
            first, end = self.offsets[0][matrix : matrix + 2].tolist()
            return slice(first, end)
        m = len(self.row_norm) // len(self.column_norm)
        return slice(matrix * m, (matrix + 1) * m)

    def factors_of(self, matrix: int) -> tuple[Array, Array]:
        """Returns the rows of A that a matrix of B multiplies, (rows, k), and the matrix, (k, n): views."""
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
        return _wide(of_a[rows, step]), _wide(of_b[columns // SCALED_COLUMNS, step])


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
            tolerance = tolerance + (np.abs(expected) + tolerance) * rounding(self.problem.output)
            tolerance += number_type(self.problem.output).smallest / 2
        can_be_infinite = self.special is not None or bool(self.problem.after_product.steps)
        # where infinity or NaN, or 0 by a ReLU, is expected
        if can_be_infinite and not np.isfinite(tolerance.max(initial=0.0)):
            tolerance[~np.isfinite(tolerance)] = 0.0
        return expected, tolerance

    def _in_matrix(self, matrix: int, rows: slice | Array) -> Array:
        """Returns the number of each row among those that a matrix of B multiplies; -1 for all others."""
        own = self.base.rows_of(matrix)
        numbers = np.arange(self.problem.rows)[rows]
        return np.where((numbers >= own.start) & (numbers < own.stop), numbers - own.start, -1)

    @property
    def _lost_below_normal(self) -> float:
        """Returns what sums may lose: of each product or sum that is subnormal half of the least number."""
        return self.problem.sizes[2] * number_type(self.problem.accumulator).smallest

    def _tolerance_of_sums(
        self, rows: slice | Array, columns: slice, matrices: Array, expected: Float64
    ) -> Float64:
        """Returns the tolerances of sums of products; of integers one 0, broadcast and not to be written."""
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
        """Returns what the epilogue makes of sums of products, and the tolerance of that."""
        epilogue = self.problem.after_product
        n = self.problem.sizes[1]
        elements = {}
        for argument, array in zip(epilogue.arguments, self.extra, strict=True):
            numbers = array
            if argument.axes == "mn":
                numbers = array.reshape(-1, n)[rows]
            if argument.axes:
                numbers = numbers[..., columns]
            elements[argument.name] = _wide(numbers)
        if self.before is not None:
            elements[BEFORE] = _wide(self.before[rows][:, columns])
        dtype = self.problem.accumulator
        sums = number_type(dtype)
        unit = rounding(dtype)
        added = sum_roundings(self.problem.sizes[2]) * unit
        type_ = Arithmetic(ERROR_FACTOR * unit, added, sums.largest, sums.smallest)
        return evaluate(epilogue, BoundedValue(expected, tolerance), elements, type_)

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
        of_a = _wide(a[row, inner]) * self.rows[row + self.base.rows_of(matrix).start] * scale_a
        of_b = _wide(b[inner, column]) * self.columns[matrix, column] * scale_b
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


def rounding(dtype: str) -> float:
    """Returns the unit roundoff of a dtype: the largest relative error of rounding to nearest."""
    return number_type(dtype).epsilon / 2


def sum_rounding(problem: Problem) -> float:
    """Returns the unit roundoff that is assumed for sums of products: the accumulator's; for fp8 2**-14."""
    if problem.dtype in FLOAT8S:
        return FLOAT8_SUM_ROUNDING
    return rounding(problem.accumulator)


def draw_base(problem: Problem, rng: np.random.Generator) -> BaseDraw:
    """Returns random A and B: normal numbers, rounded by ``round_inputs``, or by ``wide_integers``."""
    m, n, k = problem.sizes
    drawn = np.float64 if problem.dtype == "f64" else np.float32  # f32 inputs would hide f64 cut to f32
    a = rng.standard_normal((*problem.lead, m, k), drawn)
    b = rng.standard_normal((problem.b_matrices, k, n), drawn).reshape(*problem.b_shape[:-2], k, n)
    type_ = number_type(problem.dtype)
    if not type_.is_float and type_.bits > BYTE_BITS:
        return base_of(problem, *wide_integers(a, b, problem.dtype, problem.accumulator))
    scales = draw_scales(problem, rng)
    offsets = draw_offsets_of(problem, rng)
    return base_of(problem, round_inputs(a, problem.dtype), round_inputs(b, problem.dtype), scales, offsets)


def draw_offsets_of(problem: Problem, rng: np.random.Generator) -> tuple[Array, ...]:
    """Returns random offsets of a grouped_matmul, whose groups have all rows; () of other operations."""
    if not problem.groups:
        return ()
    return (draw_offsets(problem.groups, problem.rows, rng),)


def draw_scales(problem: Problem, rng: np.random.Generator) -> tuple[Array, ...]:
    """Returns random scales of A and B, positive f32 over SCALE_OCTAVES powers of two; () without them."""
    scales = []
    for argument in problem.scales:
        exponents = rng.uniform(-SCALE_OCTAVES / 2, SCALE_OCTAVES / 2, argument.shape)
        scales.append(np.exp2(exponents).astype(np.float32))
    return tuple(scales)


def scaled_operands(
    a: Array, b: Array, scales: tuple[Array, ...], rows: slice | Array, columns: slice
) -> tuple[Float64, Float64]:
    """Returns rows of A and columns of B times their scales in float64: 4 times 24 bits are not rounded.

    ``a``: (m, k), ``b``: (k, n); ``scales``: (m, k / 128) and (n / 128, k / 128), rounded up.
    """
    of_a, of_b = scales
    k, n = b.shape
    of_columns = of_b[np.arange(n)[columns] // SCALED_COLUMNS]
    of_rows, of_columns = (scale.repeat(SCALED_DEPTH, axis=1)[:, :k] for scale in (of_a[rows], of_columns))
    return _wide(a[rows]) * of_rows, _wide(b[:, columns]) * of_columns.T


def wide_integers(a: Array, b: Array, dtype: str, sums: str) -> tuple[Array, Array]:
    """Rounds normal numbers to integers of more than 8 bits, whose products' sums do not overflow.

    One column of A and one row of B reach the upper half of the type, times a row and a column of small
    numbers; all others are small: sums of magnitudes, times 4 for the factors of ``draw``, stay below the
    largest of the type ``sums``. ``a``: (..., m, k), ``b``: (..., k, n).
    """
    k = a.shape[-1]
    room = number_type(sums).largest / 8  # for small numbers, and as much for large ones
    large = number_type(dtype).largest / 2 - 1
    small = max(1.0, np.floor(min((room / k) ** 0.5, room / (2 * large), large)))
    deviations = 3.0  # of what is drawn, below the largest
    whole = [np.clip(np.rint(numbers * small / deviations), -small, small) for numbers in (a, b)]
    for numbers in whole:
        numbers[numbers == 0] = 1.0  # no product is 0: a missing one shows
    column = whole[0][..., 0]
    row = whole[1][..., -1, :]
    column[...] = np.copysign(large - np.abs(column), column)
    if k > 1:
        row[...] = np.copysign(large - np.abs(row), row)
    return whole[0].astype(DTYPES[dtype]), whole[1].astype(DTYPES[dtype])


def base_of(
    problem: Problem, a: Array, b: Array, scales: tuple[Array, ...] = (), offsets: tuple[Array, ...] = ()
) -> BaseDraw:
    """Returns a ``BaseDraw`` of A and B: both stored in the problem's layout, and their norms.

    ``a``: (m, k), ``b``: (k, n); with the batch in front for a batch_matmul, of a grouped_matmul with the
    groups in front of B. ``scales``: of A and B, if any; ``offsets``: of groups, if any.
    """
    wide_a = _wide(a)
    wide_b = _wide(b)
    if scales:
        wide_a, wide_b = scaled_operands(a, b, scales, slice(None), slice(None))
    return BaseDraw(
        np.ascontiguousarray(a.swapaxes(-1, -2)) if problem.layout == "tn" else a,
        np.ascontiguousarray(b.swapaxes(-1, -2)) if problem.layout == "nt" else b,
        problem.layout,
        np.linalg.norm(wide_a, axis=-1).reshape(-1),
        np.linalg.norm(wide_b, axis=-2).reshape(problem.b_matrices, -1),
        scales,
        offsets,
    )


def draw(
    problem: Problem, base: BaseDraw, rng: np.random.Generator, into: tuple[Array, Array] | None = None
) -> Inputs:
    """Returns inputs made from ``base``: its rows of A and columns of B times random factors.

    Arguments of the epilogue are drawn anew. ``into``: arrays that A and B are written to, of the shapes and
    types in ``base``; None: new ones.
    """
    factors = FACTORS if number_type(problem.dtype).is_float else INTEGER_FACTORS
    rows = rng.choice(factors, problem.rows)
    columns = rng.choice(factors, (problem.b_matrices, problem.sizes[1]))
    a, b = _scaled(problem, base, rows, columns, into)
    extra = draw_extra(problem, rng)
    return Inputs(problem, base, a, b, extra, rows, columns, before=draw_before(problem, rng))


def draw_extra(problem: Problem, rng: np.random.Generator) -> tuple[Array, ...]:
    """Returns random arguments of the epilogue, such as a bias, in C's type; () if it has none."""
    return tuple(_like_a_result(problem, argument.shape, rng) for argument in problem.extra_arguments)


def draw_before(problem: Problem, rng: np.random.Generator) -> Array | None:
    """Returns what C, (rows, n), holds before a call; None where no kernel may read it."""
    if not problem.after_product.reads_output:
        return None
    return _like_a_result(problem, (problem.rows, problem.sizes[1]), rng)


def _like_a_result(problem: Problem, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    numbers = np.asarray(rng.standard_normal(shape))
    if problem.result_dtype == "i32":
        numbers = np.rint(numbers * INTEGER_DEVIATION**2)
    return as_stored(numbers, problem.result_dtype)


def negated(inputs: Inputs, into: tuple[Array, Array]) -> Inputs:
    """Returns inputs with -A and -B, written into the arrays ``into``: the expected C stays the same.

    ``inputs.flip`` and ``inputs.special`` are not kept.
    """
    rows = -inputs.rows
    columns = -inputs.columns
    a, b = _scaled(inputs.problem, inputs.base, rows, columns, into)
    return replace(inputs, a=a, b=b, rows=rows, columns=columns, flip=None, special=None)


def with_special_numbers(inputs: Inputs, rng: np.random.Generator) -> Inputs:
    """Returns inputs with NaN, infinity, unit vectors or extreme bytes, where their types have them.

    A and B are changed in place. The arguments of the epilogue, which get numbers of any size and from FEW
    (4) columns on NaN and infinity, and what C then is are in the returned inputs only.
    """
    problem = inputs.problem
    n = inputs.problem.sizes[1]
    inputs = with_special_bias(inputs, rng, 0 if n < FEW else min(len(BIAS_KINDS), n // 2))
    stored = replace(inputs.base, a=inputs.a, b=inputs.b)
    if problem.dtype == "i8":
        m = problem.sizes[0]
        of_rows, of_columns = inputs.base.sums
        sums = of_rows * inputs.rows.reshape(-1, m), of_columns * inputs.columns.reshape(-1, n)
        return replace(inputs, special=put_extreme_bytes(*stored.without_layout, sums, rng))
    if problem.dtype not in SPECIAL_DTYPES:
        return inputs
    special = as_stored(np.array(SPECIAL, np.float32), problem.dtype)
    if problem.groups:
        return replace(inputs, special=_put_into_group(stored, special, rng))
    return replace(inputs, special=put_special_numbers(*stored.without_layout, special, rng))


def _put_into_group(stored: BaseDraw, special: Array, rng: np.random.Generator) -> SpecialNumbers:
    """Puts special numbers into the rows of a group that has some, and into its matrix, in place."""
    group = int(rng.choice(np.flatnonzero(np.diff(stored.offsets[0]))))
    a, b = stored.factors_of(group)
    return replace(put_special_numbers(a[None], b[None], special, rng), matrix=group)


def has_narrow_bias(problem: Problem) -> bool:
    """Returns whether the epilogue has an argument and C fewer than FEW (4) columns.

    NaN in so small an argument would hide errors in A and B.
    """
    return bool(problem.extra_arguments) and problem.sizes[1] < FEW


def with_special_bias(inputs: Inputs, rng: np.random.Generator, kinds: int = len(BIAS_KINDS)) -> Inputs:
    """Returns inputs with special numbers in the epilogue's arguments: half of them are of any magnitude.

    ``kinds`` elements are replaced by the first of BIAS_KINDS, NaN, infinities and zeros; no element of an
    argument that is one number, since NaN there would hide all of C.
    """
    dtype = inputs.problem.result_dtype
    extra = []
    for argument, array in zip(inputs.problem.after_product.arguments, inputs.extra, strict=True):
        hidden = kinds if argument.axes else 0  # NaN in place of one number would hide all of C
        numbers = special_bias(array.reshape(-1), dtype, hidden, rng)
        extra.append(as_stored(numbers.reshape(array.shape), dtype))
    return replace(inputs, extra=tuple(extra))


def compare(inputs: Inputs, result: Array) -> tuple[Verdict, str]:
    """Compares all of ``result``, a kernel's C, with the expected values; NaN and infinity must agree too.

    Returns the verdict, whose error is in units of the tolerance, and a text that names the worst element.
    """
    return compare_rows(inputs, result, 0, inputs.problem.rows)


def compare_rows(inputs: Inputs, result: Array, first: int, end: int) -> tuple[Verdict, str]:
    """Compares rows ``first`` to ``end`` (exclusive) of ``result``, a kernel's C; many on several threads.

    Returns the verdict, whose error is in units of the tolerance, and a text that names the worst element.
    """
    n = inputs.base.product.shape[1]  # the product is there before threads ask for it
    step = max(1, BLOCK_ELEMENTS // n)
    elements = (end - first) * n

    def compared(part: slice) -> list[tuple[float, int, int, float, int]]:
        """Returns each block's worst error, its place, what was expected there, and the number of errors."""
        blocks = []
        for start in range(first + part.start, first + part.stop, step):
            stop = min(start + step, first + part.stop)
            expected, tolerance = inputs.block(start, stop)
            error = _in_tolerances(result[start:stop], expected, tolerance)
            row, column = divmod(int(np.argmax(error)), n)
            worst = float(error[row, column])
            wanted = float(expected[row, column])
            wrong = int(np.count_nonzero(error > 1.0)) if worst > 1.0 else 0
            blocks.append((worst, start + row, column, wanted, wrong))
        return blocks

    blocks = [*itertools.chain(*_by_rows(end - first, elements, compared))]
    worst, row, column, wanted, _ = max(blocks, key=lambda block: block[0])  # of equal ones the first
    found = widened(result[row : row + 1])[0, column]
    wrong = sum(block[-1] for block in blocks)
    text = f"worst at [{row}, {column}]: found {found:.9g}, expected {wanted:.9g}"
    return Verdict(worst, elements), f"{wrong} of {elements} elements are wrong; {text}"


def changed_inputs(inputs: Inputs, arrays: tuple[Array, ...]) -> str:
    """Returns which of the input ``arrays`` a kernel changed, such as "A and bias"; "" for none.

    A and B are compared as drawn: without ``inputs.flip`` and ``inputs.special``.
    """
    fresh = (
        *_scaled(inputs.problem, inputs.base, inputs.rows, inputs.columns, None),
        *inputs.base.scales,
        *inputs.base.offsets,
        *inputs.extra,
    )
    extra = (*inputs.problem.scales, *inputs.problem.offsets, *inputs.problem.extra_arguments)
    names = ("A", "B", *(argument.name for argument in extra))
    named = zip(names, fresh, arrays, strict=True)
    return " and ".join(name for name, was, now in named if not are_equal(was, now))


def compare_tile(
    inputs: Inputs, result: Array, rows: slice | Array, columns: slice, elements: str = "elements"
) -> tuple[Verdict, str]:
    """Compares a part of ``result``, a kernel's C; computes only the expected values of this part.

    ``rows``: a slice, or row numbers; ``elements``: the word for elements in the text. Returns the verdict
    and a text that names the worst element.
    """
    expected, tolerance = inputs.tile(rows, columns)
    found = widened(result[rows, columns])
    error = _in_tolerances(result[rows, columns], expected, tolerance)
    wrong = int(np.count_nonzero(error > 1.0))
    row, column = np.unravel_index(int(np.argmax(error)), error.shape)
    place = f"[{np.arange(len(result))[rows][row]}, {columns.start + column}]"
    text = f"worst at {place}: found {found[row, column]:.9g}, expected {expected[row, column]:.9g}"
    verdict = Verdict(float(error[row, column]), error.size)
    return verdict, f"{wrong} of {error.size} {elements} are wrong; {text}"


def compare_parts(
    inputs: Inputs, result: Array, parts: Iterable[tuple[slice | Array, slice]], note: str
) -> Verdict:
    """Compares parts of C, each given by rows and columns; returns a verdict of all with ``note``.

    Raises CandidateError(VERIFY) for the first part with a wrong element.
    """
    verdicts = []
    for rows, columns in parts:
        verdict, worst = compare_tile(inputs, result, rows, columns)
        if not verdict.max_error <= 1.0:
            raise CandidateError(Stage.VERIFY, worst)
        verdicts.append(verdict)
    largest = max(verdict.max_error for verdict in verdicts)
    return Verdict(largest, sum(verdict.elements for verdict in verdicts), (note,))


def _in_tolerances(found: Array, expected: Float64, tolerance: Float64) -> Float64:
    """Returns errors in units of their tolerances; infinite for NaN and infinity that are not expected.

    ``tolerance`` is overwritten, unless it is one 0, broadcast, as of integers.
    """
    if not tolerance.flags.writeable:
        return np.where(found == expected, 0.0, np.inf)
    wide = _wide(found)
    np.maximum(tolerance, TINY, out=tolerance)
    with np.errstate(over="ignore", invalid="ignore"):  # the difference of infinities
        error: Float64 = wide - expected
        np.abs(error, out=error)
        error /= tolerance
    if not np.isfinite(error.max(initial=0.0)):
        is_number = np.isfinite(error)
        given = wide[~is_number]
        wanted = expected[~is_number]
        is_right = (given == wanted) | (np.isnan(given) & np.isnan(wanted))
        if found.dtype == F16:  # sums in f32 may be too large for it
            is_right |= (given == np.copysign(np.inf, wanted)) & (
                np.abs(wanted) + tolerance[~is_number] >= F16_OVERFLOW
            )
        error[~is_number] = np.where(is_right, 0.0, np.inf)
    return error


def _by_rows(rows: int, elements: int, work: Callable[[slice], Result]) -> list[Result]:
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


def round_inputs(numbers: Array, dtype: str) -> Array:
    """Rounds numbers to a dtype so that their products with the factors of ``draw`` are exact.

    The factors are +-0.5, +-1 and +-2. Integers, whose factors are whole, are first scaled by 21 and limited
    to -63 to 63, and 0 becomes 1.
    """
    if not number_type(dtype).is_float:
        whole = np.clip(np.rint(numbers * INTEGER_DEVIATION), -INTEGER_LARGEST, INTEGER_LARGEST)
        whole[whole == 0] = 1.0  # no product is 0: a missing one shows
        return as_stored(whole, dtype)
    match dtype:
        case "f16":  # halves of the smallest numbers are not exact: drop the last bits
            return (np.round(numbers * F16_STEPS) / F16_STEPS).astype(np.float16)
        case "e4m3" | "e5m2":  # for the same reason
            steps = FLOAT8_STEPS[dtype]
            return as_stored(np.round(numbers * steps) / steps, dtype)
        case "tf32":
            bits = numbers.view(np.uint32)
            odd = bits >> TF32_DROPPED_BITS & 1  # to the nearest, ties to even
            rounded = bits + (1 << TF32_DROPPED_BITS - 1) - 1 + odd
            return (rounded >> TF32_DROPPED_BITS << TF32_DROPPED_BITS).astype(np.uint32).view(np.float32)
        case _:
            return as_stored(numbers, dtype)


def as_stored(numbers: Array, dtype: str) -> Array:
    """Returns numbers converted to the numpy type of a dtype; NaN may be lost for bf16.

    Raises UsageError if the dtype needs the package ml_dtypes and it is not installed.
    """
    if dtype not in NUMPY_DTYPES:
        raise UsageError(
            f"dtype: {dtype} needs the package ml_dtypes, which is missing", "pip install ml_dtypes"
        )
    if dtype == "bf16":
        return narrowed(numbers)
    return numbers.astype(NUMPY_DTYPES[dtype])


def _scaled(
    problem: Problem, base: BaseDraw, rows: Float64, columns: Float64, into: tuple[Array, Array] | None
) -> tuple[Array, Array]:
    a, b = into or (np.empty_like(base.a), np.empty_like(base.b))
    m, n, _ = problem.sizes
    of_a = as_stored(rows, problem.stored_dtype).reshape(*problem.lead, m)
    of_b = as_stored(columns, problem.stored_dtype).reshape(*problem.b_shape[:-2], n)
    # one factor per row of A and per column of B, along the other axis as the matrices are stored
    of_a = of_a[..., None, :] if problem.layout == "tn" else of_a[..., None]
    of_b = of_b[..., None] if problem.layout == "nt" else of_b[..., None, :]
    if base.a.dtype == BF16:
        scale(base.a, of_a, a, base.hard_to_scale[0])
        scale(base.b, of_b, b, base.hard_to_scale[1])
    else:
        for array, factors, out in ((base.a, of_a, a), (base.b, of_b, b)):
            _multiply(array, np.broadcast_to(factors, array.shape), out)
    return a, b


def _multiply(array: Array, factors: Array, out: Array) -> None:
    def scale_rows(part: slice) -> None:
        np.multiply(array[..., part, :], factors[..., part, :], out=out[..., part, :])

    _by_rows(array.shape[-2], array.size, scale_rows)


def _flip_change(numbers: Float64, dtype: np.dtype[Any]) -> Float64:
    if dtype.kind == "i":
        top_bit = 2.0 ** (8 * dtype.itemsize - 1)
        return np.where(numbers < 0, top_bit, -top_bit)
    return -2 * numbers


def _wide(numbers: Array) -> Float64:
    return widened(numbers).astype(np.float64)


def compare_sampled(inputs: Inputs, result: Array) -> tuple[Verdict, str]:
    """Compares all of ``result``, a kernel's C, or 256 of its rows if the problem has more than 2**40 flop.

    Of the rows that are not compared, all elements must be finite: C is filled with NaN before, so that
    unwritten elements show. Returns the verdict and a text that names the worst element.
    """
    if inputs.problem.flop <= WHOLE_FLOP:
        return compare(inputs, result)
    m = inputs.problem.rows
    n = inputs.problem.sizes[1]
    unwritten = not_finite(result)
    if unwritten:
        return Verdict(np.inf, m * n), f"{unwritten} of {m * n} elements are NaN or infinite"
    rows = np.array(sampled_rows(m))
    verdict, text = compare_tile(inputs, result, rows, slice(0, n), "elements looked at")
    return replace(verdict, notes=(f"{len(rows)} of {m} rows compared, all elements finite",)), text


def sampled_rows(m: int) -> tuple[int, ...]:
    """Returns at most 256 row numbers below ``m``: the first, the last, and irregular ones between."""
    parts = min(SAMPLED_ROWS, m)
    bounds = [part * m // parts for part in range(parts + 1)]
    inner = [
        low + int(part * GOLDEN % 1 * (high - low))
        for part, (low, high) in enumerate(itertools.pairwise(bounds))
    ]
    return tuple(dict.fromkeys((0, *inner[1:-1], m - 1)))


def not_finite(result: Array) -> int:
    """Returns how many elements are NaN or infinite; of signed integers, how many are the smallest number.

    An infinity in f16 counts as a number: a sum may be too large for f16.
    """
    step = max(1, 2**20 // max(result.shape[1], 1))
    parts = (result[start : start + step] for start in range(0, len(result), step))
    if result.dtype == F16:
        return sum(int(np.count_nonzero(np.isnan(part))) for part in parts)
    return sum(int(np.count_nonzero(is_nan(part) | np.isinf(widened(part)))) for part in parts)
