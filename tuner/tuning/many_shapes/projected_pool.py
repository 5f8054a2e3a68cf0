"""Projects a set of configurations onto every problem of a group, with costs of the cost model."""

from dataclasses import dataclass

import numpy as np

from tuner.analysis.many_shapes.column_pool import ColumnPool
from tuner.core.candidate import Candidate
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.cost_model.row_cost import model_of
from tuner.space.enumeration import first_broken_preference
from tuner.space.projection import Projection
from tuner.space.row_keys import Indices
from tuner.space.search_space import SearchSpace


@dataclass(frozen=True)
class PoolProblem:
    """A problem of a group, how often it occurs, and the search spaces of the strategies that can do it."""

    problem: Problem
    count: int
    spaces: tuple[SearchSpace, ...]


@dataclass(frozen=True)
class _Row:
    candidates: tuple[Candidate | None, ...]  # per column
    costs: tuple[float, ...]
    is_demoted: tuple[bool, ...]


def projected_pool(
    problems: tuple[PoolProblem, ...], columns: tuple[Candidate, ...], machine: Machine, threads: int
) -> ColumnPool:
    """Returns the pool of unprojected configurations ``columns`` for the problems of a group."""
    rows = [_row(each, columns, machine, threads) for each in problems]
    return ColumnPool(
        tuple(each.problem for each in problems),
        tuple(each.count for each in problems),
        columns,
        tuple(row.candidates for row in rows),
        tuple(row.costs for row in rows),
        tuple(row.is_demoted for row in rows),
    )


def _row(of: PoolProblem, columns: tuple[Candidate, ...], machine: Machine, threads: int) -> _Row:
    candidates: list[Candidate | None] = [None] * len(columns)
    costs, is_demoted = np.full(len(columns), np.inf), np.zeros(len(columns), np.bool_)
    for space in of.spaces:
        projection = Projection(space)
        own = [place for place, column in enumerate(columns) if column.strategy == space.strategy]
        for place in own:
            candidates[place] = projection.of(columns[place])
        there = [place for place in own if candidates[place] is not None]
        if not there:
            continue
        index = _index(space, [candidate for place in there if (candidate := candidates[place])])
        is_demoted[there] = first_broken_preference(space, index) < len(space.preferences)
        model = model_of(space, of.problem, machine, threads)
        if model is not None:
            costs[there] = model.costs(index, {})
    return _Row(tuple(candidates), tuple(costs.tolist()), tuple(is_demoted.tolist()))


def _index(space: SearchSpace, candidates: list[Candidate]) -> Indices:
    """Returns the choices of candidates [candidate, knob] as positions among the choices of each knob."""
    picks = [
        [knob.choices.index(dict(candidate.choices)[knob.name]) for knob in space.knobs]
        for candidate in candidates
    ]
    return np.array(picks, np.uint32).reshape(len(candidates), len(space.knobs))
