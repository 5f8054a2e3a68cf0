"""The pool of a campaign: configurations to try on every problem, with their costs by the cost model.

A configuration is projected onto a problem: replaced by the nearest one that the problem's constraints allow.
"""

from dataclasses import dataclass

import numpy as np

from tuner.analysis.scheduler import ColumnPool
from tuner.core.candidate import Candidate
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.search.cost_model.configurations import model_of
from tuner.space.enumeration import Indices, first_broken_preference
from tuner.space.projection import Projection
from tuner.space.search_space import SearchSpace


@dataclass(frozen=True)
class PoolProblem:
    """A problem of a campaign, how often it occurs, and the search spaces of the strategies for it."""

    problem: Problem
    count: int
    spaces: tuple[SearchSpace, ...]


@dataclass(frozen=True)
class _Projected:
    candidates: tuple[Candidate | None, ...]  # per column
    costs: tuple[float, ...]
    is_demoted: tuple[bool, ...]


def projected_pool(
    problems: tuple[PoolProblem, ...], columns: tuple[Candidate, ...], machine: Machine, threads: int
) -> ColumnPool:
    """Returns the pool of a campaign: the configurations ``columns``, projected onto each of its problems.

    Where a configuration cannot compute a problem its projection is None; where there is no cost model its
    cost is inf.
    """
    projected = [_projected(problem, columns, machine, threads) for problem in problems]
    return ColumnPool(
        tuple(problem.problem for problem in problems),
        tuple(problem.count for problem in problems),
        columns,
        tuple(columns_of.candidates for columns_of in projected),
        tuple(columns_of.costs for columns_of in projected),
        tuple(columns_of.is_demoted for columns_of in projected),
    )


def _projected(
    pool_problem: PoolProblem, columns: tuple[Candidate, ...], machine: Machine, threads: int
) -> _Projected:
    candidates: list[Candidate | None] = [None] * len(columns)
    costs = np.full(len(columns), np.inf)
    is_demoted = np.zeros(len(columns), np.bool_)
    for space in pool_problem.spaces:
        projection = Projection(space)
        # columns, and the positions of their values among their knobs' choices
        applicable = []
        picks = []
        for column_index, column in enumerate(columns):
            candidate = projection.of(column) if column.strategy == space.strategy else None
            if candidate is not None:
                candidates[column_index] = candidate
                applicable.append(column_index)
                values = dict(candidate.choices)
                picks.append([knob.choices.index(values[knob.name]) for knob in space.knobs])
        if not applicable:
            continue
        index: Indices = np.array(picks, np.uint32).reshape(len(applicable), len(space.knobs))
        is_demoted[applicable] = first_broken_preference(space, index) < len(space.preferences)
        model = model_of(space, pool_problem.problem, machine, threads)
        if model is not None:
            costs[applicable] = model.costs(index, {})
    return _Projected(tuple(candidates), tuple(costs.tolist()), tuple(is_demoted.tolist()))
