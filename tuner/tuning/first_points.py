"""What a run proposes before its sampler: chosen when it begins, stored, proposed again when it resumes."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tuner.feasible import FeasibleSet
from tuner.first_point import SEED, SPACE_FILE, FirstPoint
from tuner.machine import Machine
from tuner.nearest import Task
from tuner.nearest_row import nearest_row
from tuner.runs import RunSettings
from tuner.space import Candidate
from tuner.tuning.composition import Composition, Plan
from tuner.tuning.known import known_resources, known_tasks
from tuner.warm_start import warm_points

if TYPE_CHECKING:
    from tuner.db.store import Store


def planned(
    settings: RunSettings, machine: Machine, composition: Composition, store: "Store"
) -> tuple[RunSettings, Plan]:
    """Returns the settings with all that comes first, and the plan; settings that say it stay as they are."""
    if settings.first is not None:
        return settings, composition.plan(settings, machine)
    task = Task(settings.problem, machine, settings.threads)
    wishes = warm_points(task, known_tasks(settings, machine, store))
    # of a space that is sampled the plan takes in what is feasible of them
    plan = composition.plan(replace(settings, first=wishes), machine)
    seeds = plan.seeds(known_resources(settings, machine, store))
    return replace(settings, first=_first_points(wishes, plan, seeds)), plan


def rows_of_first(settings: RunSettings, plan: Plan) -> tuple[int, ...]:
    """Returns the rows of the stored points; of a run that is older than these, those of the file."""
    if settings.first is None:
        return plan.first
    rows = (plan.feasible.row_of(point.candidate) for point in settings.first)
    return tuple(row for row in rows if row is not None)


def _first_points(
    wishes: tuple[FirstPoint, ...], plan: Plan, seeds: tuple[int, ...]
) -> tuple[FirstPoint, ...]:
    """Returns the wishes made feasible, the file's points, the seeds; a point that comes twice once."""
    listed = (FirstPoint(plan.feasible.candidate(row), SPACE_FILE) for row in plan.first)
    seeded = (FirstPoint(plan.feasible.candidate(row), SEED) for row in seeds)
    points: dict[Candidate, FirstPoint] = {}
    for point in (*_made_feasible(wishes, plan.feasible), *listed, *seeded):
        points.setdefault(point.candidate, point)
    return tuple(points.values())


def _made_feasible(wishes: tuple[FirstPoint, ...], feasible: FeasibleSet) -> Iterator[FirstPoint]:
    """Yields the wishes, each at the nearest point that there is."""
    for wish in wishes:
        row = nearest_row(wish.candidate, feasible)
        if row is not None:
            yield replace(wish, candidate=feasible.candidate(row))
