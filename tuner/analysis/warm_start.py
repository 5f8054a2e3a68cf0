"""Warm start: the distance between tuning tasks, and the best candidates of the nearest tasks.

``nearest_first`` sorts earlier tasks by ``distance``. ``warm_points`` then takes the best candidates of the
nearest ones (``Known``) in turn: the best of each task, the second of each, and so on.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TypeVar

from tuner.core.candidate import Candidate
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.core.runs import WARM_START, InitialConfiguration

Item = TypeVar("Item")
Point = tuple[Candidate, str]  # (candidate, who measured it)

# Weights of differences, in doublings of one extent. They only rank known tasks: at equal sizes another
# layout is nearer than another type, and another kind of machine is farthest.
EPILOGUE = 0.5
LAYOUT = 1.0
OUTPUT = 0.5
ALIGN = 0.25
CACHE = 0.5
DTYPE = 2.0
THREADS = 1.0  # per doubling
SAME_KIND = 1.5  # another machine with the same instruction set, or chip
OTHER_KIND = 4.0
SPREAD_POINTS = 4  # of the same space on another machine: the prior of its times covers what is near them
TASKS = 4  # nearest tasks that warm-start points are taken from
POINTS = 8  # warm-start points in all


@dataclass(frozen=True)
class TuningTask:
    """A problem, and the machine and number of threads that it is tuned for."""

    problem: Problem
    machine: Machine
    threads: int


def nearest_first(
    task: TuningTask, items: Iterable[Item], task_of: Callable[[Item], TuningTask]
) -> list[Item]:
    """Returns the items sorted by the distance of their task from ``task``, the nearest first.

    ``task_of`` returns the task of an item. Items without a distance are left out: those of another
    operation, and a CPU's for a GPU or vice versa.
    """
    apart = ((distance(task, task_of(item)), item) for item in items)
    known = [(far, item) for far, item in apart if far is not None]
    return [item for _, item in sorted(known, key=lambda pair: pair[0])]


def distance(task: TuningTask, other: TuningTask) -> float | None:
    """Returns how different two tasks are, in octaves of size.

    None for other operations, or a CPU and a GPU.
    """
    ours = task.problem.scheduled_as
    theirs = other.problem.scheduled_as
    if ours.operation != theirs.operation or bool(task.machine.chip) != bool(other.machine.chip):
        return None
    sizes = zip((ours.batch, *ours.sizes), (theirs.batch, *theirs.sizes), strict=True)
    octaves = [math.log2(size / known) for size, known in sizes]
    options = (
        (EPILOGUE, ours.computed != theirs.computed),
        (LAYOUT, ours.layout != theirs.layout),
        (OUTPUT, ours.output != theirs.output),
        (ALIGN, ours.align != theirs.align),
        (CACHE, ours.cache != theirs.cache),
        (DTYPE, ours.dtype != theirs.dtype),
        (THREADS, abs(math.log2(task.threads / other.threads)) if task.threads and other.threads else 0.0),
        (1.0, machine_distance(task.machine, other.machine)),
    )
    return math.hypot(*octaves, *(cost * amount for cost, amount in options))


def machine_distance(machine: Machine, other: Machine) -> float:
    """Returns how different two machines are, in octaves of size.

    0.0 for equal names, SAME_KIND for equal ISA and chip, else OTHER_KIND.
    """
    if machine.name == other.name:
        return 0.0
    is_same_kind = (machine.isa, machine.chip) == (other.isa, other.chip)
    if is_same_kind:
        return SAME_KIND
    return OTHER_KIND


def is_same_space(task: TuningTask, other: TuningTask) -> bool:
    """Returns whether two tasks have the same problem and number of threads, on any machines."""
    return (task.problem, task.threads) == (other.problem, other.threads)


def is_same_product(problem: Problem, other: Problem) -> bool:
    """Returns whether a script for one problem also fits the other, as for a fusion that is a plain matmul.

    The problems may differ in alignment and in the state of the caches.
    """
    ours = problem.scheduled_as
    theirs = replace(other.scheduled_as, align=ours.align, cache=ours.cache)
    return ours == theirs


def is_elsewhere(task: TuningTask, other: TuningTask) -> bool:
    """Returns whether two tasks have the same problem and number of threads, but different machines."""
    return is_same_space(task, other) and task.machine.name != other.machine.name


def spread(points: tuple[Point, ...]) -> tuple[Point, ...]:
    """Returns the first of ``points`` and up to 3 more that differ most from those chosen before.

    A point is (candidate, its source). The next point is the one that differs in the most knobs from the
    chosen point nearest to it; among equals the first.
    """
    chosen: list[Point] = list(points[:1])
    left = list(points[1:])
    while left and len(chosen) < SPREAD_POINTS:
        apart = [min(_differing(candidate, other) for other, _ in chosen) for candidate, _ in left]
        chosen.append(left.pop(apart.index(max(apart))))
    return tuple(chosen)


def _differing(candidate: Candidate, other: Candidate) -> int:
    values = dict(other.choices)
    return (candidate.strategy != other.strategy) + sum(
        values.get(name) != value for name, value in candidate.choices
    )


@dataclass(frozen=True)
class Known:
    """The fastest candidates of one tuning task, from earlier runs or a recording, with their source."""

    task: TuningTask
    points: tuple[Point, ...]  # the fastest first

    def initial_configurations(self, task: TuningTask) -> Iterator[InitialConfiguration]:
        for candidate, who in self.points:
            source = f"{_text(self.task.problem, task.problem)} ({who})"
            yield InitialConfiguration(candidate, WARM_START, source)


def warm_points(task: TuningTask, known: tuple[Known, ...]) -> tuple[InitialConfiguration, ...]:
    """Returns up to POINTS (8) configurations to begin with, from the TASKS (4) nearest tasks.

    First the best one of each task, then the second of each, and so on.
    """
    nearest = nearest_first(task, known, lambda earlier: earlier.task)[:TASKS]
    chosen: dict[Candidate, InitialConfiguration] = {}
    for of_one_rank in zip_longest(*(earlier.initial_configurations(task) for earlier in nearest)):
        for point in of_one_rank:
            if point is not None and len(chosen) < POINTS:
                chosen.setdefault(point.candidate, point)
    return tuple(chosen.values())


def _text(problem: Problem, ours: Problem) -> str:
    problem = problem.scheduled_as
    ours = ours.scheduled_as
    pairs = (
        (problem.dtype, ours.dtype),
        (problem.layout, ours.layout),
        (problem.epilogue, ours.epilogue),
        (problem.result_dtype, ours.result_dtype),
        (f"align={problem.align}", f"align={ours.align}"),
        (f"cache={problem.cache}", f"cache={ours.cache}"),
    )
    other = dict.fromkeys(theirs for theirs, mine in pairs if theirs != mine)
    return " ".join((problem.shape, *other))
