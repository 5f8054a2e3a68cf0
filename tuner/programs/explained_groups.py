"""What each group of a program takes: its time alone, its share, how near the roofline it is."""

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tuner.core.explained_group import CompiledGroup, ExplainedGroup
from tuner.core.machine import Machine
from tuner.core.reliability import unreliable
from tuner.core.round_quality import DRIFT_LIMIT, reliability_in_round
from tuner.core.target import Effort
from tuner.core.time_text import seconds_text
from tuner.programs.options import ProgramOptions
from tuner.programs.watched_times import evidence_of, host_watch, timed_watching
from tuner.runtime.cpu.roofline import measure_roofline

if TYPE_CHECKING:
    from tuner.programs.run.grouped_function import GroupedFunction

EFFORT = Effort(budget_s=0.03, min_samples=10, max_samples=60)  # of each group, which is timed twice
THREADS = 1
MEASURED = ("f32", "f64", "bf16", "i8")  # types that a roofline is measured for; others count as f32


def untimed(groups: Sequence[CompiledGroup]) -> tuple[ExplainedGroup, ...]:
    """Returns the groups of a program without times."""
    return tuple(ExplainedGroup(each) for each in groups)


def timed_groups(
    function: "GroupedFunction", arguments: tuple[Any, ...], machine: Machine, options: ProgramOptions
) -> tuple[ExplainedGroup, ...]:
    """Times each group of a program alone, and measures the roofline of one thread.

    ``arguments`` are those of a call; ``options`` has the seed of the measurement's random numbers, and the
    number of threads. Pins the calling thread to a processor.
    """
    call, watch = function.prepare(*arguments), host_watch()
    function.repeat(call, 1)
    rng = np.random.default_rng(options.seed)
    spare_cores = machine.physical_cores - options.threads
    groups = []
    for number, group in enumerate(function.code.groups):
        repeat = functools.partial(function.repeat_group, call, number)
        first, again = timed_watching((repeat, repeat), EFFORT, rng, watch)
        reliability = reliability_in_round(first, evidence_of(first, again, None, spare_cores))
        groups.append(ExplainedGroup(group, first.median_s, reliability=reliability))
    (whole,) = timed_watching((functools.partial(function.repeat, call),), EFFORT, rng, watch)
    return with_shares(tuple(groups), machine, whole.median_s)


def with_shares(
    groups: tuple[ExplainedGroup, ...], machine: Machine, call_s: float
) -> tuple[ExplainedGroup, ...]:
    """Returns timed groups with their shares of the time of all, and their parts of the roofline.

    A group that takes longer than ``call_s``, a whole call, is unreliable. There are shares only where the
    time of each group is reliable, and the part of the roofline only of a group whose time is. Measures the
    roofline of one thread for each type of the groups.
    """
    groups = tuple(_within(each, call_s) for each in groups)
    is_whole = all(each.reliability.is_reliable for each in groups if each.time_s)
    rooflines = {
        dtype: measure_roofline(dtype, THREADS, machine)
        for dtype in sorted({_dtype(each.group) for each in groups})
    }
    for each in groups:
        if each.time_s:
            dtype = _dtype(each.group)
            rooflines[dtype] = rooflines[dtype].raised(*_work(each.group, machine), each.time_s)
    whole_s = sum(each.time_s or 0.0 for each in groups)
    return tuple(
        replace(
            each,
            share=each.time_s / whole_s if is_whole else None,
            roofline=rooflines[_dtype(each.group)].share(*_work(each.group, machine), each.time_s),
        )
        if each.time_s and each.reliability.is_reliable
        else each
        for each in groups
    )


def _work(group: CompiledGroup, machine: Machine) -> tuple[int, int, int]:
    """Returns a group's flop and bytes; memory counts where it reads more than the third, the L2 cache."""
    return group.flop, group.moved_bytes, machine.l2_bytes


def _within(each: ExplainedGroup, call_s: float) -> ExplainedGroup:
    """Returns a group, unreliable where it takes longer than a whole call, of which it is a part."""
    if each.time_s is None or each.reliability.unreliable or each.time_s <= (1 + DRIFT_LIMIT) * call_s:
        return each
    reason = f"it takes longer than a whole call, {seconds_text(call_s)}"
    return replace(each, reliability=unreliable(reason))


def _dtype(group: CompiledGroup) -> str:
    return group.element if group.element in MEASURED else "f32"
