"""Points that a run proposes before its sampler does.

The points are chosen when the run begins, stored, and proposed again when the run resumes.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from tuner.analysis.task_distance import TuningTask
from tuner.analysis.warm_start import warm_points
from tuner.core.candidate import Candidate
from tuner.core.machine import Machine
from tuner.core.runs import SEED, SPACE_FILE, FirstPoint, RunSettings
from tuner.space.feasible_set import FeasibleSet
from tuner.space.nearest_row import nearest_row
from tuner.tuning.earlier_runs import EarlierRuns
from tuner.tuning.outcome_source import OutcomeSource, Plan

if TYPE_CHECKING:
    from tuner.db.store import Store


def planned(
    settings: RunSettings, machine: Machine, source: OutcomeSource, store: "Store"
) -> tuple[RunSettings, Plan]:
    """Returns a run's settings with its first points chosen, and the plan: what the run may try.

    First points are feasible candidates that are proposed before the sampler's: warm-start points of similar
    tasks in ``store``, points of the space file, seeds of a cost model. Settings that have first points
    already are returned unchanged. Raises UsageError where nothing can be tried.
    """
    if settings.first is not None:
        return settings, source.plan(settings, machine)
    task, earlier = TuningTask(settings.problem, machine, settings.threads), EarlierRuns(store)
    warm_start_points = warm_points(task, earlier.known_tasks(settings, machine))
    # a plan of a sampled space also contains those warm-start points that are feasible
    plan = source.plan(replace(settings, first=warm_start_points), machine)
    seeds = plan.seeds(earlier.known_resources(settings, machine))
    return replace(settings, first=_first_points(warm_start_points, plan, seeds)), plan


def rows_of_first(settings: RunSettings, plan: Plan) -> tuple[int, ...]:
    """Returns the rows in the plan's feasible set of the candidates that a run proposes first.

    These are the first points of the settings, except those that are not feasible; where the settings have
    none stored, the rows that the plan lists.
    """
    if settings.first is None:
        return plan.first
    rows = (plan.feasible.row_of(point.candidate) for point in settings.first)
    return tuple(row for row in rows if row is not None)


def _first_points(
    warm_start_points: tuple[FirstPoint, ...], plan: Plan, seeds: tuple[int, ...]
) -> tuple[FirstPoint, ...]:
    """Returns feasible warm-start points, interleaved with the space file's points, then the seeds."""
    listed = (FirstPoint(plan.feasible.candidate(row), SPACE_FILE) for row in plan.first)
    seeded = (FirstPoint(plan.feasible.candidate(row), SEED) for row in seeds)
    return interleaved(tuple(_made_feasible(warm_start_points, plan.feasible)), (*listed, *seeded))


def interleaved(known: tuple[FirstPoint, ...], others: tuple[FirstPoint, ...]) -> tuple[FirstPoint, ...]:
    """Returns the first of ``known``, the first of ``others``, the second of each, and so on.

    Of points with equal candidates only one is kept, that of ``known`` if it has one.
    """
    known = _distinct(known)
    others = _distinct((*known, *others))[len(known) :]
    return tuple(point for turn in zip_longest(known, others) for point in turn if point is not None)


def _distinct(points: tuple[FirstPoint, ...]) -> tuple[FirstPoint, ...]:
    found: dict[Candidate, FirstPoint] = {}
    for point in points:
        found.setdefault(point.candidate, point)
    return tuple(found.values())


def _made_feasible(warm_start_points: tuple[FirstPoint, ...], feasible: FeasibleSet) -> Iterator[FirstPoint]:
    """Yields each warm-start point, moved to the nearest feasible configuration."""
    for warm_start_point in warm_start_points:
        row = nearest_row(warm_start_point.candidate, feasible)
        if row is not None:
            yield replace(warm_start_point, candidate=feasible.candidate(row))
