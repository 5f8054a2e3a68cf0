"""A Gaussian process over the rows: what a time is expected to be, and how sure that is."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.samplers.evidence import SCALE_COUNT, Widths, correlation
from tuner.samplers.scope import Scope
from tuner.samplers.table import Codes, Floats, Table

GROUP_LIMIT = 256  # combinations of the columns that are looked up together


@dataclass(frozen=True, eq=False)
class _Group:
    """Some columns, and for each row of a scope which combination of them it has."""

    places: tuple[int, ...]
    codes: npt.NDArray[np.intp]


class Process:
    """The correlations of observed rows with every row of one scope; each is computed once."""

    def __init__(self, scope: Scope, widths: Widths) -> None:
        self._table = scope.table
        self._widths = widths
        self._groups = _groups(scope.table)
        self._order: list[int] = []  # observed rows, as they are stacked
        self._stack = np.empty((0, len(scope.rows)), np.float32)

    def posterior(
        self, rows: list[int], seen: Table, values: npt.NDArray[np.float64]
    ) -> tuple[Floats, Floats]:
        """Returns mean and standard deviation at every row of the scope, given standardized values."""
        count = len(rows)
        across = self._across(rows, seen.codes)
        squares = np.tensordot(self._widths.weights, seen.squares(), axes=1)
        covariance = correlation(squares) + self._widths.noise * np.eye(count)
        inverse = np.linalg.inv(np.linalg.cholesky(covariance))
        whitened = inverse @ values
        variance = (whitened @ whitened + SCALE_COUNT) / (count + SCALE_COUNT)
        spread = inverse.astype(np.float32) @ across
        known = np.einsum("ij,ij->j", spread, spread)
        deviation = np.sqrt(np.maximum(1 - known, np.float32(1e-8)) * np.float32(variance))
        return whitened.astype(np.float32) @ spread, deviation

    def _across(self, rows: list[int], codes: Codes) -> Floats:
        """Returns the correlations of the observed rows with the scope, in their order."""
        if rows[: len(self._order)] != self._order:
            self._order = []
        start, count = len(self._order), len(rows)
        if count > len(self._stack):
            grown = np.empty((count + count // 2, self._stack.shape[1]), np.float32)
            grown[:start] = self._stack[:start]
            self._stack = grown
        for place in range(start, count):
            self._stack[place] = correlation(self._squares(codes[place]))
        self._order = list(rows)
        return self._stack[:count]

    def _squares(self, codes: Codes) -> Floats:
        """Returns the weighted squared distance of one row to every row of the scope."""
        total = np.zeros(self._stack.shape[1], np.float32)
        for group in self._groups:
            joint = np.zeros(1, np.float32)
            for place in group.places:
                part = self._table.columns[place].squares(int(codes[place]))
                joint = (joint[:, None] + np.float32(self._widths.weights[place]) * part).ravel()
            total += joint.take(group.codes)
        return total


def _groups(table: Table) -> tuple[_Group, ...]:
    """Puts columns together while their combinations are few: fewer look-ups for each row."""
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
