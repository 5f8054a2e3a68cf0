"""A Gaussian process over configurations: standardized outcomes, fitted length scales, predictions.

``standardized`` turns outcomes into values, ``fit`` finds a weight for each column and the noise, and
``GaussianProcess.posterior`` predicts the mean and deviation of each configuration of a scope.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.search.configurations import Codes, Floats, Pool, RowTable, Scope

# The length scales of a Gaussian process, by maximum marginal likelihood with priors.
# Rasmussen and Williams, 2006, http://gaussianprocess.org/gpml, chapter 5; the variance of the process is
# solved for, the other parameters follow the gradient by Rprop (Riedmiller and Braun, 1993,
# https://doi.org/10.1109/ICNN.1993.298623), which needs no line search and no scale.

Array = npt.NDArray[np.float64]

# Priors, of logarithms, chosen on synthetic spaces: a knob may matter much, little, or not at all.
WIDTH_MEAN = 0.0
WIDTH_SPREAD = 1.5
# share of the variance that no knob explains
NOISE_MEAN = math.log(1e-2)
NOISE_SPREAD = 1.0
SCALE_COUNT = 2.0  # prior observations of variance 1
STEPS = 20
JITTER = 1e-6  # on the diagonal, for numerical stability in float32
FIRST_STEP = 0.4
LARGEST_STEP = 1.0
FASTER = 1.3
SLOWER = 0.5
GROUP_LIMIT = 256  # largest number of combinations of a group of columns
BLOCK = 16  # observed rows per block of the Cholesky factor
SLOW_QUANTILE = 0.5  # slower times are set to this quantile: how slow a slow row is matters little


@dataclass(frozen=True, eq=False)
class Widths:
    """The fitted parameters of a Gaussian process: a weight per column (knob), and the noise variance."""

    weights: Array  # per column, of the squared difference: 1 / (2 l**2) of its length scale l
    noise: float

    @classmethod
    def of(cls, parameters: Array) -> "Widths":
        """Returns the parameters from their logarithms: the weights of the columns, then the noise.

        JITTER is added to the noise.
        """
        return cls(np.exp(parameters[:-1]), math.exp(parameters[-1]) + JITTER)


def correlation(distance: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Returns the Matern 5/2 correlation (GPML, equation 4.17); ``distance``: half the squared distances."""
    r = np.sqrt(10 * distance)  # sqrt(5) times the distance; of a dtype that follows ``distance``
    result: npt.NDArray[np.floating] = (1 + r + r * r / 3) * np.exp(-r)
    return result


def fit(squares: Array, values: Array) -> Widths:
    """Fits weights and noise to observations by maximum marginal likelihood with priors, in a few steps.

    ``squares``: squared differences (columns, observations, observations); ``values``: standardized.
    """
    columns = len(squares)
    prior = np.array([*[WIDTH_MEAN] * columns, NOISE_MEAN])
    spread = np.array([*[WIDTH_SPREAD] * columns, NOISE_SPREAD])
    now = prior.copy()
    step = np.full(columns + 1, FIRST_STEP)
    before = np.zeros(columns + 1)
    best = now
    least = math.inf
    for _ in range(STEPS):
        loss, slope = _loss(squares, values, now)
        loss += 0.5 * float((((now - prior) / spread) ** 2).sum())
        slope += (now - prior) / spread**2
        if loss < least:
            best = now
            least = loss
        product = slope * before  # negative: the last step went beyond a minimum
        step = np.where(
            product > 0, np.minimum(step * FASTER, LARGEST_STEP), np.where(product < 0, step * SLOWER, step)
        )
        before = np.where(product < 0, 0.0, slope)
        now = now - np.sign(before) * step
    return Widths.of(best)


def _loss(squares: Array, values: Array, parameters: Array) -> tuple[float, Array]:
    columns, count, _ = squares.shape
    widths = Widths.of(parameters)
    flat = squares.reshape(columns, count * count)
    r = np.sqrt(10 * (widths.weights @ flat)).reshape(count, count)
    # Matern 5/2 with r = sqrt(5) times the weighted distance
    decay = np.exp(-r)
    covariance = (1 + r + r * r / 3) * decay + widths.noise * np.eye(count)
    inverse = np.linalg.inv(covariance)
    weighted = inverse @ values
    variance = (values @ weighted + SCALE_COUNT) / (count + SCALE_COUNT)
    loss = 0.5 * (count + SCALE_COUNT) * math.log(variance) + 0.5 * float(np.linalg.slogdet(covariance)[1])
    outer = 0.5 * (inverse - np.outer(weighted, weighted) / variance)
    # the derivative of (1 + r + r^2 / 3) exp(-r) by r^2 is -(1 + r) exp(-r) / 6, and r^2 is 10 w square
    by_width = widths.weights * (flat @ (outer * (-5 / 3) * (1 + r) * decay).ravel())
    by_noise = (widths.noise - JITTER) * np.trace(outer)
    return loss, np.append(by_width, by_noise)


# A Gaussian process over the rows: mean and standard deviation of the standardized log time of each row.
# Rasmussen and Williams, 2006, http://gaussianprocess.org/gpml, algorithm 2.1.


@dataclass(frozen=True, eq=False)
class _Group:
    columns: tuple[int, ...]
    codes: npt.NDArray[np.intp]  # by row: index of the combination of the columns' values


@dataclass(frozen=True, eq=False)
class _Taken:
    rows: list[int]
    inverse: Array  # of the Cholesky factor, (observations, observations)
    known: Floats  # by row of the scope: the share of the variance that the observations explain


class GaussianProcess:
    """A Gaussian process that predicts the standardized log time of each configuration of one scope.

    Blocks of the Cholesky factor are kept, so that a further observation costs little. The last, incomplete
    block is computed anew in each call, so that results do not depend on earlier calls.
    """

    def __init__(self, scope: Scope, widths: Widths) -> None:
        self._table = scope.table
        self._widths = widths
        self._groups = _groups(scope.table)
        self._pairs = [  # by column: weighted squared distance of each two codes
            weight * np.stack(list(map(column.squares, (*range(column.levels), -1))))
            for column, weight in zip(scope.table.columns, widths.weights.tolist(), strict=True)
        ]
        rows = len(scope.rows)
        self._spread = np.empty((0, rows), np.float32)  # whitened correlations with the scope, by observation
        self._taken = [_Taken([], np.empty((0, 0)), np.zeros(rows, np.float32))]

    def posterior(
        self, rows: list[int], seen: RowTable, values: npt.NDArray[np.float64]
    ) -> tuple[Floats, Floats]:
        """Returns the mean and the standard deviation of each configuration of the scope, two arrays (rows,).

        They are of standardized log times. ``rows``: indices of the observed configurations; ``seen``: their
        codes; ``values``: their standardized log times.
        """
        while self._taken[-1].rows != rows[: len(self._taken[-1].rows)]:
            self._taken.pop()
        if len(rows) > len(self._spread):
            grown = np.empty((len(rows) + len(rows) // 2, self._spread.shape[1]), np.float32)
            grown[: len(self._spread)] = self._spread
            self._spread = grown
        # the longest kept prefix of the rows; whole blocks after it are kept for later calls
        last = self._taken[-1]
        for start in range(len(last.rows), len(rows), BLOCK):
            last = self._take_in(last, rows[: start + BLOCK], seen.codes[: start + BLOCK])
            if len(last.rows) == start + BLOCK:
                self._taken.append(last)
        whitened = last.inverse @ values
        variance = (whitened @ whitened + SCALE_COUNT) / (len(rows) + SCALE_COUNT)
        deviation = np.sqrt(np.maximum(1 - last.known, np.float32(1e-8)) * np.float32(variance))
        return whitened.astype(np.float32) @ self._spread[: len(rows)], deviation

    def _take_in(self, before: _Taken, rows: list[int], codes: Codes) -> _Taken:
        """Returns the inverse Cholesky factor of ``before``, extended by later observations of ``rows``."""
        start = len(before.rows)
        count = len(rows)
        squares = np.zeros((count - start, count))
        for column, pairs in enumerate(self._pairs):
            squares += pairs[codes[start:, column, None], codes[:, column]]
        covariance = correlation(squares).astype(np.float64)
        covariance[:, start:] += self._widths.noise * np.eye(count - start)
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

    def _squares(self, codes: Codes) -> Floats:
        total = np.zeros(self._spread.shape[1], np.float32)
        for group in self._groups:
            joint = np.zeros(1, np.float32)
            for column in group.columns:
                part = self._table.columns[column].squares(int(codes[column]))
                joint = (joint[:, None] + np.float32(self._widths.weights[column]) * part).ravel()
            total += joint.take(group.codes)
        return total


def _groups(table: RowTable) -> tuple[_Group, ...]:
    """Returns the columns in groups of few combinations of codes, for one look-up per group and row."""
    groups: list[_Group] = []
    size = 0
    for index, column in sorted(enumerate(table.columns), key=lambda numbered: numbered[1].levels):
        codes = np.where(table.codes[:, index] < 0, column.levels, table.codes[:, index]).astype(np.intp)
        size *= column.levels + 1
        if groups and size <= GROUP_LIMIT:
            last = groups.pop()
            groups.append(_Group((*last.columns, index), last.codes * (column.levels + 1) + codes))
        else:
            groups.append(_Group((index,), codes))
            size = column.levels + 1
    return tuple(groups)


def standardized(pool: Pool, rows: list[int]) -> npt.NDArray[np.float64]:
    """Returns the logarithms of the times of ``rows``, scaled to mean 0 and standard deviation 1.

    Failed and pending rows get the slowest time; then the slower half of all is set to the median. All values
    are 0 where the times are then equal.
    """
    outcomes = list(map(pool.outcomes.get, rows))
    times = [time for time in outcomes if time is not None]
    least = min((time for time in times if time > 0), default=1.0) / 2  # a time of 0 has no logarithm
    slowest = max(times, default=1.0)
    logs = np.array([math.log(max(least, slowest if time is None else time)) for time in outcomes])
    logs = np.minimum(logs, np.quantile(logs, SLOW_QUANTILE))
    deviation = float(logs.std())
    scaled: npt.NDArray[np.float64] = (logs - logs.mean()) / (deviation if deviation > 0 else 1.0)
    return scaled


def rows_to_model(pool: Pool, count: int, limit: int) -> list[int]:
    """Returns the rows to which a model is fitted, in the order of proposals: the first ``count`` of them.

    If ``count`` exceeds ``limit``: of these rows, the ``limit`` / 2 fastest and the ``limit`` / 2 latest.
    """
    rows = pool.order[:count]
    if count <= limit:
        return rows
    known_rows = set(rows)
    fastest = [row for row in pool.fastest() if row in known_rows][: limit // 2]
    kept = {*fastest, *rows[-(limit - limit // 2) :]}
    return [row for row in rows if row in kept]
