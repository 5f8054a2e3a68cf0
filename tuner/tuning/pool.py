"""The pool of a campaign: configurations projected onto each of its problems, with model costs."""

from dataclasses import dataclass

import numpy as np

from tuner.analysis.scheduler import ColumnPool
from tuner.core.candidate import Candidate
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.search.cost_model.configurations import model_of
from tuner.space.enumeration import Indices, first_broken_preference
from tuner.space.feasible_set import Projection
from tuner.space.search_space import SearchSpace


@dataclass(frozen=True)
class PoolProblem:
    """A problem of a campaign, how often it occurs, and the search spaces of strategies that can do it."""

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
    """Returns the pool of unprojected configurations ``columns`` for the problems of a campaign."""
    projected = [_projected(each, columns, machine, threads) for each in problems]
    return ColumnPool(
        tuple(each.problem for each in problems),
        tuple(each.count for each in problems),
        columns,
        tuple(each.candidates for each in projected),
        tuple(each.costs for each in projected),
        tuple(each.is_demoted for each in projected),
    )


def _projected(of: PoolProblem, columns: tuple[Candidate, ...], machine: Machine, threads: int) -> _Projected:
    candidates: list[Candidate | None] = [None] * len(columns)
    costs = np.full(len(columns), np.inf)
    is_demoted = np.zeros(len(columns), np.bool_)
    for space in of.spaces:
        projection = Projection(space)
        # columns, and the positions of their values among their knobs' choices
        applicable = []
        picks = []
        for number, column in enumerate(columns):
            candidate = projection.of(column) if column.strategy == space.strategy else None
            if candidate is not None:
                candidates[number] = candidate
                applicable.append(number)
                values = dict(candidate.choices)
                picks.append([knob.choices.index(values[knob.name]) for knob in space.knobs])
        if not applicable:
            continue
        index: Indices = np.array(picks, np.uint32).reshape(len(applicable), len(space.knobs))
        is_demoted[applicable] = first_broken_preference(space, index) < len(space.preferences)
        model = model_of(space, of.problem, machine, threads)
        if model is not None:
            costs[applicable] = model.costs(index, {})
    return _Projected(tuple(candidates), tuple(costs.tolist()), tuple(is_demoted.tolist()))
