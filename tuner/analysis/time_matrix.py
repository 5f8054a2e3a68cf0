"""Time matrices: times of configurations (columns) on problems (rows), and predictions of missing times.

``TimeMatrix`` has the measured times. ``corrected_scores`` corrects the cost model's estimates by the
residuals of measured times on similar problems; ``completed_times`` fills the gaps of a matrix with them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from tuner.core.candidate import Candidate
from tuner.core.problem import Problem

Numbers = npt.NDArray[np.float64]

# benchmarks/results/many_shapes_replay.json: these values on 34 problems x 57 configurations
WIDTH = 8.0  # a problem at a distance of d octaves counts exp(-d * d / WIDTH)
SHRINKAGE = 0.5  # weight of the assumption that a configuration is as good as the cost model says
LEAST_TIMES = 2  # of a problem, to be used: a single time is its own mean, so its residual is 0
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class KnownTimes:
    """Measured times of configurations on problems, and the costs by the cost model, as arrays."""

    costs: Numbers  # [problem, column], of the cost model; inf where there is none
    times_s: Numbers  # [problem, column]; nan: no time
    octaves: Numbers  # [problem, 3]: log2 of (m, n, k)


def corrected_scores(
    known: KnownTimes,
    costs: Numbers,
    octaves: Numbers,
    width: float = WIDTH,
    shrinkage: float = SHRINKAGE,
) -> Numbers:
    """Returns a score for each configuration on one problem; the lower, the faster it should be.

    log(cost) plus the column's mean residual in ``known``. A residual is log(time / cost), less the problem's
    mean. Problems are weighted by exp(-d * d / width) at a distance of d octaves, those with fewer than
    LEAST_TIMES (2) times by 0; ``shrinkage`` pulls the mean to 0. ``costs``: [column], inf (no estimate)
    counts as the least of them. ``octaves``: [3], log2 of (m, n, k) of the problem.
    """
    centred = residuals(known)
    is_known = np.isfinite(centred)
    times = is_known.sum(axis=1, keepdims=True)
    squares: Numbers = ((known.octaves - octaves) ** 2).sum(axis=1, keepdims=True)
    weights = np.where(is_known & (times >= LEAST_TIMES), np.exp(-squares / width), 0.0)
    total = (weights * np.where(is_known, centred, 0.0)).sum(axis=0)
    scores: Numbers = np.log(filled_costs(costs)) + total / (shrinkage + weights.sum(axis=0))
    return scores


def octaves_of(problems: Sequence[Problem]) -> Numbers:
    """Returns log2 of (m, n, k) per problem [problem, 3], for distances in octaves."""
    sizes = np.array([problem.sizes for problem in problems], np.float64)
    octaves: Numbers = np.log2(sizes.reshape(len(problems), 3))
    return octaves


def residuals(known: KnownTimes) -> Numbers:
    """Returns log(time / cost of the cost model) [problem, configuration], less the mean of the problem.

    nan without a time.
    """
    logs = log_ratios(known)
    centred: Numbers = logs - row_means(logs)[:, None]
    return centred


def log_ratios(known: KnownTimes) -> Numbers:
    """Returns log(time / cost of the cost model) [problem, configuration]; nan without a time."""
    ratios: Numbers = np.log(known.times_s) - np.log(filled_costs(known.costs))
    return ratios


def row_means(table: Numbers) -> Numbers:
    """Returns the mean of each row, nan left out; 0 for a row that has only nan."""
    is_known = np.isfinite(table)
    means: Numbers = np.where(is_known, table, 0.0).sum(axis=1) / np.maximum(is_known.sum(axis=1), 1)
    return means


def filled_costs(costs: Numbers) -> Numbers:
    """Returns the costs with inf (no estimate) replaced by the least cost of the problem (the last axis).

    1 if all costs of the problem are inf.
    """
    least = np.where(np.isfinite(costs), costs, np.inf).min(axis=-1, keepdims=True, initial=np.inf)
    least = np.where(np.isfinite(least), least, 1.0)
    filled: Numbers = np.where(np.isfinite(costs), costs, least)
    return filled


def require_sizes(
    rows: int, columns: int, counts: tuple[int, ...], **tables: Sequence[Sequence[object]]
) -> None:
    """Raises ValueError unless there is a count of at least 1 for each of ``rows`` problems.

    Also unless all ``tables`` have ``rows`` rows of ``columns`` entries.
    """
    if len(counts) != rows or any(count < 1 for count in counts):
        raise ValueError(f"counts: found {counts}, allowed one of at least 1 for each problem")
    for name, table in tables.items():
        if len(table) != rows or any(len(row) != columns for row in table):
            raise ValueError(f"{name}: found another size, allowed {rows} rows of {columns}")


@dataclass(frozen=True)
class TimeMatrix:
    """Median times of configurations (columns) on problems (rows), where measured.

    The configurations are those chosen for all problems; on a problem, the nearest one that its constraints
    allow was timed. Raises ValueError for a problem or configuration that occurs twice, tables of another
    size, times or costs that are not positive, and a time of a configuration that does not apply.
    """

    problems: tuple[Problem, ...]
    counts: tuple[int, ...]  # how often each problem occurs in what is tuned, at least 1
    columns: tuple[Candidate, ...]  # unprojected, each once
    times_s: tuple[tuple[float | None, ...], ...]  # [problem][column]; None: no time
    applies: tuple[tuple[bool, ...], ...]  # [problem][column]; False: the strategy cannot do the problem
    costs: tuple[tuple[float, ...], ...]  # [problem][column], of the cost model; inf where there is none

    def __post_init__(self) -> None:
        if len(set(self.problems)) != len(self.problems) or len(set(self.columns)) != len(self.columns):
            raise ValueError("found a problem or a column twice")
        tables = {"times_s": self.times_s, "applies": self.applies, "costs": self.costs}
        require_sizes(len(self.problems), len(self.columns), self.counts, **tables)
        times = chain.from_iterable(self.times_s)
        if not all(time is None or (math.isfinite(time) and time > 0) for time in times):
            raise ValueError("times_s: found a time that is not a positive number of seconds")
        if not all(cost > 0 for cost in chain.from_iterable(self.costs)):
            raise ValueError("costs: found a cost that is not positive")
        if bool((self.is_timed() & ~self.is_applicable()).any()):
            raise ValueError("times_s: found a time of a configuration that does not apply")

    def times(self) -> Numbers:
        """Returns the median times in seconds [problem, configuration]; nan where there is none."""
        return np.array(self.times_s, np.float64).reshape(self._shape)  # numpy makes None nan

    def is_timed(self) -> Flags:
        is_timed: Flags = np.isfinite(self.times())
        return is_timed

    def is_applicable(self) -> Flags:
        """Returns whether the strategy of a configuration can compute a problem [problem, configuration]."""
        return np.array(self.applies, np.bool_).reshape(self._shape)

    def model_costs(self) -> Numbers:
        """Returns the cost model's costs [problem, configuration], larger for slower ones; inf: unknown."""
        return np.array(self.costs, np.float64).reshape(self._shape)

    def best_s(self) -> Numbers:
        """Returns the least time of each problem in seconds [problem]; nan for a problem without a time."""
        times = np.where(self.is_timed(), self.times(), np.inf)
        least = times.min(axis=1, initial=np.inf)
        best: Numbers = np.where(np.isfinite(least), least, np.nan)
        return best

    def efficiency(self) -> Numbers:
        """Returns best time of the problem / time [problem, configuration]: at most 1; nan without a time."""
        shares: Numbers = self.best_s()[:, None] / self.times()
        return shares

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.problems), len(self.columns)


@dataclass(frozen=True, eq=False)
class CompletedTimes:
    """Logarithms of all times of a matrix: measured, else predicted by the corrected cost model."""

    logs: Numbers  # [problem, column], of seconds
    is_predicted: Flags  # [problem, column]; True: no measurement


def completed_times(matrix: TimeMatrix) -> CompletedTimes:
    """Returns the log times of a matrix; missing ones are predicted by the corrected cost model.

    A prediction is a score plus the problem's mean log(time / cost), or the mean over all problems if the
    problem has no time.
    """
    known = known_times(matrix)
    is_timed = matrix.is_timed()
    levels = row_means(log_ratios(known))
    has_times = is_timed.any(axis=1)
    usual = float(levels[has_times].mean()) if has_times.any() else 0.0
    scores = [
        corrected_scores(known, costs, octaves)
        for costs, octaves in zip(known.costs, known.octaves, strict=True)
    ]
    predicted = np.array(scores).reshape(is_timed.shape) + np.where(has_times, levels, usual)[:, None]
    return CompletedTimes(np.where(is_timed, np.log(matrix.times()), predicted), ~is_timed)


def known_times(matrix: TimeMatrix) -> KnownTimes:
    """Returns a matrix as arrays for ``corrected_scores``."""
    return KnownTimes(matrix.model_costs(), matrix.times(), octaves_of(matrix.problems))
