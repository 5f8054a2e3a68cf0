"""What a run proposes before its sampler: chosen when it begins, stored, proposed again when it resumes."""

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
    """Returns the settings with all that comes first, and the plan; settings that say it stay as they are."""
    if settings.first is not None:
        return settings, source.plan(settings, machine)
    task, earlier = TuningTask(settings.problem, machine, settings.threads), EarlierRuns(store)
    warm_start_points = warm_points(task, earlier.known_tasks(settings, machine))
    # of a space that is sampled the plan takes in what is feasible of them
    plan = source.plan(replace(settings, first=warm_start_points), machine)
    seeds = plan.seeds(earlier.known_resources(settings, machine))
    return replace(settings, first=_first_points(warm_start_points, plan, seeds)), plan


def rows_of_first(settings: RunSettings, plan: Plan) -> tuple[int, ...]:
    """Returns the rows of the stored points; of a run that is older than these, those of the file."""
    if settings.first is None:
        return plan.first
    rows = (plan.feasible.row_of(point.candidate) for point in settings.first)
    return tuple(row for row in rows if row is not None)


def _first_points(
    warm_start_points: tuple[FirstPoint, ...], plan: Plan, seeds: tuple[int, ...]
) -> tuple[FirstPoint, ...]:
    """Returns the wishes made feasible, by turns with the file's points and then the seeds."""
    listed = (FirstPoint(plan.feasible.candidate(row), SPACE_FILE) for row in plan.first)
    seeded = (FirstPoint(plan.feasible.candidate(row), SEED) for row in seeds)
    return interleaved(tuple(_made_feasible(warm_start_points, plan.feasible)), (*listed, *seeded))


def interleaved(known: tuple[FirstPoint, ...], others: tuple[FirstPoint, ...]) -> tuple[FirstPoint, ...]:
    """Returns the first of each, the second of each, and so on; a point that comes twice once."""
    known = _distinct(known)
    others = _distinct((*known, *others))[len(known) :]
    return tuple(point for turn in zip_longest(known, others) for point in turn if point is not None)


def _distinct(points: tuple[FirstPoint, ...]) -> tuple[FirstPoint, ...]:
    found: dict[Candidate, FirstPoint] = {}
    for point in points:
        found.setdefault(point.candidate, point)
    return tuple(found.values())


def _made_feasible(warm_start_points: tuple[FirstPoint, ...], feasible: FeasibleSet) -> Iterator[FirstPoint]:
    """Yields the wishes, each at the nearest point that there is."""
    for warm_start_point in warm_start_points:
        row = nearest_row(warm_start_point.candidate, feasible)
        if row is not None:
            yield replace(warm_start_point, candidate=feasible.candidate(row))
