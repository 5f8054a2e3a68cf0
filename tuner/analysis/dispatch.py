"""Chooses a configuration for any problem from times of tuned problems, and checks this by leave-one-out."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from tuner.analysis.portfolio import NOISE, without
from tuner.analysis.time_matrix import (
    KnownTimes,
    Numbers,
    TimeMatrix,
    completed_times,
    corrected_scores,
    octaves_of,
)
from tuner.core.problem import Problem

# Sizes are compared as they are: nothing is rounded to buckets, and a range is closed at both ends. In order:
# the problem itself was tuned; the same n and k were, with fewer and with more rows; else the cost model
# decides, corrected by what was measured on problems of similar sizes.
TUNED, SAME_WEIGHTS, MODEL = SOURCES = ("tuned", "same n and k", "cost model")
WIDTH = 2.0  # of ``corrected_scores``, where every problem was timed; with 8, untuned problems lose 4 % more
ONE_SIDE_OCTAVES = 2.0  # how far m may lie outside of all tuned m of its weights: what was studied


@dataclass(frozen=True)
class NewProblem:
    """A problem to choose a configuration for, and what is known of each column (configuration) untimed."""

    problem: Problem
    applies: tuple[bool, ...]  # per column of the matrix
    costs: tuple[float, ...]  # per column, of the cost model; inf where there is none


@dataclass(frozen=True)
class RankedColumns:
    """Columns of a matrix for a problem, the one to use first, and where the order comes from."""

    columns: tuple[int, ...]  # (): none applies
    source: str  # one of SOURCES


def ranked_columns(
    matrix: TimeMatrix, new_problem: NewProblem, columns: Iterable[int] | None = None
) -> RankedColumns:
    """Returns the columns that apply to a problem, best first; of a tuned problem its timed columns."""
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
    """Returns columns ordered by model cost, corrected by the residuals of similar problems; best first."""
    kind, *kinds = (
        replace(each, sizes=(1, 1, 1), batch=1) for each in (new_problem.problem, *matrix.problems)
    )
    like = [each == kind for each in kinds]
    octaves = octaves_of((*matrix.problems, new_problem.problem))
    known = KnownTimes(matrix.model_costs()[like], matrix.times()[like], octaves[:-1][like])
    expected = corrected_scores(known, np.array(new_problem.costs, np.float64), octaves[-1], WIDTH)
    return _ordered(matrix, list(columns), expected)


def _of_same_weights(matrix: TimeMatrix, problem: Problem, usable: list[int]) -> tuple[int, ...]:
    """Returns the tuned problems with the nearest m below and above, all else equal to ``problem``."""
    m = problem.sizes[0]
    is_timed = matrix.is_timed()[:, usable]
    row_of = {
        other.sizes[0]: row
        for row, other in enumerate(matrix.problems)
        if is_timed[row].any() and replace(other, sizes=(m, *other.sizes[1:])) == problem
    }
    below = max((each for each in row_of if each < m), default=None)
    above = min((each for each in row_of if each > m), default=None)
    nearest = [each for each in (below, above) if each is not None]
    if len(nearest) == 1 and abs(math.log2(nearest[0] / m)) > ONE_SIDE_OCTAVES:
        return ()
    return tuple(row_of[each] for each in nearest)


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
    """Returns per column on how many problems it has the least measured time."""
    times = np.where(matrix.is_timed(), matrix.times(), np.inf)
    rows = np.isfinite(times).any(axis=1)
    counts = np.bincount(times[rows].argmin(axis=1), minlength=len(matrix.columns))
    return tuple(int(count) for count in counts)


@dataclass(frozen=True)
class HeldOutChoice:
    """The configuration that is chosen for a problem from the times of all other problems."""

    problem: Problem
    column: int  # of the matrix
    source: str  # one of SOURCES
    efficiency: float | None  # best time of the problem / time with the choice; None: not timed


def held_out_choices(matrix: TimeMatrix) -> tuple[HeldOutChoice, ...]:
    """Returns the choice for each problem, held out once; problems that no column applies to are left out."""
    efficiency, choices = matrix.efficiency(), []
    for row, problem in enumerate(matrix.problems):
        new_problem = NewProblem(problem, matrix.applies[row], matrix.costs[row])
        ranked = ranked_columns(without(matrix, row), new_problem)
        if ranked.columns:
            column = ranked.columns[0]
            is_timed = matrix.times_s[row][column] is not None
            share = float(efficiency[row, column]) if is_timed else None
            choices.append(HeldOutChoice(problem, column, ranked.source, share))
    return tuple(choices)
