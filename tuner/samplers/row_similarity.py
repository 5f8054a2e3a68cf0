"""Kernel density of an observed configuration at every other configuration."""

import numpy as np
import numpy.typing as npt

from tuner.samplers.row_table import Codes, Column, RowTable

WIDTH = 1.2  # decay per rank of an ordered knob, and for two different texts; 1.8 does as well
STRATEGY_WIDTH = 3.6  # decay between strategies: rows of another strategy tell little
PRIOR = 1 << 10  # the uniform density in units of the fixed-point scale
PEAK_LIMIT = 1 << 36  # times the prior; sums of 2**17 such peaks still fit 64 bits


class RowSimilarity:
    """The kernel density that an observed configuration adds at every configuration of a table.

    A product of one kernel per column, relative to the uniform density, in fixed point: integers add up to
    the same sum in any order, so a resumed search gets the same densities to the last bit. A knob that only
    one of two configurations has contributes the factor 1.
    """

    def __init__(self, table: RowTable) -> None:
        self._tables = [_table(column) for column in table.columns]
        self._codes = [np.ascontiguousarray(table.codes[:, place]) for place in range(len(table.columns))]
        self._rows = len(table.codes)

    def around(self, codes: Codes) -> npt.NDArray[np.int64]:
        """Returns the density around the observation ``codes``, at each configuration of the table.

        ``codes`` are the observation's codes by column. In the result PRIOR stands for the uniform density.
        """
        density = np.ones(self._rows)
        for table, column, code in zip(self._tables, self._codes, codes.tolist(), strict=True):
            density *= table[code].take(column, mode="wrap")
        scaled: npt.NDArray[np.int64] = np.rint(np.minimum(density, PEAK_LIMIT) * PRIOR).astype(np.int64)
        return scaled


def _table(column: Column) -> npt.NDArray[np.float64]:
    """Returns (seen, other) -> density relative to uniform; the last row and column: the knob is missing."""
    levels = column.levels
    ranks = np.arange(levels)
    distance = np.abs(ranks[:, None] - ranks) if column.is_ordinal else ranks[:, None] != ranks
    density = np.exp(-(STRATEGY_WIDTH if column.is_strategy else WIDTH) * distance)
    table = np.ones((levels + 1, levels + 1))
    table[:levels, :levels] = levels * density / density.sum(axis=1, keepdims=True)
    return table
