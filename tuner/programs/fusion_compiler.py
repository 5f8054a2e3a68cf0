"""Compiles a payload as fusions: schedules, threads, machine code, packed weights; and times each fusion.

``compile_groups`` compiles each fusion with the first schedule that works (``schedule_group``), and
links the code; ``timed_groups`` times the fusions alone.
"""

import ctypes
import functools
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError, Stage, UsageError
from tuner.core.fusions import ATTENTION, CONTRACTION, CONVOLUTION, GroupCode, GroupedProgram, OpGroup
from tuner.core.fusions import LOOPS as LOOPS_KIND
from tuner.core.interfaces import Effort
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.core.processors import AVX512, AVX_VNNI, INSTRUCTION_SET_FEATURES, LEVELS, PLAIN_LEVEL, VNNI
from tuner.core.programs import FIRST, LOOPS, CompiledGroup, ExplainedGroup, Schedules, no_schedules
from tuner.core.reliability import unreliable
from tuner.core.round_quality import DRIFT_LIMIT, reliability_in_round
from tuner.core.serialization import seconds_text
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.cpu.llvm_modules import instructions_needed
from tuner.mlir.cpu.lowering import DECLARATION, compile_group
from tuner.mlir.cpu.pipeline import cpu_compiler
from tuner.mlir.fusions import group_problem
from tuner.programs.fusions.hoisting import INIT, init_parts
from tuner.programs.fusions.linking import GroupPlaces, ProcessorLevel, linked
from tuner.programs.fusions.memory_plan import memory_plan
from tuner.programs.fusions.payload import NotGrouped
from tuner.programs.fusions.pipeline import group_program
from tuner.programs.lowering.entry import entry_of
from tuner.programs.lowering.read_program import EXTRACT, assert_indirect_indices
from tuner.programs.lowering.resources import split_payload
from tuner.programs.request import ProgramOptions
from tuner.programs.run.fused_code import PROGRAM_ENTRY, GroupedCode, GroupedImage, packed_block, weight_plan
from tuner.programs.watched_times import evidence_of, host_watch, timed_watching
from tuner.runtime.cpu.roofline import measure_roofline
from tuner.space.scripts.choice import first_configuration, no_strategy
from tuner.targets.cpu.compiler import write_object

if TYPE_CHECKING:
    from tuner.programs.run.fused_program import GroupedFunction


# ------------------------------------------------------------------------------
# What each group of a program takes: its time alone, its share, how near the roofline it is.


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


# ------------------------------------------------------------------------------
# How many threads a group of operations is divided among: all of the program, or one if it has little work.
#
# A barrier takes a microsecond or more, and what a thread has written is in the caches of its processor. So a
# group of some microseconds is run by one thread. Its time is estimated from its operations and bytes, at
# rates that schedules reach on one thread (decision 72); they need not be exact.


LEAST_S = 15e-6  # of a group that is divided
FLOP_PER_S = {ATTENTION: 80e9, CONTRACTION: 80e9, CONVOLUTION: 80e9, LOOPS_KIND: 1e9}
ELEMENTWISE_PER_S = 20e9  # operations of other groups on elements
BYTES_PER_S = 30e9  # of the caches


def useful_threads(group: CompiledGroup, threads: int) -> int:
    """Returns the number of threads to divide a group among: ``threads`` or 1."""
    return threads if estimated_s(group) >= LEAST_S else 1


def estimated_s(group: CompiledGroup) -> float:
    """Returns about how long a group takes on one thread."""
    return max(group.flop / FLOP_PER_S.get(group.kind, ELEMENTWISE_PER_S), group.moved_bytes / BYTES_PER_S)


# ------------------------------------------------------------------------------
# A group of operations with the schedule that computes it, compiled to LLVM dialect.


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
    with transform.new_context(), ir.Location.unknown():
        module = transform.parse(text, "group")
        assert_indirect_indices(module.body.operations[0].operation)
        return str(module)


def _compiled(text: str, script: str | None, threads: int) -> GroupCode:
    with transform.new_context(), ir.Location.unknown():
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


# ------------------------------------------------------------------------------
# Compiles a payload as groups of operations: machine code, and the weights packed as the code reads them.


Array = npt.NDArray[Any]


def compile_groups(
    text: str,
    entry: str | None,
    machine: Machine,
    schedules: Schedules = no_schedules,
    threads: int = 1,
) -> GroupedImage | NotGrouped:
    """Compiles a payload as groups of operations; NotGrouped for one that must be compiled as a whole.

    Args:
        text: MLIR text of a function on tensors, with its constants.
        entry: the function to compile; None: ``main``, or the only public function.
        machine: the processor to compile for, that of this process.
        schedules: returns schedules for a group, the best first; where there is none, or none compiles, the
            group has its first configuration.
        threads: that the program runs on. One where no group can be divided among several, or none is worth
            it.

    Raises CandidateError for text that does not parse.
    """
    formed = group_program(text, entry, multiplies_pairs=machine.multiplies_pairs)
    if isinstance(formed, NotGrouped):
        return formed
    try:
        groups = _scheduled(formed.program.groups, machine, schedules, threads)
    except CandidateError as error:
        return NotGrouped(error.reason)
    codes = [each.code for each in groups]
    try:
        memory = memory_plan(formed.program)
    except ValueError as error:  # an error of forming, which a program compiled as a whole does not have
        return NotGrouped(f"no place in memory: {error}")
    places = GroupPlaces(formed.program, memory, weight_plan(formed.program, codes))
    needs = _needs(codes_text="\n".join(code.llvm_text for code in codes), machine=machine)
    object_code = _object_code(linked(places, codes, _level(needs)))
    code = GroupedCode(
        entry=entry_name(text, entry),
        arguments=formed.program.arguments,
        results=formed.program.results,
        arena_bytes=places.memory.arena_bytes,
        fills=places.memory.fills,
        weights_bytes=places.weights.bytes,
        needs=needs,
        compiler=cpu_compiler().fingerprint,
        groups=tuple(each.summary for each in groups),
        object_code=object_code,
        threads=threads if any(code.is_divided for code in codes) else 1,
        asserts=any(code.asserts for code in codes),
    )
    weights = initialized(formed.program, formed.weights)
    return GroupedImage(code, packed_block(places.weights, weights), places.weights)


def entry_name(text: str, entry: str | None) -> str:
    """Returns the name of the function of a payload that runs; ``entry`` as for ``compile_groups``."""
    with transform.new_context(), ir.Location.unknown():
        return entry_of(transform.parse(split_payload(text).text, "payload"), entry)


def _scheduled(
    groups: tuple[OpGroup, ...], machine: Machine, schedules: Schedules, threads: int
) -> list[ScheduledGroup]:
    """Returns each group with its code; groups of equal text are compiled once."""
    known: dict[tuple[str, str], ScheduledGroup] = {}
    for group in groups:
        if (group.kind, group.text) not in known:
            try:
                known[group.kind, group.text] = schedule_group(group, machine, schedules, threads)
            except CandidateError as error:
                reason = f"{', '.join(dict.fromkeys(group.ops))}: {error.reason}"
                raise CandidateError(error.stage, reason) from error
    return [known[group.kind, group.text] for group in groups]


def _needs(codes_text: str, machine: Machine) -> tuple[str, ...]:
    """Returns the instruction sets that code needs which is compiled for the machine's level of x86-64."""
    level = (machine.isa,) if machine.isa in LEVELS else ()
    called = instructions_needed(codes_text)
    if machine.isa != AVX512:
        called = tuple(AVX_VNNI if name == VNNI else name for name in called)
    return tuple(dict.fromkeys((*level, *called)))


def _level(needs: Sequence[str]) -> ProcessorLevel:
    name = next((LEVELS[each] for each in needs if each in LEVELS), PLAIN_LEVEL)
    return ProcessorLevel(
        name, ",".join(INSTRUCTION_SET_FEATURES[each] for each in needs if each in INSTRUCTION_SET_FEATURES)
    )


def _object_code(llvm_text: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "code.o"
        write_object(llvm_text, file, entry=PROGRAM_ENTRY)
        return file.read_bytes()


def initialized(program: GroupedProgram, weights: tuple[Array, ...]) -> Sequence[Array]:
    """Returns the arrays of a program's weight buffers, in the order of their numbers: runs its ``init``."""
    if not program.init:
        return weights
    from tuner.programs.lowering.host import lower_host_program
    from tuner.programs.lowering.read_program import read_program
    from tuner.programs.run.host_function import HostFunction

    compiled: dict[str, HostFunction] = {}
    found: dict[int, Array] = {}
    with transform.new_context(), ir.Location.unknown():
        for part in init_parts(program.init):
            arrays = [np.ascontiguousarray(weights[number]) for number in part.inputs]
            if part.text and part.text not in compiled:
                payload = read_program(part.text, INIT, limit=None)
                compiled[part.text] = HostFunction(lower_host_program(payload))
            made = compiled[part.text](*arrays) if part.text else arrays[0]
            found |= zip(part.results, made if len(part.results) > 1 else (made,), strict=True)
    return tuple(found[number] for number in range(len(found)))
