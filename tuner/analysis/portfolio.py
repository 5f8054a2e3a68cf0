"""Portfolios: a few configurations for many problems, and which of them serves a problem.

Rows of a time matrix are problems, columns are configurations. Also ranks configurations for a problem that
was not tuned, by problems with the same n and k or by the corrected cost model
(``time_matrix.corrected_scores``), and checks this by leaving out one problem after another.
"""

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tuner.analysis.time_matrix import (
    CompletedTimes,
    Flags,
    KnownTimes,
    Numbers,
    TimeMatrix,
    completed_times,
    corrected_scores,
    octaves_of,
)
from tuner.core.errors import UsageError
from tuner.core.problem import Problem

# Greedy choice, then swaps until none helps (PAM: Kaufman and Rousseeuw 1987), on the mean of log(best time
# of a problem / its time with the best chosen configuration). Where all subsets can be compared, they are.
UNSERVED = 1e-9  # efficiency that counts where no chosen configuration applies
SUBSETS_LIMIT = 2_000  # up to so many, all subsets are compared: 2 of 63, 3 of 23
DIGITS = 9  # of scores: a smaller difference is rounding
NOISE = 0.01  # relative: medians, each the least of two rounds, that differ by no more count as equal

# Mean log efficiency; log efficiency of the worst problem; uses: the numbers of problems on which each chosen
# column is the fastest of all columns, or within NOISE of it, added up.
Score = tuple[float, float, int]
# Of ``corrected_scores``: the weights are those of a Gaussian of one octave. With 8, two octaves, the mean
# efficiency of problems held out, with all others timed, was 4 points lower: docs/decisions/libraries.md.
WIDTH = 2.0
# Weight of the assumption that the cost model is right. Of problems far from one another, as those of shipped
# results, 0.5 left too much to the model.
SHRINKAGE = 0.1
# A problem whose m lies outside of all tuned m of its n and k is served by the nearest of these up to this
# distance in m. Larger distances were not studied.
ONE_SIDE_OCTAVES = 2.0


@dataclass(frozen=True)
class Portfolio:
    """A few chosen configurations (columns of a time matrix), and which of them serves each problem."""

    columns: tuple[int, ...]  # of the matrix, the one that serves most problems first
    serving: tuple[int | None, ...]  # per problem one of ``columns``; None: none of them applies
    predicted: tuple[tuple[int, int], ...]  # (problem, column) of chosen columns whose time is a prediction


def choose_portfolio(
    matrix: TimeMatrix,
    size: int,
    allowed: Iterable[int] | None = None,
    universal: Iterable[int] | None = None,
) -> Portfolio:
    """Returns the portfolio of ``size`` columns with the best mean log efficiency over a matrix's problems.

    If there are too many subsets to compare all, it is the result of a greedy choice and swaps. Missing times
    are predicted by the corrected cost model; among equals the better worst problem decides.
    One of the chosen columns applies to every problem, if any does. ``allowed``: columns to choose from;
    ``universal``: columns that apply to any problem (None: by the matrix). Raises UsageError for a size below
    1 or above the number of usable columns.
    """
    applies = matrix.is_applicable()
    choices = np.array(usable_columns(matrix, allowed), np.int64)
    if not 1 <= size <= len(choices):
        raise UsageError(
            f"configs: found {size}, allowed 1..{len(choices)}: so many configurations apply to the "
            f"{len(matrix.problems)} problems"
        )
    completed = completed_times(matrix)
    logs = _log_efficiency(completed, applies)[:, choices]
    everywhere = np.flatnonzero(applies.all(axis=0)) if universal is None else [*universal]
    is_universal = np.isin(choices, everywhere)
    chosen = _Search(logs, is_universal).chosen(size)
    return served(matrix, tuple(int(choices[index]) for index in chosen), completed)


def usable_columns(matrix: TimeMatrix, allowed: Iterable[int] | None = None) -> tuple[int, ...]:
    """Returns the indices of the columns (configurations) that can compute a problem, ascending.

    ``allowed``: indices of the columns to choose from; None: all.
    """
    usable = np.flatnonzero(matrix.is_applicable().any(axis=0))
    wanted = None if allowed is None else {*allowed}
    return tuple(int(column) for column in usable if wanted is None or column in wanted)


def served(matrix: TimeMatrix, columns: Sequence[int], completed: CompletedTimes | None = None) -> Portfolio:
    """Returns the portfolio of the matrix's columns with the indices ``columns``: which serves each problem.

    If several are within NOISE (1 %) of the fastest on a problem, the one that is fastest on most problems
    serves it; None does if none applies. ``completed``: the matrix with predictions for missing times; None:
    they are predicted here.
    """
    completed = completed_times(matrix) if completed is None else completed
    logs = np.where(matrix.is_applicable(), completed.logs, np.inf)[:, list(columns)]
    is_served = np.isfinite(logs).any(axis=1)  # [problem]
    uses = np.bincount(logs[is_served].argmin(axis=1), minlength=len(columns))
    serving: list[int | None] = []
    for times in logs:  # within NOISE times are equal: of these columns, the one that is fastest most often
        near = np.flatnonzero(times <= times.min() + math.log1p(NOISE))
        steady = int(max(near, key=lambda index: (uses[index], -times[index])))
        serving.append(columns[steady] if np.isfinite(times).any() else None)
    counts = {column: serving.count(column) for column in columns}
    order = tuple(sorted(columns, key=lambda column: (-counts[column], column)))
    missing = [
        (row, column)
        for row, column in itertools.product(range(len(serving)), order)
        if completed.is_predicted[row, column] and matrix.applies[row][column]
    ]
    return Portfolio(order, tuple(serving), tuple(missing))


def _log_efficiency(completed: CompletedTimes, applies: Flags) -> Numbers:
    """Returns log(best time / time) [problem, column], at most 0.

    log(UNSERVED) where a column does not apply. The best time of a problem is the least measured one, or the
    least predicted one if none was measured.
    """
    logs = np.where(applies, completed.logs, np.inf)
    measured = np.where(completed.is_predicted, np.inf, logs).min(axis=1)
    best = np.where(np.isfinite(measured), measured, logs.min(axis=1))
    with np.errstate(invalid="ignore"):  # inf - inf: a problem that no column can do
        efficiency = np.minimum(best[:, None] - logs, 0.0)
    result: Numbers = np.where(applies, efficiency, math.log(UNSERVED))
    return result


class _Search:
    """Chooses columns by log efficiency [problem, column]: all subsets if few, else greedily and by swaps."""

    def __init__(self, logs: Numbers, is_universal: Flags) -> None:
        self._logs = logs
        self._is_universal = is_universal
        self._must = bool(is_universal.any())  # one of the chosen columns has to be universal
        self._uses = (logs >= logs.max(axis=1, keepdims=True) - math.log1p(NOISE)).sum(axis=0)

    def chosen(self, size: int) -> tuple[int, ...]:
        if math.comb(self._logs.shape[1], size) <= SUBSETS_LIMIT:
            subsets = itertools.combinations(range(self._logs.shape[1]), size)
            fitting = filter(self._fits, subsets)
            return max(fitting, key=lambda columns: self._score(self._logs[:, columns].max(axis=1), columns))
        chosen: tuple[int, ...] = ()
        while len(chosen) < size:  # greedy
            chosen = self._extended(chosen, must_fit=len(chosen) == size - 1)[1]
        score = self._score(self._logs[:, chosen].max(axis=1), chosen)
        while True:  # swaps
            others = (chosen[:index] + chosen[index + 1 :] for index in range(size))
            best_score, best = max(map(self._extended, others), key=lambda pair: pair[0])
            if best_score <= score:
                return chosen
            score = best_score
            chosen = best

    def _extended(self, chosen: tuple[int, ...], *, must_fit: bool = True) -> tuple[Score, tuple[int, ...]]:
        # with the column that gains most; with ``must_fit`` a universal one, unless one was chosen
        current = self._logs[:, chosen].max(axis=1, initial=math.log(UNSERVED))
        reached = np.maximum(current[:, None], self._logs)
        means = reached.mean(axis=0).round(DIGITS)
        worst = reached.min(axis=0).round(DIGITS)
        is_free = np.isin(np.arange(len(means)), chosen, invert=True)
        if must_fit and self._must and not self._is_universal[list(chosen)].any():
            is_free &= self._is_universal
        first = -np.arange(len(means))
        order = np.lexsort((first, self._uses, worst, means, is_free))  # the last key counts first
        best = (*chosen, int(order[-1]))
        return self._score(reached[:, order[-1]], best), best

    def _fits(self, columns: tuple[int, ...]) -> bool:
        return not self._must or bool(self._is_universal[list(columns)].any())

    def _score(self, reached: Numbers, columns: tuple[int, ...]) -> Score:
        mean = float(reached.mean())
        worst = float(reached.min())
        return round(mean, DIGITS), round(worst, DIGITS), int(self._uses[list(columns)].sum())


@dataclass(frozen=True)
class ProblemEfficiency:
    """The efficiency of one problem with the configuration that serves it."""

    problem: Problem
    column: int | None  # of the matrix; None: none applies or, held out, none of the chosen has a time
    efficiency: float | None  # best time / time, 0 to 1; None: not known


@dataclass(frozen=True)
class Regret:
    """The efficiencies of all problems: best known time / time with the portfolio, so that 1 is no loss.

    ``geomean``, ``worst`` and ``total`` leave out problems without a known efficiency.
    """

    losses: tuple[ProblemEfficiency, ...]
    counts: tuple[int, ...]  # how often each problem occurs
    best_s: tuple[float | None, ...]  # least measured time of each problem

    @property
    def known(self) -> tuple[float, ...]:
        """Returns the known efficiencies, in the order of the problems."""
        return tuple(loss.efficiency for loss in self.losses if loss.efficiency is not None)

    @property
    def unknown(self) -> int:
        """Returns how many problems have no known efficiency."""
        return len(self.losses) - len(self.known)

    @property
    def geomean(self) -> float | None:
        """Returns the geometric mean of the known efficiencies; None where there are none."""
        return geometric_mean(self.known)

    @property
    def worst(self) -> float | None:
        """Returns the least of the known efficiencies; None where there are none."""
        return min(self.known, default=None)

    @property
    def total(self) -> float | None:
        """Returns the best known time of all problems together over their time with the portfolio.

        Both are sums of seconds, each problem's times its count: what takes long weighs most. None if no
        efficiency is known.
        """
        seconds = [
            (best_s * count, best_s * count / loss.efficiency)
            for loss, count, best_s in zip(self.losses, self.counts, self.best_s, strict=True)
            if loss.efficiency is not None and best_s is not None
        ]
        if seconds:
            return sum(best for best, _ in seconds) / sum(spent for _, spent in seconds)
        return None


def geometric_mean(values: tuple[float, ...]) -> float | None:
    """Returns the geometric mean of positive numbers; None for an empty tuple."""
    if values:
        return statistics.geometric_mean(values)
    return None


def regret_in_sample(matrix: TimeMatrix, portfolio: Portfolio) -> Regret:
    """Returns the efficiency of each problem with the configuration of ``portfolio`` that serves it.

    An efficiency is unknown where no configuration serves the problem, or the one that does has no time.
    """
    pairs = enumerate(portfolio.serving)
    return _regret(matrix, tuple(_loss(matrix, row, column) for row, column in pairs))


def regret_held_out(
    matrix: TimeMatrix,
    size: int,
    allowed: tuple[int, ...] | None = None,
    universal: tuple[int, ...] | None = None,
) -> Regret:
    """Returns the efficiency of each problem with a portfolio that was chosen without that problem.

    Chosen columns without a time on the problem do not count, so that the efficiency is a lower bound.
    ``size``: columns of each portfolio, fewer if fewer are usable; ``allowed``, ``universal``: as for
    ``choose_portfolio``.
    """
    losses = []
    for row in range(len(matrix.problems)):
        others = without(matrix, row)
        possible = min(size, len(usable_columns(others, allowed)))
        chosen = choose_portfolio(others, possible, allowed, universal).columns if possible else ()
        losses.append(_loss(matrix, row, fastest(matrix, row, chosen)))
    return _regret(matrix, tuple(losses))


def fastest(matrix: TimeMatrix, row: int, columns: tuple[int, ...]) -> int | None:
    """Returns which of ``columns`` (indices) has the least measured time on the problem ``row`` (index).

    None if none of them has a time.
    """
    timed = {column: time for column in columns if (time := matrix.times_s[row][column]) is not None}
    return min(timed, key=lambda column: timed[column], default=None)


def without(matrix: TimeMatrix, *rows: int) -> TimeMatrix:
    """Returns the matrix without the problems whose indices are ``rows``."""
    kept = [row for row in range(len(matrix.problems)) if row not in rows]
    return replace(
        matrix,
        problems=tuple(matrix.problems[row] for row in kept),
        counts=tuple(matrix.counts[row] for row in kept),
        times_s=tuple(matrix.times_s[row] for row in kept),
        applies=tuple(matrix.applies[row] for row in kept),
        costs=tuple(matrix.costs[row] for row in kept),
    )


def _loss(matrix: TimeMatrix, row: int, column: int | None) -> ProblemEfficiency:
    time_s = None if column is None else matrix.times_s[row][column]
    if column is None or time_s is None:
        return ProblemEfficiency(matrix.problems[row], column, None)
    best_s = min(time for time in matrix.times_s[row] if time is not None)
    return ProblemEfficiency(matrix.problems[row], column, best_s / time_s)


def _regret(matrix: TimeMatrix, losses: tuple[ProblemEfficiency, ...]) -> Regret:
    best_s = tuple(None if np.isnan(time_s) else float(time_s) for time_s in matrix.best_s())
    return Regret(losses, matrix.counts, best_s)


# Chooses a configuration for any problem from times of tuned problems, and checks this by leave-one-out.

# Sizes are compared as they are: nothing is rounded to buckets, and a range is closed at both ends. In order:
# the problem itself was tuned; the same n and k were, with fewer and with more rows; else the cost model
# decides, corrected by what was measured on problems of similar sizes.
TUNED, SAME_WEIGHTS, MODEL = SOURCES = ("tuned", "same n and k", "cost model")


@dataclass(frozen=True)
class NewProblem:
    """A problem to rank configurations for: per configuration, if it applies, and its cost-model estimate."""

    problem: Problem
    applies: tuple[bool, ...]  # per column of the matrix
    costs: tuple[float, ...]  # per column, of the cost model; inf where there is none


@dataclass(frozen=True)
class RankedColumns:
    """Columns of a matrix for a problem, the best first, and how they were ranked."""

    columns: tuple[int, ...]  # (): none applies
    source: str  # one of SOURCES


def ranked_columns(
    matrix: TimeMatrix, new_problem: NewProblem, columns: Iterable[int] | None = None
) -> RankedColumns:
    """Returns the columns that apply to a problem, the best first.

    For a problem of the matrix with times, only its timed columns, ranked by time. Else columns are ranked by
    the times of the problems with the same n and k and the nearest m; without such problems by the corrected
    cost model. ``columns``: to choose from, None: all.
    """
    candidate_columns = range(len(matrix.columns)) if columns is None else columns
    usable = [column for column in candidate_columns if new_problem.applies[column]]
    if new_problem.problem in matrix.problems:
        times = matrix.times()[matrix.problems.index(new_problem.problem)]
        timed = [column for column in usable if np.isfinite(times[column])]
        if timed:
            return RankedColumns(_ordered(matrix, timed, np.log(times)), TUNED)
    neighbours = _of_same_weights(matrix, new_problem.problem, usable)
    if neighbours:
        logs = np.where(matrix.is_applicable(), completed_times(matrix).logs, np.inf)[list(neighbours)]
        loss: Numbers = (logs - logs.min(axis=1, keepdims=True)).mean(axis=0)  # log(time / best time)
        return RankedColumns(_ordered(matrix, usable, loss), SAME_WEIGHTS)
    return RankedColumns(by_model(matrix, new_problem, usable), MODEL)


def by_model(matrix: TimeMatrix, new_problem: NewProblem, columns: Iterable[int]) -> tuple[int, ...]:
    """Returns ``columns`` by their cost-model estimate, the least first.

    The estimate is corrected by the residuals of those problems of the matrix that differ in sizes alone.
    """
    form, *forms = (
        replace(problem, sizes=(1, 1, 1), batch=1) for problem in (new_problem.problem, *matrix.problems)
    )
    like = [other == form for other in forms]
    octaves = octaves_of((*matrix.problems, new_problem.problem))
    known = KnownTimes(matrix.model_costs()[like], matrix.times()[like], octaves[:-1][like])
    expected = corrected_scores(known, np.array(new_problem.costs, np.float64), octaves[-1], WIDTH, SHRINKAGE)
    return _ordered(matrix, list(columns), expected)


def _of_same_weights(matrix: TimeMatrix, problem: Problem, usable: list[int]) -> tuple[int, ...]:
    """Returns the rows of the timed problems with the nearest m below and above, all else equal.

    At most two indices; () without such a problem, or if only one side has one and its m is more than
    ONE_SIDE_OCTAVES away. ``usable``: a problem counts if one of these columns has a time on it.
    """
    m = problem.sizes[0]
    is_timed = matrix.is_timed()[:, usable]
    row_of = {
        other.sizes[0]: row
        for row, other in enumerate(matrix.problems)
        if is_timed[row].any() and replace(other, sizes=(m, *other.sizes[1:])) == problem
    }
    below = max((size for size in row_of if size < m), default=None)
    above = min((size for size in row_of if size > m), default=None)
    nearest = [size for size in (below, above) if size is not None]
    if len(nearest) == 1 and abs(math.log2(nearest[0] / m)) > ONE_SIDE_OCTAVES:
        return ()
    return tuple(row_of[size] for size in nearest)


def _ordered(matrix: TimeMatrix, columns: list[int], logs: Numbers) -> tuple[int, ...]:
    order = sorted(columns, key=lambda column: (logs[column], column))
    if not order or not np.isfinite(logs[order[0]]):
        return tuple(order)
    uses = fastest_counts(matrix)
    # within NOISE times are equal: of these columns, the one that is fastest on most problems comes first
    near = [column for column in order if logs[column] <= logs[order[0]] + math.log1p(NOISE)]
    near.sort(key=lambda column: (-uses[column], logs[column], column))
    return (*near, *order[len(near) :])


def fastest_counts(matrix: TimeMatrix) -> tuple[int, ...]:
    """Returns, per configuration (column), on how many problems it has the least measured time."""
    times = np.where(matrix.is_timed(), matrix.times(), np.inf)
    rows = np.isfinite(times).any(axis=1)
    counts = np.bincount(times[rows].argmin(axis=1), minlength=len(matrix.columns))
    return tuple(map(int, counts))


@dataclass(frozen=True)
class HeldOutChoice:
    """The configuration chosen for a problem by the times of all other problems, and its efficiency."""

    problem: Problem
    column: int  # of the matrix
    source: str  # one of SOURCES
    efficiency: float | None  # best time of the problem / time with the choice; None: not timed


def held_out_choices(matrix: TimeMatrix) -> tuple[HeldOutChoice, ...]:
    """Returns, for each problem, the configuration that the times of all other problems rank first.

    Problems to which no column applies are left out.
    """
    efficiency = matrix.efficiency()
    choices = []
    for row, problem in enumerate(matrix.problems):
        new_problem = NewProblem(problem, matrix.applies[row], matrix.costs[row])
        ranked = ranked_columns(without(matrix, row), new_problem)
        if ranked.columns:
            column = ranked.columns[0]
            is_timed = matrix.times_s[row][column] is not None
            share = float(efficiency[row, column]) if is_timed else None
            choices.append(HeldOutChoice(problem, column, ranked.source, share))
    return tuple(choices)
