"""A Gaussian process over the rows: mean and standard deviation of the standardized log time of each row.

Rasmussen and Williams, 2006, http://gaussianprocess.org/gpml, algorithm 2.1.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.samplers.considered_rows import Scope
from tuner.samplers.gp_widths import SCALE_COUNT, Array, Widths, correlation
from tuner.samplers.row_table import Codes, Floats, RowTable

GROUP_LIMIT = 256  # largest number of combinations of a group of columns
BLOCK = 16  # observed rows per block of the Cholesky factor


@dataclass(frozen=True, eq=False)
class _Group:
    """Several columns, with the index of each row's combination of their values."""

    places: tuple[int, ...]
    codes: npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class _Taken:
    """Observed rows that are part of the Cholesky factor already."""

    rows: list[int]
    inverse: Array  # of the Cholesky factor, (observations, observations)
    known: Floats  # by row of the scope: the share of the variance that the observations explain


class GaussianProcess:
    """A Gaussian process that predicts the standardized log time of each configuration of one scope.

    Observed configurations are added to the Cholesky factor in blocks, which are kept, so that one more
    observation is cheap. The last, incomplete block is computed anew: a result depends on the observations
    alone, not on earlier calls, to the last bit.
    """

    def __init__(self, scope: Scope, widths: Widths) -> None:
        self._table = scope.table
        self._widths = widths
        self._groups = _groups(scope.table)
        self._pairs = [  # by column: weighted squared distance of each two codes
            weight * np.stack([column.squares(code) for code in (*range(column.levels), -1)])
            for column, weight in zip(scope.table.columns, widths.weights.tolist(), strict=True)
        ]
        rows = len(scope.rows)
        self._spread = np.empty((0, rows), np.float32)  # whitened correlations with the scope, by observation
        self._taken = [_Taken([], np.empty((0, 0)), np.zeros(rows, np.float32))]

    def posterior(
        self, rows: list[int], seen: RowTable, values: npt.NDArray[np.float64]
    ) -> tuple[Floats, Floats]:
        """Returns (mean, standard deviation) for each configuration of the scope, given observations.

        ``rows`` are the indices of the observed configurations in the feasible set, ``seen`` their table,
        ``values`` their standardized values.
        """
        while self._taken[-1].rows != rows[: len(self._taken[-1].rows)]:
            self._taken.pop()
        self._reserve(len(rows))
        last = self._taken[-1]
        for start in range(len(last.rows), len(rows), BLOCK):
            last = self._take_in(last, rows[: start + BLOCK], seen.codes[: start + BLOCK])
            if len(last.rows) == start + BLOCK:
                self._taken.append(last)
        whitened = last.inverse @ values
        variance = (whitened @ whitened + SCALE_COUNT) / (len(rows) + SCALE_COUNT)
        deviation = np.sqrt(np.maximum(1 - last.known, np.float32(1e-8)) * np.float32(variance))
        return whitened.astype(np.float32) @ self._spread[: len(rows)], deviation

    def _reserve(self, count: int) -> None:
        if count > len(self._spread):
            grown = np.empty((count + count // 2, self._spread.shape[1]), np.float32)
            grown[: len(self._spread)] = self._spread
            self._spread = grown

    def _take_in(self, before: _Taken, rows: list[int], codes: Codes) -> _Taken:
        """Returns the Cholesky factor extended by the rows after those of ``before``: block-wise Cholesky."""
        start, count = len(before.rows), len(rows)
        covariance = self._covariance(codes[start:], codes)
        cross = covariance[:, :start] @ before.inverse.T
        own = np.linalg.inv(np.linalg.cholesky(covariance[:, start:] - cross @ cross.T))
        inverse = np.zeros((count, count))
        inverse[:start, :start] = before.inverse
        inverse[start:, :start] = -own @ (cross @ before.inverse)
        inverse[start:, start:] = own
        across = np.stack([correlation(self._squares(code)) for code in codes[start:]])
        across -= cross.astype(np.float32) @ self._spread[:start]
        spread = own.astype(np.float32) @ across
        self._spread[start:count] = spread
        return _Taken(list(rows), inverse, before.known + np.einsum("ij,ij->j", spread, spread))

    def _covariance(self, codes: Codes, others: Codes) -> Array:
        """Returns the covariances of the last of the observed rows ``others`` with all of ``others``."""
        squares = np.zeros((len(codes), len(others)))
        for place, pairs in enumerate(self._pairs):
            squares += pairs[codes[:, place, None], others[:, place]]
        covariance = correlation(squares).astype(np.float64)
        covariance[:, len(others) - len(codes) :] += self._widths.noise * np.eye(len(codes))
        return covariance

    def _squares(self, codes: Codes) -> Floats:
        """Returns the weighted squared distance of one row to every row of the scope."""
        total = np.zeros(self._spread.shape[1], np.float32)
        for group in self._groups:
            joint = np.zeros(1, np.float32)
            for place in group.places:
                part = self._table.columns[place].squares(int(codes[place]))
                joint = (joint[:, None] + np.float32(self._widths.weights[place]) * part).ravel()
            total += joint.take(group.codes)
        return total


def _groups(table: RowTable) -> tuple[_Group, ...]:
    """Groups columns while their combinations are few: fewer look-ups for each row."""
    groups: list[_Group] = []
    size = 0
    for place, column in sorted(enumerate(table.columns), key=lambda one: one[1].levels):
        codes = np.where(table.codes[:, place] < 0, column.levels, table.codes[:, place]).astype(np.intp)
        size *= column.levels + 1
        if groups and size <= GROUP_LIMIT:
            last = groups.pop()
            groups.append(_Group((*last.places, place), last.codes * (column.levels + 1) + codes))
        else:
            groups.append(_Group((place,), codes))
            size = column.levels + 1
    return tuple(groups)
