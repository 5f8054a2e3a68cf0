"""Search methods that fit a model to outcomes: Gaussian process, kernel densities, random trees."""

from dataclasses import replace

import numpy as np

from tuner.search.configurations import Floats, RowTable, Scope
from tuner.search.density import Densities
from tuner.search.forest import grow
from tuner.search.gaussian_process import GaussianProcess, Widths, fit, rows_to_model, standardized
from tuner.search.method import AbstractMethod
from tuner.search.task import SearchTask, is_starting, start_row

# Logarithm of the expected improvement, so that the product of two models' improvements is a sum.
# Jones et al., 1998, https://doi.org/10.1023/A:1008306431147, equation 15.

TINY = 1e-30


def log_expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """Returns the log of the expected improvement below ``best``, per normal mean and deviation."""
    z = (np.float32(best) - mean) / deviation
    density = np.exp(-0.5 * z * z) * np.float32(1 / np.sqrt(2 * np.pi))
    gain: Floats = np.log(np.maximum(deviation * (z * _cumulative(z) + density), TINY)).astype(np.float32)
    return gain


def _cumulative(z: Floats) -> Floats:
    """Returns the cumulative normal distribution function, to 1e-7 (Abramowitz and Stegun, 7.1.26)."""
    x = np.abs(z) * np.float32(np.sqrt(0.5))
    t = 1 / (1 + np.float32(0.3275911) * x)
    poly = np.zeros_like(t)
    for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        poly = (poly + np.float32(factor)) * t
    error = 1 - poly * np.exp(-x * x)
    half: Floats = (0.5 * (1 + np.sign(z) * error)).astype(np.float32)
    return half


OBSERVED_LIMIT = 300  # observed rows of a process: its time grows with their cube
FIT_GROWTH = 1.15  # factor of the number of rows from one fit of the length scales to the next


class Surrogate:
    """A Gaussian process of the outcomes of a search, whose length scales are fitted anew from time to time.

    A fit uses the first proposals, and is repeated when the outcome of one of these arrives later.
    """

    def __init__(self, task: SearchTask) -> None:
        self._task = task
        self._fitted: tuple[object, Widths] | None = None
        self._process: tuple[Widths, GaussianProcess] | None = None

    def log_gain(self, scope: Scope) -> Floats:
        """Returns the log of the expected improvement over the best outcome, per configuration."""
        pool = self._task.pool
        rows = rows_to_model(pool, len(pool.order), OBSERVED_LIMIT)
        values = standardized(pool, rows)
        widths = self._widths()
        mean, deviation = self._of(scope, widths).posterior(rows, self._seen(rows), values)
        return log_expected_improvement(mean, deviation, float(values.min()))

    def _seen(self, rows: list[int]) -> RowTable:
        return self._task.table.part(np.array(rows)).with_alignments()

    def _of(self, scope: Scope, widths: Widths) -> GaussianProcess:
        if scope.is_whole and self._process is not None and self._process[0] is widths:
            return self._process[1]
        process = GaussianProcess(replace(scope, table=scope.table.with_alignments()), widths)
        if scope.is_whole:
            self._process = (widths, process)
        return process

    def _widths(self) -> Widths:
        pool = self._task.pool
        rows = rows_to_model(pool, _fit_rows(len(pool.order)), OBSERVED_LIMIT)
        values = standardized(pool, rows)
        key = (tuple(rows), values.tobytes())
        if self._fitted is None or self._fitted[0] != key:
            self._fitted = (key, fit(self._seen(rows).squares(), values))
        return self._fitted[1]


def _fit_rows(count: int) -> int:
    """Returns how many proposals the latest fit used, given the number of proposals."""
    rows = 1
    while (following := max(rows + 1, int(rows * FIT_GROWTH))) <= count:
        rows = following
    return rows


# Density ratio over the feasible rows, estimated twice: by kernels and by a Gaussian process.
# The probability that a row is fast, given its knobs, and the density of fast rows over the knobs are two
# sides of one ratio (Bayes' rule; Tiao et al., 2021, https://arxiv.org/abs/2102.09009). The kernels
# (tree-structured Parzen estimator) learn joint patterns of good rows at once, the process learns which knobs
# matter, with its uncertainty. Both give an expected improvement at every row; the row with the largest
# product is chosen.

KERNEL_WEIGHT = 1.0  # exponent of the kernels' improvement in the product; that of the process is 1


class Tpe(AbstractMethod):
    """Search method "tpe": maximizes the product of the expected improvements of two models of the outcomes.

    The models are a Parzen estimator and a Gaussian process.
    """

    def __init__(self, task: SearchTask) -> None:
        AbstractMethod.__init__(self, task)
        self._densities = Densities(task)
        self._surrogate = Surrogate(task)

    def choose(self, rng: np.random.Generator) -> int:
        if is_starting(self.task):
            return start_row(self.task, rng)
        scope = self.task.scope(rng)
        score = self._surrogate.log_gain(scope) + KERNEL_WEIGHT * self._densities.log_gain(scope)
        return self.task.best_unseen(scope, score, rng)


MODELLED_LIMIT = 2000  # observed rows from which trees are grown


class Trees(AbstractMethod):
    """Maximizes the expected improvement under random trees; pending and failed rows count as slow."""

    def choose(self, rng: np.random.Generator) -> int:
        task = self.task
        if is_starting(task):
            return start_row(task, rng)
        rows = rows_to_model(task.pool, len(task.pool.order), MODELLED_LIMIT)
        values = standardized(task.pool, rows)
        forest = grow(task.table.part(np.array(rows)), values, rng)
        scope = task.scope(rng)
        mean, deviation = forest.predict(scope.table)
        return task.best_unseen(scope, log_expected_improvement(mean, deviation, float(values.min())), rng)
