"""The distance between two tuning tasks, in octaves: as if every difference were one of sizes."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from tuner.core.machine import Machine
from tuner.core.problem import Problem

Item = TypeVar("Item")

# Weights of differences, in doublings of one extent. They only rank known tasks: at equal sizes another
# layout is nearer than another type, and another machine is farthest.
EPILOGUE = 0.5
LAYOUT = 1.0
OUTPUT = 0.5
ALIGN = 0.25
CACHE = 0.5
DTYPE = 2.0
THREADS = 1.0  # per doubling
SAME_KIND = 1.5  # another machine with the same instruction set, or chip
OTHER_KIND = 4.0


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

    ``task_of`` returns an item's task. Items without a distance are left out; equal distances keep the order.
    """
    apart = ((distance(task, task_of(item)), item) for item in items)
    known = [(far, item) for far, item in apart if far is not None]
    return [item for _, item in sorted(known, key=lambda pair: pair[0])]


def distance(task: TuningTask, other: TuningTask) -> float | None:
    """Returns how different two tuning tasks are, in octaves (doublings of one size); 0 for equal tasks.

    None for different operations, or where one is for a CPU and the other for a GPU.
    """
    ours, theirs = task.problem, other.problem
    if ours.operation != theirs.operation or bool(task.machine.chip) != bool(other.machine.chip):
        return None
    sizes = zip((ours.batch, *ours.sizes), (theirs.batch, *theirs.sizes), strict=True)
    octaves = [math.log2(size / known) for size, known in sizes]
    options = (
        (EPILOGUE, (ours.epilogue, ours.group) != (theirs.epilogue, theirs.group)),
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
    """Returns the distance in octaves: 0 for machines with equal names, whose times are comparable.

    Else SAME_KIND (1.5) for the same instruction set and chip, OTHER_KIND (4) for any other machine.
    """
    if machine.name == other.name:
        return 0.0
    is_same_kind = (machine.isa, machine.chip) == (other.isa, other.chip)
    return SAME_KIND if is_same_kind else OTHER_KIND
