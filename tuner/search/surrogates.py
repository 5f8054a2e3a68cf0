"""Search methods that fit a model to the outcomes: Gaussian process, kernel densities, random trees.

The models are ``Surrogate`` (Gaussian process), ``Densities`` and ``Forest``; ``Tpe`` and ``Trees`` are
methods.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tuner.search.configurations import Codes, Column, Floats, RowTable, Scope
from tuner.search.gaussian_process import GaussianProcess, Widths, fit, rows_to_model, standardized
from tuner.search.method import AbstractMethod, SearchTask, is_starting, start_row

# Oblivious regression trees: one split per level, drawn at random and the best of a few taken.
#
# Extremely randomized trees (Geurts et al., 2006, https://doi.org/10.1007/s10994-006-6226-1); with one split
# per level, as in CatBoost, a tree is a few table look-ups for any number of rows.

TREES = 40
DEPTH = 10  # leaves hold one or two of a few hundred observations
TRIED = 2  # random splits per level, of which the best is taken
MODELLED_LIMIT = 2000  # observed rows from which trees are grown
SHRINKAGE = 0.1  # prior observations of mean 0 and variance 1 in every leaf

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]
Sides = npt.NDArray[np.bool_]
WIDTH = 1.2  # decay of a kernel per rank of an ordered knob, or for another text; 1.8 works as well
STRATEGY_WIDTH = 3.6  # decay between strategies: rows of another strategy tell little
PRIOR = 1 << 10  # the uniform density in units of the fixed-point scale
PEAK_LIMIT = 1 << 36  # times the prior; sums of 2**16 such peaks fit 64 bits
GOOD_SHARE = 0.15  # share of the rows with an outcome, the fastest, that make up the good density
GOOD_MIN = 2
TINY = 1e-30
PRIOR_SLOPE = 1.0  # before there are observations: both sides are standardized
SLOPE_STRENGTH = 4.0  # prior observations of that slope
OBSERVED_LIMIT = 300  # observed rows of a process: its time grows with their cube
FIT_GROWTH = 1.15  # factor of the number of rows from one fit of the length scales to the next
KERNEL_WEIGHT = 1.0  # exponent of the kernels' improvement in the product; that of the process is 1


@dataclass(frozen=True, eq=False)
class Forest:
    """A fitted forest of regression trees: the splits of all trees, mean and variance of each leaf."""

    split_columns: Integers  # (trees, levels): the column that is split
    goes_right: Sides  # (trees, levels, codes): side of the split; last code: the knob is absent
    mean: Floats  # (trees, leaves)
    variance: Floats  # (trees, leaves): large where a leaf has few observations

    def predict(self, table: RowTable) -> tuple[Floats, Floats]:
        """Returns (mean, standard deviation) per configuration.

        The deviation includes how much the trees' predictions differ, and the variance within leaves.
        """
        total = np.zeros(len(table.codes), np.float32)
        squares = np.zeros_like(total)
        within = np.zeros_like(total)
        for tree, split_columns in enumerate(self.split_columns.tolist()):
            leaf = np.zeros(len(table.codes), np.intp)
            for level, column in enumerate(split_columns):
                # code -1 (the knob is absent) wraps to the last entry
                leaf = 2 * leaf + self.goes_right[tree, level].take(table.codes[:, column], mode="wrap")
            predicted = self.mean[tree].take(leaf)
            total += predicted
            squares += predicted * predicted
            within += self.variance[tree].take(leaf)
        count = np.float32(len(self.split_columns))
        mean = (total / count).astype(np.float32)
        variance = squares / count - mean * mean + within / count
        return mean, np.sqrt(np.maximum(variance, np.float32(1e-6)))


def grow(table: RowTable, values: Array, rng: np.random.Generator) -> Forest:
    """Returns a forest of random trees, fitted to the ``values`` of the configurations in ``table``.

    All trees grow together, level by level.
    """
    depth = DEPTH if table.columns else 0
    trees = np.arange(TREES)
    leaf = np.zeros((TREES, len(values)), np.intp)
    split_columns = []
    goes_right = []
    for level in range(depth):
        # random splits: the column of each, (trees, tried), and the side of each code, (trees, tried, codes)
        split, sides = _random_splits(table.columns, rng)
        side = sides[trees[:, None, None], np.arange(TRIED)[:, None], table.codes.T[split]]
        child_leaf = 2 * leaf[:, None] + side
        count, total = _sums(child_leaf, values, 2 << level)
        # how much of the sum of squares the means of the leaves explain
        best = np.argmax((total * total / count).sum(axis=-1), axis=1)
        leaf = child_leaf[trees, best]
        split_columns.append(split[trees, best])
        goes_right.append(sides[trees, best])
    count, total = _sums(leaf, values, 1 << depth)
    return Forest(
        np.stack(split_columns, axis=1) if depth else np.zeros((TREES, 0), np.intp),
        np.stack(goes_right, axis=1) if depth else np.zeros((TREES, 0, 1), bool),
        (total / count).astype(np.float32),
        (SHRINKAGE / count).astype(np.float32),
    )


def _random_splits(columns: tuple[Column, ...], rng: np.random.Generator) -> tuple[Integers, Sides]:
    codes = max(column.levels for column in columns) + 1
    levels = np.array([column.levels for column in columns])
    is_ordinal = np.array([column.is_ordinal for column in columns])
    # position of each code, a missing knob in the middle; the last code is -1 for every knob
    position = np.stack([np.append(np.arange(codes - 1.0), (column.levels - 1) / 2) for column in columns])
    column_numbers = rng.integers(len(columns), size=(TREES, TRIED))
    threshold = rng.integers(levels[column_numbers] - 1)
    random_subset = rng.random((TREES, TRIED, codes)) < 0.5
    is_above = position[column_numbers] > threshold[..., None]
    return column_numbers, np.where(is_ordinal[column_numbers][..., None], is_above, random_subset)


def _sums(leaf: Integers, values: Array, leaves: int) -> tuple[Array, Array]:
    parts = leaf.reshape(-1, leaf.shape[-1])
    flat = (parts + leaves * np.arange(len(parts))[:, None]).ravel()
    count = np.bincount(flat, minlength=leaves * len(parts)) + SHRINKAGE
    total = np.bincount(flat, np.tile(values, len(parts)), leaves * len(parts))
    shape = (*leaf.shape[:-1], leaves)
    return count.reshape(shape), total.reshape(shape)


# Kernel densities of configurations: of the fastest ones, of all other proposed ones, and their ratio.


class KernelDensityTable:
    """Kernel densities around observed configurations, at every configuration of a table.

    The density is a product over the columns, rounded to an integer, so that sums are equal in any order and
    a resumed search is exact.
    """

    def __init__(self, table: RowTable) -> None:
        self._tables = list(map(_table, table.columns))
        self._codes = [np.ascontiguousarray(table.codes[:, number]) for number in range(len(table.columns))]
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
    """Returns the kernel density of a column [observed code, other code], relative to the uniform one.

    The last row and the last column are for configurations without the knob.
    """
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


class Densities:
    """The kernel density of the fastest configurations, and that of all other proposed ones.

    Pending and failed configurations count as others.
    """

    def __init__(self, task: SearchTask) -> None:
        self._task = task
        self._whole: _Pair | None = None

    def log_gain(self, scope: Scope) -> Floats:
        """Returns, for each configuration of a scope, a score that grows with its expected improvement.

        -log(s + (1 - s) / r): s is the share of the fastest among the proposed rows, r the ratio of the two
        densities.
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


# Logarithm of the expected improvement, so that the product of two models' improvements is a sum.
# Jones et al., 1998, https://doi.org/10.1023/A:1008306431147, equation 15.


def log_expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """Returns the log of the expected improvement below ``best``, for normal distributions.

    ``mean``, ``deviation``: of each configuration.
    """
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


# What other machines say: the process models the residuals of a line through their times, as in a stack of
# processes (Golovin et al., 2017, https://doi.org/10.1145/3097983.3098043). The slope comes from the data:
# where the machines disagree it goes to 0.


def prior_mean(task: SearchTask) -> Array | None:
    """Returns how slow each row is on other machines, standardized; predicted by trees where it is unknown.

    None if nothing is known, or if all rows are equal.
    """
    if task.prior is None or np.isnan(task.prior).all():
        return None
    rng = np.random.default_rng(task.seed)
    levels = task.prior.copy()
    known, unknown = (np.flatnonzero(np.isnan(levels) == is_unknown) for is_unknown in (False, True))
    if len(unknown):
        grown_from = rng.choice(known, min(len(known), MODELLED_LIMIT), replace=False)
        middle = levels[grown_from].mean()
        forest = grow(task.table.part(grown_from), levels[grown_from] - middle, rng)
        levels[unknown] = middle + forest.predict(task.table.part(unknown))[0]
    deviation = levels.std()
    return (levels - levels.mean()) / deviation if deviation > 0 else None


def line(prior: Array, values: Array) -> tuple[float, float]:
    """Returns (slope, offset) of a line that predicts ``values`` from ``prior``.

    Ridge regression toward PRIOR_SLOPE; the slope is at least 0.
    """
    centered = prior - prior.mean()
    slope = (SLOPE_STRENGTH * PRIOR_SLOPE + float(centered @ values)) / (
        SLOPE_STRENGTH + float(centered @ centered)
    )
    slope = max(slope, 0.0)
    return slope, float((values - slope * prior).mean())


class Surrogate:
    """A Gaussian process of the outcomes of a search, whose length scales are fitted again from time to time.

    A fit uses the first proposals, and is repeated when the outcome of one of these arrives later. If other
    machines' times are known, they give the mean, and the process models the rest.
    """

    def __init__(self, task: SearchTask) -> None:
        self._task = task
        self._prior = prior_mean(task)
        self._fitted: tuple[object, Widths] | None = None
        self._process: tuple[Widths, GaussianProcess] | None = None

    def log_gain(self, scope: Scope) -> Floats:
        """Returns the log of the expected improvement over the best outcome, per configuration."""
        pool = self._task.pool
        rows = rows_to_model(pool, len(pool.order), OBSERVED_LIMIT)
        values = standardized(pool, rows)
        widths = self._widths()
        process = self._of(scope, widths)
        best = float(values.min())
        if self._prior is None:
            mean, deviation = process.posterior(rows, self._seen(rows), values)
            return log_expected_improvement(mean, deviation, best)
        slope, offset = line(self._prior[rows], values)
        unexplained = values - slope * self._prior[rows] - offset
        mean, deviation = process.posterior(rows, self._seen(rows), unexplained)
        mean += (slope * self._prior[scope.rows] + offset).astype(np.float32)
        return log_expected_improvement(mean, deviation, best)

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
        if self._prior is not None:
            slope, offset = line(self._prior[rows], values)
            values = values - slope * self._prior[rows] - offset
        key = (tuple(rows), values.tobytes())
        if self._fitted is None or self._fitted[0] != key:
            self._fitted = (key, fit(self._seen(rows).squares(), values))
        return self._fitted[1]


def _fit_rows(count: int) -> int:
    """Returns how many of the first proposals a fit uses if ``count`` were made: it grows by FIT_GROWTH."""
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


class Tpe(AbstractMethod):
    """Search method "tpe": maximizes the product of the expected improvements by two models of the outcomes.

    The models are a Parzen estimator (TPE) and a Gaussian process.
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


class Trees(AbstractMethod):
    """A search method of "ensemble": maximizes the expected improvement by random trees.

    Pending and failed configurations count as slow.
    """

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
