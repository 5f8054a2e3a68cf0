"""A group of operations with the schedule that computes it, compiled to LLVM dialect."""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError, Stage, UsageError
from tuner.core.explained_group import CompiledGroup
from tuner.core.group_schedule import Schedules, no_schedules
from tuner.core.grouped_program import ATTENTION, CONTRACTION, GroupCode, OpGroup
from tuner.core.grouped_program import LOOPS as LOOPS_KIND
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.core.schedule_origins import FIRST, LOOPS
from tuner.mlir import interpreter
from tuner.mlir.bindings import ir
from tuner.mlir.cpu.group_code import compile_group
from tuner.mlir.cpu.jit_guards import DECLARATION
from tuner.mlir.group_problem import group_problem
from tuner.programs.lower.indirect_indices import EXTRACT, assert_indirect_indices
from tuner.programs.useful_threads import useful_threads
from tuner.scripts.default import first_configuration, no_strategy


@dataclass(frozen=True)
class ScheduledGroup:
    """The code of a group, and what reports say of it."""

    code: GroupCode
    summary: CompiledGroup


def schedule_group(
    group: OpGroup, machine: Machine, schedules: Schedules = no_schedules, threads: int = 1
) -> ScheduledGroup:
    """Compiles a group with the first of its schedules that compiles, else with its first configuration.

    With several ``threads`` the group is divided among them where it can be and has enough work.
    A group that no strategy is for, or whose scripts fail, becomes scalar loops; the summary says why. Raises
    CandidateError for a group that cannot be lowered to loops either.
    """
    if group.kind == LOOPS_KIND:
        return _as_loops(group, group.reason, threads)
    try:
        problem = group_problem(group)
    except UsageError as error:
        return _as_loops(group, str(error), threads)
    reason = no_strategy(problem, machine)
    for candidate, script, origin in _scripts(problem, machine, schedules):
        summary = replace(_summary(group, problem, candidate), origin=origin)
        try:
            code = _compiled(problem.group, script, useful_threads(summary, threads))
        except CandidateError as error:
            reason = str(error)
            continue
        return ScheduledGroup(code, replace(summary, is_divided=code.is_divided))
    return _as_loops(group, reason, threads)


def _scripts(
    problem: Problem, machine: Machine, schedules: Schedules
) -> Iterator[tuple[Candidate, str, str]]:
    """Yields configurations with their scripts and origins, in the order in which they are tried."""
    for each in schedules(problem):
        yield each.candidate, each.script, each.origin
    first = first_configuration(problem, machine)
    if first is not None:
        yield first[0], first[1].text, FIRST


def _as_loops(group: OpGroup, reason: str, threads: int) -> ScheduledGroup:
    flop = _elements(group) * len(group.ops)
    summary = CompiledGroup(
        group.kind, group.ops, "", (), LOOPS, reason, _element(group), flop, _moved_bytes(group)
    )
    text = _with_asserted_indices(group.text) if EXTRACT in group.text else group.text
    code = _compiled(text, None, useful_threads(summary, threads))
    return ScheduledGroup(code, replace(summary, is_divided=code.is_divided))


def _with_asserted_indices(text: str) -> str:
    """Returns a group's text with an assertion of each index that is data; only loops have such indices."""
    with interpreter.new_context(), ir.Location.unknown():
        module = interpreter.parse(text, "group")
        assert_indirect_indices(module.body.operations[0].operation)
        return str(module)


def _compiled(text: str, script: str | None, threads: int) -> GroupCode:
    with interpreter.new_context(), ir.Location.unknown():
        code = compile_group(text, script, threads)
    _require_symbols(code.llvm_text)
    return code


def _require_symbols(llvm_text: str) -> None:
    """Raises CandidateError for code that calls a function which the C library does not have."""
    library = ctypes.CDLL(None)
    missing = [name for name in sorted(set(DECLARATION.findall(llvm_text))) if not hasattr(library, name)]
    if missing:
        raise CandidateError(Stage.COMPILE, f"calls {missing[0]!r}, which the C library does not have")


def _summary(group: OpGroup, problem: Problem, candidate: Candidate) -> CompiledGroup:
    flop, element = _elements(group) * len(group.ops), _element(group)
    if group.kind in (ATTENTION, CONTRACTION):
        element, flop = problem.dtype, problem.flop
    return CompiledGroup(
        kind=group.kind,
        ops=group.ops,
        strategy=candidate.strategy,
        knobs=candidate.choices,
        origin=FIRST,
        reason="",
        element=element,
        flop=flop,
        moved_bytes=_moved_bytes(group),
    )


def _element(group: OpGroup) -> str:
    return group.outputs[0].type.element


def _elements(group: OpGroup) -> int:
    """Returns the number of elements that a group computes."""
    total = 0
    for view in group.outputs:
        count = 1
        for size in view.type.shape:
            count *= size
        total += count
    return total


def _moved_bytes(group: OpGroup) -> int:
    return sum(view.type.bytes for view in {*group.inputs, *group.outputs})
