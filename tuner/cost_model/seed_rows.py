"""Seed configurations of a search: what the cost model ranks first, before anything was measured.

Processors: register tiles that keep the FMA units busy, packed panels that fit the caches
(``tuner.cost_model.cpu``). GPUs: grids that fill whole waves of multiprocessors with enough warps, and the
roofline of one multiprocessor (``tuner.cost_model.gpu``).
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tuner.core.candidate import Candidate
from tuner.core.kernel_program import Resources
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.cost_model.row_cost import AbstractModel, Counts, model_of
from tuner.space.feasible_set import FeasibleSet
from tuner.space.row_keys import Indices

SEEDS = 4  # per strategy, all of different shapes
WORTH = 1.5  # times the minimum cost: a configuration above is no seed
BLOCK_ROWS = 1 << 18  # configurations evaluated per batch
KEPT_ROWS = 1 << 12  # cheapest configurations kept per batch


def seed_rows(
    feasible: FeasibleSet,
    problem: Problem,
    machine: Machine,
    threads: int,
    resources: Mapping[Candidate, Resources] | None = None,  # of candidates that ptxas has compiled
) -> tuple[int, ...]:
    """Returns the indices in ``feasible`` of the configurations to try first, in order of estimated cost.

    At most 4 per strategy, each of another tile shape and at most 1.5 times as expensive as the strategy's
    cheapest. A configuration that breaks a preference of its strategy is left out, because the cost model
    does not include the reasons for preferences; so is one with register spills in ``resources``.
    """
    rows = np.flatnonzero(feasible.is_preferred)
    part = feasible.part(feasible.is_preferred)
    return tuple(int(rows[seed]) for seed in _seeds(part, problem, machine, threads, resources or {}))


def _seeds(
    feasible: FeasibleSet,
    problem: Problem,
    machine: Machine,
    threads: int,
    resources: Mapping[Candidate, Resources],
) -> tuple[int, ...]:
    found: list[tuple[float, int]] = []
    start = 0
    known = _known_rows(feasible, resources)
    for space, index in zip(feasible.spaces, feasible.index, strict=True):
        model = model_of(space, problem, machine, threads)
        if model is not None and len(index):
            own = {row - start: each for row, each in known.items() if start <= row < start + len(index)}
            found += [(cost, start + row) for cost, row in _chosen(model, index, own)]
        start += len(index)
    return tuple(row for _, row in sorted(found))


def _chosen(model: AbstractModel, index: Indices, known: Mapping[int, Resources]) -> list[tuple[float, int]]:
    """Returns (cycles, row) of the cheapest configurations, at most SEEDS, each of a different shape."""
    rows, cost = _cheapest(model, index, known)
    is_worth = cost <= WORTH * cost.min(initial=np.inf)
    chosen: dict[tuple[int, ...], tuple[float, int]] = {}
    for row, cycles in zip(rows[is_worth].tolist(), cost[is_worth].tolist(), strict=True):
        chosen.setdefault(model.shape_of(index[row]), (cycles, row))
        if len(chosen) == SEEDS:
            break
    return list(chosen.values())


def _cheapest(
    model: AbstractModel, index: Indices, known: Mapping[int, Resources]
) -> tuple[npt.NDArray[np.int64], Counts]:
    """Returns the rows of the cheapest configurations and their cycles, both in ascending order of cycles."""
    kept_rows, kept_costs = [], []
    for first in range(0, len(index), BLOCK_ROWS):
        part = {row - first: each for row, each in known.items() if first <= row < first + BLOCK_ROWS}
        cost = model.costs(index[first : first + BLOCK_ROWS], part)
        cost[[row for row, each in part.items() if each.spilled_bytes]] = np.inf  # the model counts no spills
        rows = np.argsort(cost, kind="stable")[:KEPT_ROWS]
        rows = rows[np.isfinite(cost[rows])]
        kept_rows.append(rows + first)
        kept_costs.append(cost[rows])
    rows, cost = np.concatenate(kept_rows), np.concatenate(kept_costs)
    order = np.lexsort((rows, cost))
    return rows[order], cost[order]


def _known_rows(feasible: FeasibleSet, resources: Mapping[Candidate, Resources]) -> dict[int, Resources]:
    rows = ((feasible.row_of(candidate), each) for candidate, each in resources.items())
    return {row: each for row, each in rows if row is not None}
