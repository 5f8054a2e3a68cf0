"""The ratio of two kernel densities: of the fastest configurations, and of all other proposed ones.

Bergstra et al., 2011, https://papers.nips.cc/paper/4443; here the densities are joint over all knobs and the
ratio is computed at all rows of a scope instead of a few samples, so that constraints need no extra work.
"""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tuner.samplers.considered_rows import Scope
from tuner.samplers.row_similarity import PRIOR, RowSimilarity
from tuner.samplers.row_table import Floats
from tuner.samplers.task import SearchTask

GOOD_SHARE = 0.15  # share of the rows with an outcome, the fastest, that make up the good density
GOOD_MIN = 2


class Densities:
    """Kernel density estimates of the fastest configurations, and of all other proposed configurations.

    Pending configurations and failures count among the others, which spreads proposals.
    """

    def __init__(self, task: SearchTask) -> None:
        self._task = task
        self._whole: _Pair | None = None

    def log_gain(self, scope: Scope) -> Floats:
        """Returns for each configuration of a scope a score that grows with its expected improvement.

        It is -log(s + (1 - s) / r): s is the share of the fastest configurations among those proposed, r the
        ratio of the two sums of kernels, each with the uniform density added once, and not divided by their
        numbers of configurations.
        """
        proposed = self._task.pool.proposed
        good = self._good_rows()
        ratio = self._of(scope).ratio(good, proposed - good)
        share = len(good) / max(1, len(proposed))
        # equation 6 of the paper: expected improvement is proportional to this
        return np.log(1 / (share + (1 - share) / ratio)).astype(np.float32)

    def _of(self, scope: Scope) -> "_Pair":
        """Returns the densities over a scope; updated incrementally while the scope is all rows."""
        if not scope.is_whole:
            return _Pair(self._task, scope)
        if self._whole is None:
            self._whole = _Pair(self._task, scope)
        return self._whole

    def _good_rows(self) -> set[int]:
        """Returns the fastest rows.

        Equal times are ordered by row, so that the order of outcomes has no effect.
        """
        count = max(GOOD_MIN, math.ceil(GOOD_SHARE * len(self._task.pool.outcomes)))
        return set(self._task.pool.fastest()[:count])


class _Pair:
    """The densities of the good rows and of the other rows."""

    def __init__(self, task: SearchTask, scope: Scope) -> None:
        self._similarity = RowSimilarity(scope.table)
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
    """The sum of the kernels of a set of rows, updated as rows come and go."""

    def __init__(self, rows: int) -> None:
        self.sum: npt.NDArray[np.int64] = np.zeros(rows, np.int64)
        self._members: set[int] = set()

    def set_rows(self, rows: set[int], around: Callable[[int], npt.NDArray[np.int64]]) -> None:
        for row in rows - self._members:
            self.sum += around(row)
        for row in self._members - rows:
            self.sum -= around(row)
        self._members = set(rows)
