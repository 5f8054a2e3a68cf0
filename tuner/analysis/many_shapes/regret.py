"""How much speed a portfolio loses: on the problems that it was chosen on, and on problems held out."""

import math
from dataclasses import dataclass, replace

import numpy as np

from tuner.analysis.many_shapes.portfolio import Portfolio, choose_portfolio, usable_columns
from tuner.analysis.many_shapes.time_matrix import TimeMatrix
from tuner.core.problem import Problem


@dataclass(frozen=True)
class ProblemLoss:
    """What one problem loses with the configuration that serves it."""

    problem: Problem
    column: int | None  # of the matrix; None: no configuration with a time serves the problem
    efficiency: float | None  # best time / time, 0 to 1; None: not known


@dataclass(frozen=True)
class Regret:
    """The loss of each problem. Problems without a known efficiency count in no figure."""

    losses: tuple[ProblemLoss, ...]
    counts: tuple[int, ...]  # how often each problem occurs
    best_s: tuple[float | None, ...]  # least measured time of each problem
    is_held_out: bool  # True: each problem was held out while its portfolio was chosen

    @property
    def known(self) -> tuple[float, ...]:
        """Returns the known efficiencies, in the order of the problems."""
        return tuple(each.efficiency for each in self.losses if each.efficiency is not None)

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
        """Returns the share of speed for all problems together, each as often as it occurs; None: unknown."""
        rows = [
            (best_s * count, best_s * count / loss.efficiency)
            for loss, count, best_s in zip(self.losses, self.counts, self.best_s, strict=True)
            if loss.efficiency is not None and best_s is not None
        ]
        return sum(best for best, _ in rows) / sum(spent for _, spent in rows) if rows else None


def geometric_mean(values: tuple[float, ...]) -> float | None:
    """Returns the geometric mean of positive numbers; None of no number."""
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if values else None


def regret_in_sample(matrix: TimeMatrix, portfolio: Portfolio) -> Regret:
    """Returns what each problem loses with the column that serves it, where that has a time."""
    pairs = enumerate(portfolio.serving)
    return _regret(matrix, tuple(_loss(matrix, row, column) for row, column in pairs), is_held_out=False)


def regret_held_out(
    matrix: TimeMatrix,
    size: int,
    allowed: tuple[int, ...] | None = None,
    universal: tuple[int, ...] | None = None,
) -> Regret:
    """Returns what each problem loses with a portfolio of ``size`` columns chosen without the problem.

    All columns of that portfolio count as measured on the problem. A column without a time there is left out,
    so that the loss is an upper bound. Where fewer columns apply to the other problems, all are in it.
    ``allowed`` and ``universal``: as of ``choose_portfolio``.
    """
    losses = []
    for row in range(len(matrix.problems)):
        others = without(matrix, row)
        possible = min(size, len(usable_columns(others, allowed)))
        chosen = choose_portfolio(others, possible, allowed, universal).columns if possible else ()
        losses.append(_loss(matrix, row, fastest(matrix, row, chosen)))
    return _regret(matrix, tuple(losses), is_held_out=True)


def fastest(matrix: TimeMatrix, row: int, columns: tuple[int, ...]) -> int | None:
    """Returns the one of some columns with the least time on the problem ``row``; None without any time."""
    timed = {column: time for column in columns if (time := matrix.times_s[row][column]) is not None}
    return min(timed, key=lambda column: timed[column], default=None)


def without(matrix: TimeMatrix, *rows: int) -> TimeMatrix:
    """Returns the matrix without some of its problems."""
    kept = [row for row in range(len(matrix.problems)) if row not in rows]
    return replace(
        matrix,
        problems=tuple(matrix.problems[row] for row in kept),
        counts=tuple(matrix.counts[row] for row in kept),
        times_s=tuple(matrix.times_s[row] for row in kept),
        applies=tuple(matrix.applies[row] for row in kept),
        costs=tuple(matrix.costs[row] for row in kept),
    )


def _loss(matrix: TimeMatrix, row: int, column: int | None) -> ProblemLoss:
    time_s = None if column is None else matrix.times_s[row][column]
    if column is None or time_s is None:
        return ProblemLoss(matrix.problems[row], column, None)
    best_s = min(time for time in matrix.times_s[row] if time is not None)
    return ProblemLoss(matrix.problems[row], column, best_s / time_s)


def _regret(matrix: TimeMatrix, losses: tuple[ProblemLoss, ...], *, is_held_out: bool) -> Regret:
    best_s = tuple(None if np.isnan(each) else float(each) for each in matrix.best_s())
    return Regret(losses, matrix.counts, best_s, is_held_out)
