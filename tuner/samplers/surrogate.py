"""Expected improvement of every configuration by a Gaussian process fitted to all outcomes so far."""

from dataclasses import replace

import numpy as np

from tuner.samplers.considered_rows import Scope
from tuner.samplers.expected_improvement import log_expected_improvement
from tuner.samplers.gaussian_process import GaussianProcess
from tuner.samplers.gp_widths import Widths, fit
from tuner.samplers.outcome_scaling import rows_to_model, standardized
from tuner.samplers.row_table import Floats, RowTable
from tuner.samplers.task import SearchTask

OBSERVED_LIMIT = 300  # observed rows of a process: its time grows with their cube
FIT_GROWTH = 1.15  # of the number of rows from one fit of the widths to the next


class Surrogate:
    """A Gaussian process of the outcomes of a search, whose length scales are fitted anew from time to time.

    The result depends on the proposals, their order and their outcomes, not on the order of outcomes: a fit
    uses a prefix of the proposals, and is repeated when an outcome in that prefix arrives late.
    """

    def __init__(self, task: SearchTask) -> None:
        self._task = task
        self._fitted: tuple[object, Widths] | None = None
        self._process: tuple[Widths, GaussianProcess] | None = None

    def log_gain(self, scope: Scope) -> Floats:
        """Returns the logarithm of the expected improvement for each configuration of a scope.

        The improvement is over the best outcome so far, in standardized log time.
        """
        pool = self._task.pool
        rows = rows_to_model(pool, len(pool.order), OBSERVED_LIMIT)
        values = standardized(pool, rows)
        widths = self._widths()
        mean, deviation = self._of(scope, widths).posterior(rows, self._seen(rows), values)
        return log_expected_improvement(mean, deviation, float(values.min()))

    def _seen(self, rows: list[int]) -> RowTable:
        return self._task.table.part(np.array(rows)).with_alignments()

    def _of(self, scope: Scope, widths: Widths) -> GaussianProcess:
        """Returns the process over a scope.

        Cached while the scope is all rows and the widths stay the same.
        """
        if not scope.is_whole:
            return GaussianProcess(_aligned(scope), widths)
        if self._process is None or self._process[0] is not widths:
            self._process = (widths, GaussianProcess(_aligned(scope), widths))
        return self._process[1]

    def _widths(self) -> Widths:
        pool = self._task.pool
        rows = rows_to_model(pool, _fit_rows(len(pool.order)), OBSERVED_LIMIT)
        values = standardized(pool, rows)
        key = (tuple(rows), values.tobytes())
        if self._fitted is None or self._fitted[0] != key:
            self._fitted = (key, fit(self._seen(rows).squares(), values))
        return self._fitted[1]


def _aligned(scope: Scope) -> Scope:
    return replace(scope, table=scope.table.with_alignments())


def _fit_rows(count: int) -> int:
    """Returns how many proposals the latest fit used, given the number of proposals."""
    rows = 1
    while (following := max(rows + 1, int(rows * FIT_GROWTH))) <= count:
        rows = following
    return rows
