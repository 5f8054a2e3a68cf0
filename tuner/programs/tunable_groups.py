"""The groups of a program that can be tuned, each once, and why others are not."""

from dataclasses import dataclass, replace

import numpy as np

from tuner.core.errors import CandidateError, UsageError
from tuner.core.grouped_program import LOOPS, OpGroup
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.tuning.many_shapes.named_problem import NamedProblem, combined


@dataclass(frozen=True)
class TunableGroups:
    """The distinct groups of a program as problems, named by their places in it."""

    problems: tuple[NamedProblem, ...] = ()
    left_out: tuple[str, ...] = ()  # a line for each group that is not tuned
    why_none: str = ""  # why the program is not compiled as groups of operations


def tunable_groups(text: str, entry: str | None, cache: str, machine: Machine) -> TunableGroups:
    """Returns the groups of a payload that a strategy is for and whose results can be verified.

    Args:
        text: MLIR text of a function on tensors, with its constants.
        entry: the function; None: ``main``, or the only public function.
        cache: what the caches hold when a group is timed, one of ``tuner.core.problem.CACHES``.
        machine: the processor to tune for.

    Raises CandidateError(BIND) for text that does not parse.
    """
    from tuner.programs.op_groups.group_program import group_program
    from tuner.programs.op_groups.payload import NotGrouped

    formed = group_program(text, entry, multiplies_pairs=machine.multiplies_pairs)
    if isinstance(formed, NotGrouped):
        return TunableGroups(why_none=formed.reason)
    known: dict[tuple[str, str], Problem | str] = {}  # by kind and text of a group
    found: list[NamedProblem] = []
    left_out: list[str] = []
    for number, group in enumerate(formed.program.groups):
        key = (group.kind, group.text)
        if key not in known:
            known[key] = _problem_of(group, machine)
        problem, name = known[key], f"g{number}"
        if isinstance(problem, Problem):
            found.append(NamedProblem(replace(problem, cache=cache), name))
        else:
            left_out.append(f"{name} {', '.join(dict.fromkeys(group.ops))}: {problem}")
    return TunableGroups(combined(tuple(found)), tuple(left_out))


def _problem_of(group: OpGroup, machine: Machine) -> Problem | str:
    """Returns the problem that a group is; else why it is not tuned."""
    from tuner.mlir.group_problem import group_problem
    from tuner.mlir.reference.group_reference import draw_inputs
    from tuner.scripts.default import first_configuration, no_strategy

    if group.kind == LOOPS:
        return group.reason
    try:
        problem = group_problem(group)
        if first_configuration(problem, machine) is None:
            return no_strategy(problem, machine)
        draw_inputs(problem.group, np.random.default_rng(0))  # evaluates them
    except (UsageError, CandidateError) as error:
        return str(error)
    return problem
