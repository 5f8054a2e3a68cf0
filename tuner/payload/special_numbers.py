"""NaN, infinity and unit vectors among usual inputs: what usual draws do not show, in a few rows and columns.

The result of the rows and columns with them follows without a product, so a draw with them costs what
another one does. They find kernels that

- leave out products with zeros, and so lose 0 * NaN and 0 * infinity: a NaN in B meets a zero of A, and
  infinity in A a zero of B;
- read A or B with fewer bits, which rounding hides where many products are added up: the product with a unit
  vector is a row of B or a column of A, to the last bit.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.payload.bf16 import widened

Array = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]
DTYPES = ("f32", "f64", "bf16")  # that have infinity, and one rounding of a single product at most
FEW = 4  # rows or columns: of fewer, none is given up where the other dimension has as many
SPECIAL = (0.0, 1.0, np.inf, np.nan)  # as ``put_special_numbers`` takes them, in the type of A and B


@dataclass(frozen=True, eq=False)
class SpecialNumbers:
    """The results of rows and columns of one matrix of C with special numbers in A or B.

    They are in the order in which they count; the last one counts: a row with infinity and a column with NaN
    meet in a NaN.
    """

    matrix: int  # of a batch
    less_rows: tuple[tuple[int, Float64], ...] = ()  # (row, what a zero in A takes from it, (n,))
    less_columns: tuple[tuple[int, Float64], ...] = ()  # (column, what a zero in B takes from it, (m,))
    columns: tuple[tuple[int, Float64], ...] = ()  # (column, expected values, (m,))
    rows: tuple[tuple[int, Float64], ...] = ()  # (row, expected values, (n,))
    nan_columns: tuple[int, ...] = ()

    def put(
        self, expected: Float64, tolerance: Float64, rows: Array, columns: Array, m: int, unit: float
    ) -> None:
        """Puts what is expected of some rows and columns of C, and its tolerance, into arrays, in place.

        ``rows`` and ``columns``: the numbers of those of ``expected``, rows through all matrices; ``m``: rows
        of one matrix. ``unit``: relative error of an element with one product, all others of which are 0.
        """
        rows = np.where(rows // m == self.matrix, rows % m, -1)  # in this matrix
        here = np.flatnonzero(rows >= 0)
        for row, values in self.less_rows:
            expected[rows == row] -= values[columns]
        for column, values in self.less_columns:
            at = np.flatnonzero(columns == column)
            expected[here[:, None], at] -= values[rows[here], None]
        for column, values in self.columns:
            at = np.flatnonzero(columns == column)
            expected[here[:, None], at] = values[rows[here], None]
            tolerance[here[:, None], at] = unit * np.abs(values[rows[here], None])
        for row, values in self.rows:
            expected[rows == row] = values[columns]
            tolerance[rows == row] = unit * np.abs(values[columns])
        for column in self.nan_columns:
            expected[here[:, None], np.flatnonzero(columns == column)] = np.nan


def put_special_numbers(a: Array, b: Array, special: Array, rng: np.random.Generator) -> SpecialNumbers:
    """Puts special numbers into one matrix of A and of B, in place; returns what is expected of C.

    ``a`` and ``b``: views (batch, m, k) and (batch, k, n); ``special``: SPECIAL in their type. A has a row
    with one number, a unit vector, and one with infinity; B has a column with NaN and a unit vector. Of fewer
    than FEW (4) rows or columns none is given up: a zero among them meets the NaN or the infinity.
    """
    zero, one, infinity, nan = special
    matrix = int(rng.integers(len(a)))
    a, b = a[matrix], b[matrix]
    (m, k), n = a.shape, b.shape[1]
    rows = rng.permutation(m)[: 2 if m >= FEW or n < FEW else 0]
    columns = rng.permutation(n)[: 2 if n >= FEW or m < FEW else 0]
    of_nan, of_column, *of_rows = rng.integers(k, size=4)
    less_rows, less_columns = [], []
    if not len(rows):
        row = int(rng.integers(m))
        less_rows.append((row, _wide(a[row, of_nan : of_nan + 1]) * _wide(b[of_nan])))
        a[row, of_nan] = zero
    if not len(columns):
        column, of_infinity = int(rng.integers(n)), of_rows[-1]
        less_columns.append((column, _wide(a[:, of_infinity]) * _wide(b[of_infinity, column : column + 1])))
        b[of_infinity, column] = zero
    b[of_nan, columns[:1]] = nan
    b[:, columns[1:]] = zero
    b[of_column, columns[1:]] = one
    a[rows[:1]] = zero
    a[rows[:1], of_rows[0]] = one
    a[rows[1:], of_rows[1]] = infinity
    with np.errstate(invalid="ignore"):  # infinity times 0
        return SpecialNumbers(
            matrix,
            tuple(less_rows),
            tuple(less_columns),
            tuple((int(each), _wide(a[:, of_column])) for each in columns[1:]),
            tuple(
                (int(row), _wide(b[at]) * _wide(a[row, at : at + 1]))
                for row, at in zip(rows, of_rows, strict=False)
            ),
            tuple(int(each) for each in columns[:1]),
        )


def _wide(numbers: Array) -> Float64:
    return widened(np.ascontiguousarray(numbers)).astype(np.float64)
