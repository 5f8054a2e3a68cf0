"""Times of a program's groups with the schedules of a database and with their first ones, interleaved."""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuner.core.errors import UsageError
from tuner.core.explained_group import ExplainedGroup
from tuner.core.round_quality import reliability_in_round
from tuner.core.target import Effort
from tuner.programs.compiler import CompiledProgram
from tuner.programs.execution import copies
from tuner.programs.explained_groups import with_shares
from tuner.programs.gain import TimedPair, timed_functions
from tuner.programs.options import ProgramOptions
from tuner.programs.run.grouped_function import GroupedFunction
from tuner.programs.watched_times import evidence_of, host_watch, timed_watching
from tuner.runtime.cpu.describe_host import describe_machine

GROUP_EFFORT = Effort(budget_s=0.02, min_samples=6, max_samples=15)  # of each group, per program


@dataclass(frozen=True)
class TimedGroups:
    """Times of a tuned program and of the untuned one, and of each of its groups."""

    pair: TimedPair  # of whole calls; ``bound``: with the schedules of the database
    groups: tuple[ExplainedGroup, ...]  # of the tuned program, in the order in which they run


def timed_groups(
    tuned: CompiledProgram, untuned: CompiledProgram, arguments: tuple[Any, ...], options: ProgramOptions
) -> TimedGroups:
    """Times two programs of the same groups on this processor.

    ``options`` has the seed of the random order of the calls, and the number of threads. Raises
    UsageError for programs that are not compiled as groups.
    """
    if tuned.image is None or untuned.image is None:
        raise UsageError(f"no groups: {tuned.why_no_groups or untuned.why_no_groups}")
    images = (tuned.image, untuned.image, tuned.image)
    functions = tuple(GroupedFunction(each.code, each.weights) for each in images)
    pair = timed_functions(functions, arguments, options.seed)
    rng, watch, machine = np.random.default_rng(options.seed), host_watch(), describe_machine()
    spare_cores = machine.physical_cores - options.threads
    after, before, _ = functions
    calls = (after.prepare(*copies(arguments)), before.prepare(*copies(arguments)))
    for function, call in zip((after, before), calls, strict=True):
        function.repeat(call, 1)  # what groups read in the arena is from a whole call
    found = []
    for number, group in enumerate(after.code.groups):
        both = tuple(
            functools.partial(function.repeat_group, call, number)
            for function, call in zip((after, before), calls, strict=True)
        )
        ours, earlier, again = timed_watching((*both, both[0]), GROUP_EFFORT, rng, watch)
        reliability = reliability_in_round(ours, evidence_of(ours, again, None, spare_cores))
        found.append(ExplainedGroup(group, ours.median_s, before_s=earlier.median_s, reliability=reliability))
    return TimedGroups(pair, with_shares(tuple(found), machine, pair.bound.median_s))
