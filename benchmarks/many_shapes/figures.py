"""What a matrix of times says without another run: portfolios, one budget, dispatch of shapes held out."""

import statistics
from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.many_shapes_replay import replayed
from tuner.analysis.portfolio import (
    NewProblem,
    by_model,
    choose_portfolio,
    fastest,
    geometric_mean,
    ranked_columns,
    regret_held_out,
    regret_in_sample,
    without,
)
from tuner.analysis.scheduler import ColumnPool
from tuner.analysis.time_matrix import TimeMatrix

SIZES = (1, 2, 3, 5, 8, 10)
SEEDS = 5
TRIED = 3  # configurations measured at first use


def figures(matrix: TimeMatrix, pool: ColumnPool) -> dict[str, Any]:
    """Returns all figures: efficiencies (best time of the matrix / time), geometric mean and worst."""
    return {
        "portfolio": {f"K={size}": _portfolio(matrix, size) for size in SIZES if size <= len(matrix.columns)},
        "scheduler": _scheduler(matrix, pool),
        "m_held_out": _held_out(matrix, lambda problem: problem.sizes[0]),
        "weights_held_out": _held_out(matrix, lambda problem: problem.sizes[1:]),
    }


def _portfolio(matrix: TimeMatrix, size: int) -> dict[str, Any]:
    inside = regret_in_sample(matrix, choose_portfolio(matrix, size))
    outside = regret_held_out(matrix, size)
    return {
        "geomean": inside.geomean,
        "worst": inside.worst,
        "total": inside.total,
        "held_out_geomean": outside.geomean,
        "held_out_worst": outside.worst,
    }


def _scheduler(matrix: TimeMatrix, pool: ColumnPool) -> dict[str, float]:
    """Returns the means over seeds of what one budget finds, by its share of all cells."""
    times = [list(row) for row in matrix.times_s]
    rows = [replayed(pool, times, seed) for seed in range(SEEDS)]
    return {key: statistics.mean(row[key] for row in rows) for key in rows[0] if key != "seed"}


def _held_out(matrix: TimeMatrix, group_of: Callable[[Any], object]) -> dict[str, Any]:
    """Returns efficiencies on problems held out, all of one group at once: what is chosen without them."""
    found: dict[str, list[float]] = {}
    for group in dict.fromkeys(map(group_of, matrix.problems)):
        rows = [row for row, problem in enumerate(matrix.problems) if group_of(problem) == group]
        others = without(matrix, *rows)
        kept = choose_portfolio(others, min(8, len(matrix.columns))).columns
        for row in rows:
            new_problem = NewProblem(matrix.problems[row], matrix.applies[row], matrix.costs[row])
            usable = [column for column, applies in enumerate(new_problem.applies) if applies]
            by_order = ranked_columns(others, new_problem).columns
            order_of_kept = ranked_columns(others, new_problem, kept).columns
            model = by_model(others, new_problem, usable)
            for name, columns in (
                ("nothing measured", by_order[:1]),
                ("nothing measured, of K=8", order_of_kept[:1]),
                ("model and neighbours", model[:1]),
                (f"first use, {TRIED} measured", by_order[:TRIED]),
                (f"first use, {TRIED} measured, of K=8", order_of_kept[:TRIED]),
                ("all of K=8 measured", kept),
            ):
                found.setdefault(name, []).append(_efficiency(matrix, row, columns))
    return {
        name: {"geomean": geometric_mean(tuple(each)), "worst": min(each)} for name, each in found.items()
    }


def _efficiency(matrix: TimeMatrix, row: int, columns: Iterable[int]) -> float:
    """Returns best time / least time of some columns on a problem."""
    times = [time for time in matrix.times_s[row] if time is not None]
    column = fastest(matrix, row, tuple(columns))
    if column is None:
        raise SystemExit(f"{matrix.problems[row].key}: none of the chosen configurations has a time")
    time_s = matrix.times_s[row][column]
    assert time_s is not None
    return min(times) / time_s
