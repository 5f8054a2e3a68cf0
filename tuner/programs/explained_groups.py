"""What each group of a program takes: its time alone, its share, how near the roofline it is."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tuner.core.explained_group import CompiledGroup, ExplainedGroup
from tuner.core.machine import Machine, Roofline
from tuner.core.target import Effort
from tuner.runtime.cpu.roofline import measure_roofline
from tuner.runtime.timing import measure

if TYPE_CHECKING:
    from tuner.programs.run.grouped_function import GroupedFunction

EFFORT = Effort(budget_s=0.05, min_samples=10, max_samples=100)  # of each group
THREADS = 1
MEASURED = ("f32", "f64", "bf16", "i8")  # types that a roofline is measured for; others count as f32


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
    groups = tuple(
        ExplainedGroup(group, _time_s(function, call, number, rng))
        for number, group in enumerate(function.code.groups)
    )
    return with_shares(groups, machine)


def with_shares(groups: tuple[ExplainedGroup, ...], machine: Machine) -> tuple[ExplainedGroup, ...]:
    """Returns timed groups with their shares of the time of all, and their parts of the roofline.

    Measures the roofline of one thread for each type of the groups.
    """
    rooflines = {
        dtype: measure_roofline(dtype, THREADS, machine)
        for dtype in sorted({_dtype(each.group) for each in groups})
    }
    whole_s = sum(each.time_s or 0.0 for each in groups)
    return tuple(
        replace(
            each,
            share=each.time_s / whole_s,
            roofline=least_s(each.group, rooflines[_dtype(each.group)], machine) / each.time_s,
        )
        if each.time_s
        else each
        for each in groups
    )


def least_s(group: CompiledGroup, roofline: Roofline, machine: Machine) -> float:
    """Returns a lower bound of a group's seconds; memory counts where it reads more than the L2 cache has."""
    return roofline.least_s(group.flop, group.moved_bytes, machine.l2_bytes)


def _time_s(function: "GroupedFunction", call: Any, number: int, rng: np.random.Generator) -> float:
    return measure(lambda times: function.repeat_group(call, number, times), EFFORT, rng).median_s


def _dtype(group: CompiledGroup) -> str:
    return group.element if group.element in MEASURED else "f32"
