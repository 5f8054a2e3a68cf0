"""How much a row that was tried says about every other row."""

import numpy as np
import numpy.typing as npt

from tuner.feasible import Matrix

WIDTH = 1.2  # decay per rank of an ordered knob, and for two different texts; tuned on shared GEMM spaces
STRATEGY_WIDTH = 3.6  # decay between strategies: rows of another one say little
PRIOR = 1 << 10  # the uniform density in units of the fixed-point scale
PEAK_LIMIT = 1 << 36  # times the prior; sums of 2**17 such peaks still fit 64 bits


class Kernel:
    """A product over the columns, as density relative to the uniform one, in fixed point.

    Integers add up to the same sum in any order, so a search that is resumed sees the same densities to the
    last bit. A knob that one of two rows lacks says nothing: its factor is 1.
    """

    def __init__(self, matrix: Matrix) -> None:
        self._tables: list[npt.NDArray[np.float64]] = []
        self._codes: list[npt.NDArray[np.uint16]] = []
        for place, (levels, is_ordinal) in enumerate(zip(matrix.levels, matrix.is_ordinal, strict=True)):
            if levels == 1:
                continue
            width = STRATEGY_WIDTH if place == 0 else WIDTH
            self._tables.append(_table(levels, is_ordinal, width))
            column = matrix.rows[:, place]
            self._codes.append(np.where(column < 0, levels, column).astype(np.uint16))
        self._rows = len(matrix.rows)

    def around(self, row: int) -> npt.NDArray[np.int64]:
        """Returns the density at every row that an observation of one row gives, in units of PRIOR."""
        density = np.ones(self._rows)
        for table, codes in zip(self._tables, self._codes, strict=True):
            density *= table[codes[row]].take(codes)
        scaled: npt.NDArray[np.int64] = np.rint(np.minimum(density, PEAK_LIMIT) * PRIOR).astype(np.int64)
        return scaled


def _table(levels: int, is_ordinal: bool, width: float) -> npt.NDArray[np.float64]:
    """Returns (seen, other) -> density relative to uniform; the last row and column: knob is missing."""
    ranks = np.arange(levels)
    distance = np.abs(ranks[:, None] - ranks) if is_ordinal else ranks[:, None] != ranks
    density = np.exp(-width * distance)
    table = np.ones((levels + 1, levels + 1))
    table[:levels, :levels] = levels * density / density.sum(axis=1, keepdims=True)
    return table
