"""What each group of a program takes: its time alone, its share, how near the roofline it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tuner.core.machine import Machine, Roofline
from tuner.core.target import Effort
from tuner.programs.run.grouped_code import CompiledGroup
from tuner.runtime.cpu.roofline import measure_roofline
from tuner.runtime.timing import measure

if TYPE_CHECKING:
    from tuner.programs.run.grouped_function import GroupedFunction

EFFORT = Effort(budget_s=0.05, min_samples=10, max_samples=100)  # of each group
THREADS = 1
MEASURED = ("f32", "f64", "bf16", "i8")  # types that a roofline is measured for; others count as f32


@dataclass(frozen=True)
class ExplainedGroup:
    """A group of a program with its time, alone and with warm caches."""

    group: CompiledGroup
    time_s: float | None = None  # None: it was not timed
    share: float | None = None  # of the sum of all groups' times
    roofline: float | None = None  # the least possible time over its time


def untimed(groups: Sequence[CompiledGroup]) -> tuple[ExplainedGroup, ...]:
    """Returns the groups of a program without times."""
    return tuple(ExplainedGroup(each) for each in groups)


def timed_groups(
    function: "GroupedFunction", arguments: tuple[Any, ...], machine: Machine, seed: int
) -> tuple[ExplainedGroup, ...]:
    """Times each group of a program alone, and measures the roofline of one thread.

    ``arguments`` are those of a call; ``seed`` is that of the measurement's random numbers. Pins the calling
    thread to a processor.
    """
    call = function.prepare(*arguments)
    function.repeat(call, 1)
    rng = np.random.default_rng(seed)
    groups = function.code.groups
    times_s = [
        measure(lambda times, number=number: function.repeat_group(call, number, times), EFFORT, rng).median_s  # type: ignore[misc]
        for number in range(len(groups))
    ]
    rooflines = {
        dtype: measure_roofline(dtype, THREADS, machine)
        for dtype in sorted({_dtype(each) for each in groups})
    }
    whole_s = sum(times_s)
    return tuple(
        ExplainedGroup(
            group, time_s, time_s / whole_s, least_s(group, rooflines[_dtype(group)], machine) / time_s
        )
        for group, time_s in zip(groups, times_s, strict=True)
    )


def least_s(group: CompiledGroup, roofline: Roofline, machine: Machine) -> float:
    """Returns a lower bound of a group's seconds; memory counts where it reads more than the L2 cache has."""
    return roofline.least_s(group.flop, group.moved_bytes, machine.l2_bytes)


def _dtype(group: CompiledGroup) -> str:
    return group.element if group.element in MEASURED else "f32"
