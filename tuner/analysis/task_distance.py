"""How unlike two tasks of tuning are: in octaves, as if all that differs were sizes."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from tuner.core.machine import Machine
from tuner.core.problem import Problem

Item = TypeVar("Item")

# What a difference counts as, in doublings of one extent. They rank what is known, nothing more: at equal
# sizes another layout is nearer than another type, and what an other machine likes is asked last.
EPILOGUE = 0.5
LAYOUT = 1.0
OUTPUT = 0.5
DTYPE = 2.0
THREADS = 1.0  # per doubling
SAME_KIND = 1.5  # another machine with the same instruction set, or chip
OTHER_KIND = 4.0


@dataclass(frozen=True)
class TuningTask:
    """What is tuned, and for what."""

    problem: Problem
    machine: Machine
    threads: int


def nearest_first(
    task: TuningTask, items: Iterable[Item], task_of: Callable[[Item], TuningTask]
) -> list[Item]:
    """Returns those that something carries over from, the nearest first; equally near ones as given."""
    apart = ((distance(task, task_of(item)), item) for item in items)
    known = [(far, item) for far, item in apart if far is not None]
    return [item for _, item in sorted(known, key=lambda pair: pair[0])]


def distance(task: TuningTask, other: TuningTask) -> float | None:
    """Returns how far apart two tasks are, 0 for equal ones; None where nothing carries over."""
    ours, theirs = task.problem, other.problem
    if ours.operation != theirs.operation or bool(task.machine.chip) != bool(other.machine.chip):
        return None
    octaves = [math.log2(size / known) for size, known in zip(ours.extents, theirs.extents, strict=True)]
    words = (
        (EPILOGUE, ours.epilogue != theirs.epilogue),
        (LAYOUT, ours.layout != theirs.layout),
        (OUTPUT, ours.output != theirs.output),
        (DTYPE, ours.dtype != theirs.dtype),
        (THREADS, abs(math.log2(task.threads / other.threads)) if task.threads and other.threads else 0.0),
        (1.0, machine_distance(task.machine, other.machine)),
    )
    return math.hypot(*octaves, *(cost * amount for cost, amount in words))


def machine_distance(machine: Machine, other: Machine) -> float:
    """Returns 0 for machines whose times compare, little for those that run the same code."""
    if machine.name == other.name:
        return 0.0
    is_same_kind = (machine.isa, machine.chip) == (other.isa, other.chip)
    return SAME_KIND if is_same_kind else OTHER_KIND
