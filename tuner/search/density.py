"""Kernel densities of configurations: of the fastest ones, of all other proposed ones, and their ratio."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tuner.search.configurations import Codes, Column, Floats, RowTable, Scope
from tuner.search.task import SearchTask

WIDTH = 1.2  # decay of a kernel per rank of an ordered knob, or for another text; 1.8 works as well
STRATEGY_WIDTH = 3.6  # decay between strategies: rows of another strategy tell little
PRIOR = 1 << 10  # the uniform density in units of the fixed-point scale
PEAK_LIMIT = 1 << 36  # times the prior; sums of 2**16 such peaks fit 64 bits


class KernelDensityTable:
    """Kernel densities around observed configurations, at every configuration of a table.

    A product over columns, rounded to integers: sums are equal in any order, so a resumed search is exact.
    """

    def __init__(self, table: RowTable) -> None:
        self._tables = [_table(column) for column in table.columns]
        self._codes = [np.ascontiguousarray(table.codes[:, place]) for place in range(len(table.columns))]
        self._rows = len(table.codes)

    def around(self, codes: Codes) -> npt.NDArray[np.int64]:
        """Returns the kernel density of ``codes`` (one per column) at each row of the table, (rows,).

        In fixed point: PRIOR (1024) stands for the uniform density.
        """
        density = np.ones(self._rows)
        for table, column, code in zip(self._tables, self._codes, codes.tolist(), strict=True):
            density *= table[code].take(column, mode="wrap")
        scaled: npt.NDArray[np.int64] = np.rint(np.minimum(density, PEAK_LIMIT) * PRIOR).astype(np.int64)
        return scaled


def _table(column: Column) -> npt.NDArray[np.float64]:
    """Returns [seen, other]: density relative to uniform; the last row and column: the knob is missing."""
    levels = column.levels
    ranks = np.arange(levels)
    distance = np.abs(ranks[:, None] - ranks) if column.is_ordinal else ranks[:, None] != ranks
    density = np.exp(-(STRATEGY_WIDTH if column.is_strategy else WIDTH) * distance)
    table = np.ones((levels + 1, levels + 1))
    table[:levels, :levels] = levels * density / density.sum(axis=1, keepdims=True)
    return table


# The ratio of two kernel densities: of the fastest configurations, and of all other proposed ones.
# Bergstra et al., 2011, https://papers.nips.cc/paper/4443; here the densities are joint over all knobs and
# the ratio is computed at all rows of a scope instead of a few samples, so that constraints need no extra
# work.

GOOD_SHARE = 0.15  # share of the rows with an outcome, the fastest, that make up the good density
GOOD_MIN = 2


class Densities:
    """Kernel densities of the fastest configurations, and of all others, pending and failed ones too."""

    def __init__(self, task: SearchTask) -> None:
        self._task = task
        self._whole: _Pair | None = None

    def log_gain(self, scope: Scope) -> Floats:
        """Returns for each configuration of a scope a score that grows with its expected improvement.

        -log(s + (1 - s) / r): s is the share of the fastest rows, r the ratio of the two densities.
        """
        proposed = self._task.pool.proposed
        count = max(GOOD_MIN, math.ceil(GOOD_SHARE * len(self._task.pool.outcomes)))
        good = set(self._task.pool.fastest()[:count])
        if not scope.is_whole:
            pair = _Pair(self._task, scope)
        else:  # updated from call to call
            pair = self._whole = self._whole or _Pair(self._task, scope)
        ratio = pair.ratio(good, proposed - good)
        share = len(good) / max(1, len(proposed))
        # equation 6 of the paper: expected improvement is proportional to this
        return np.log(1 / (share + (1 - share) / ratio)).astype(np.float32)


class _Pair:
    def __init__(self, task: SearchTask, scope: Scope) -> None:
        self._similarity = KernelDensityTable(scope.table)
        self._task = task
        self._good = _Density(len(scope.rows))
        self._other = _Density(len(scope.rows))

    def ratio(self, good: set[int], other: set[int]) -> npt.NDArray[np.float64]:
        for density, rows in ((self._good, good), (self._other, other)):
            density.set_rows(rows, self._around)
        ratio: npt.NDArray[np.float64] = (self._good.sum + PRIOR) / (self._other.sum + PRIOR)
        return ratio

    def _around(self, row: int) -> npt.NDArray[np.int64]:
        return self._similarity.around(self._task.table.codes[row])


class _Density:
    def __init__(self, rows: int) -> None:
        self.sum: npt.NDArray[np.int64] = np.zeros(rows, np.int64)
        self._members: set[int] = set()

    def set_rows(self, rows: set[int], around: Callable[[int], npt.NDArray[np.int64]]) -> None:
        for row in rows - self._members:
            self.sum += around(row)
        for row in self._members - rows:
            self.sum -= around(row)
        self._members = set(rows)
