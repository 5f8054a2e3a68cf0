"""Compiles one fusion for the CPU, by a stored schedule, an initial configuration or as loops.

A ``FusionTask`` compiles a fusion and stores its code in ``compiled_files``; child processes run tasks side
by side. ``schedule_fusion`` tries a fusion's schedules one after the other; ``linked_programs`` joins the
code of a program's fusions.
"""

import ctypes
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError, Refusal, Stage, UsageError
from tuner.core.fusions import FUSION_ENTRY, Fusion
from tuner.core.fusions import LOOPS as LOOPS_KIND
from tuner.core.instruction_sets import ISAS, code_level, encoded
from tuner.core.interfaces import Script
from tuner.core.machine import Machine
from tuner.core.packings import FusionCode
from tuner.core.problem import Problem
from tuner.core.problem_classes import FusedProblem, TextProblem
from tuner.core.programs import (
    FIRST,
    LOOPS,
    PRODUCTS,
    CompiledFusion,
    FusionSchedule,
    Schedules,
    estimated_s,
    no_schedules,
)
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.cpu.lowering import DECLARATION, compile_fusion
from tuner.mlir.cpu.needed_instructions import instructions_needed
from tuner.mlir.fusions.facts import fusion_problem
from tuner.mlir.fusions.operations import arithmetic_of
from tuner.mlir.ir.reading import types_of
from tuner.mlir.programs.indirect_indices import EXTRACT, assert_indirect_indices
from tuner.mlir.programs.row_writes import SCATTER, row_writes_to_loops
from tuner.models.fusions.linking import fusion_module
from tuner.runtime.compiled_files import CompiledFiles, compiled_files
from tuner.runtime.cpu.host import own_architecture
from tuner.space.scripts.choice import why_no_strategy
from tuner.targets.cpu.compiler import object_code
from tuner.tuning.pretuned import initial_configuration

LEAST_S = 15e-6  # of a fusion that is divided
FIRST_CONFIGURATIONS = 3  # that are tried of a fusion, each up to a time limit; then it becomes loops
PLAIN_LAYOUT = "nn"
# a name of linalg or tensor in printed MLIR
OPERATION = re.compile(r"\b(?:linalg|tensor)\.(?!yield|index|empty)[a-z_0-9.]+")


# How many threads a fusion is divided among: all threads of the program, or one if there is little work.
#
# A barrier takes a microsecond or more, and what a thread has written is in the caches of its processor. So a
# fusion of some microseconds is run by one thread.


def useful_threads(fusion: CompiledFusion, threads: int) -> int:
    """Returns how many threads should run a fusion: ``threads``, or 1 if it has too little work to divide."""
    if estimated_s(fusion) >= LEAST_S:
        return threads
    return 1


def threads_of(fusion: Fusion, problem: Problem, threads: int) -> int:
    """Returns how many threads run a fusion of a program that may use ``threads``: all of them, or 1.

    ``problem``: the fusion as a tuning problem, from which its work is estimated, where that matters: its
    operations are counted in MLIR.
    """
    if threads == 1:
        return 1
    return useful_threads(replace(_summary(fusion, "", problem), origin=FIRST), threads)


@dataclass(frozen=True)
class ScheduledFusion:
    """The compiled code of a fusion, and its description for reports."""

    code: FusionCode
    summary: CompiledFusion


@dataclass(frozen=True)
class GivenUp:
    """The entry of ``compiled_files`` for a fusion that cannot be compiled.

    Why the compiler was stopped or crashed.
    """

    reason: str


@dataclass(frozen=True)
class FusionTask:
    """One fusion to be compiled for a machine and a number of threads.

    The fusion is compiled with ``schedule``. If that is None, the fusion is compiled with an initial
    configuration of a strategy, or becomes loops; as many initial configurations are skipped as ``given_up``
    has reasons.
    """

    fusion: Fusion
    machine: Machine
    schedule: FusionSchedule | None
    threads: int
    given_up: tuple[str, ...] = ()  # why each earlier initial configuration was given up
    has_other_way: bool = True  # whether the fusion can be compiled in another way if this task is given up

    @cached_property
    def key(self) -> str:
        """Returns the key in ``CompiledFiles`` under which this task stores its result."""
        fusion = self.fusion
        schedule = self.schedule
        types = tuple(types_of((*fusion.inputs, *fusion.outputs)))
        content = (fusion.kind, fusion.text, fusion.ops, fusion.reason, types, _moved_bytes(fusion))
        script = () if schedule is None else (schedule.candidate, schedule.script, schedule.origin)
        return CompiledFiles.key("fusion", content, script, self.machine, self.threads, len(self.given_up))

    @property
    def name(self) -> str:
        """Returns the names of the fusion's operations, each once, for a progress line."""
        return ", ".join(dict.fromkeys(self.fusion.ops))

    def compile(self) -> ScheduledFusion:
        """Returns the compiled fusion: from ``compiled_files`` if it is stored there, else compiled now.

        Raises CandidateError where the task was given up before, where its schedule does not compile, and
        for a fusion without a schedule that cannot be lowered to loops.
        """
        files = compiled_files()
        stored: ScheduledFusion | GivenUp | None = files.read(self.key)
        if isinstance(stored, GivenUp):
            raise CandidateError(Stage.COMPILE, stored.reason)
        if stored is None:
            stored = _newly_scheduled(self)
            files.write(self.key, stored)
        return stored

    def compile_with_machine_code(self) -> None:
        """Compiles the fusion to LLVM dialect and to machine code, and stores both in ``compiled_files``.

        Called in a child process, so that a time limit can stop the compiler.
        """
        machine_code(self.compile().code, self.machine.isa)

    def give_up(self, reason: str) -> bool:
        """Stores in ``compiled_files`` that this task failed for ``reason``; it is not repeated then.

        Returns False if the folder of ``compiled_files`` cannot be written.
        """
        if self.schedule is None:
            what = f"configuration {len(self.given_up) + 1}"
        else:
            what = "the stored schedule"
        compiled_files().write(self.key, GivenUp(f"{what} {reason}"))
        return compiled_files().has(self.key)


def schedule_fusion(
    fusion: Fusion, machine: Machine, schedules: Schedules = no_schedules, threads: int = 1
) -> ScheduledFusion:
    """Compiles a fusion with the first stored schedule that compiles, or else an initial configuration.

    ``schedules`` returns the stored schedules of a fusion, the best first. A fusion without a strategy or a
    working script becomes scalar loops; the summary says why. Raises CandidateError for a fusion that cannot
    be lowered to loops either.
    """
    for task in _tasks(fusion, machine, schedules, threads):
        try:
            return task.compile()
        except CandidateError:
            if task.schedule is None and _reason_given_up(task) is None:
                raise
    raise AssertionError("the last task is never given up")


def _reason_given_up(task: FusionTask) -> str | None:
    stored = compiled_files().read(task.key)
    if isinstance(stored, GivenUp):
        return stored.reason
    return None


def _tasks(fusion: Fusion, machine: Machine, schedules: Schedules, threads: int) -> Iterator[FusionTask]:
    asked = None if schedules is no_schedules else tuned_problem(fusion, threads)
    if asked is not None:
        for schedule in schedules(*asked):
            yield FusionTask(fusion, machine, schedule, threads)
    given_up: tuple[str, ...] = ()
    while True:
        task = FusionTask(fusion, machine, None, threads, given_up)
        yield task
        reason = _reason_given_up(task)
        if reason is None:
            return
        given_up = (*given_up, reason)


def next_task(
    fusion: Fusion, machine: Machine, schedules: Schedules, threads: int
) -> tuple[FusionTask, ScheduledFusion | None]:
    """Returns the first task of a fusion that was not given up, and its code if that is stored."""
    for task in _tasks(fusion, machine, schedules, threads):
        stored: ScheduledFusion | GivenUp | None = compiled_files().read(task.key)
        if not isinstance(stored, GivenUp):
            return task, stored
    raise AssertionError("the last task is never given up")


def with_other_ways_known(task: FusionTask) -> FusionTask:
    """Returns a task with its ``has_other_way``.

    A first task keeps True, as finding its configuration takes 20 ms: if that turns out to be none and its
    loops take too long, they are compiled once more, up to the limit of the program.
    """
    if task.fusion.kind == LOOPS_KIND:
        return replace(task, has_other_way=False)
    if not task.given_up:
        return task
    try:
        configuration = _initial_configuration(task, fusion_problem(task.fusion))
    except UsageError:  # it has no problem, so it became loops at once
        configuration = None
    return replace(task, has_other_way=configuration is not None)


def tuned_problem(fusion: Fusion, threads: int) -> tuple[TextProblem, int] | None:
    """Returns what the schedules of a fusion are stored for: a tuning problem and a number of threads.

    ``threads``: that the program may use. None if no schedule is for the fusion.
    """
    if fusion.kind == LOOPS_KIND:
        return None
    problem = compiled_files().kept(problem_key(fusion), lambda: _problem_of(fusion))
    if isinstance(problem, Refusal):
        return None
    return problem, threads_of(fusion, problem, threads)


def _problem_of(fusion: Fusion) -> TextProblem | Refusal:
    """Returns a fusion as a tuning problem, or why no schedule is for it."""
    try:
        return fusion_problem(fusion)
    except UsageError as error:
        return Refusal(str(error))


def problem_key(fusion: Fusion) -> str:
    """Returns the key in ``CompiledFiles`` of a fusion as a tuning problem, or of why it is not one."""
    return CompiledFiles.key("problem", fusion.kind, fusion.text)


def _newly_scheduled(task: FusionTask) -> ScheduledFusion:
    fusion = task.fusion
    machine = task.machine
    schedule = task.schedule
    if fusion.kind == LOOPS_KIND:
        return _as_loops(fusion, fusion.reason, task.threads)
    try:
        problem = fusion_problem(fusion)
    except UsageError as error:
        return _as_loops(fusion, str(error), task.threads)
    if schedule is not None:
        return _by_script(task, problem, schedule.candidate, schedule.script, schedule.origin)
    first = _initial_configuration(task, problem)
    if first is None:
        reason = task.given_up[-1] if task.given_up else why_no_strategy(problem, machine)
        return _noting(task, _as_loops(fusion, reason, task.threads))
    try:
        made = _by_script(task, problem, first[0], first[1].text, FIRST)
        return _noting(task, _divided(task, problem, made))
    except CandidateError as error:
        return _as_loops(fusion, str(error), task.threads)


def _divided(task: FusionTask, problem: TextProblem, made: ScheduledFusion) -> ScheduledFusion:
    """Returns a fusion compiled so that all threads of the program can compute it, if it has enough work.

    Else ``made``, the fusion as compiled. A matmul's loops cannot be divided if blocks of C are ragged; loops
    of the strategies for contractions can. These take plain operands only, so a matmul with a transposed
    operand stays with one thread.
    """
    is_alone = useful_threads(made.summary, task.threads) > 1 and not made.code.is_divided
    if not is_alone or not isinstance(problem, FusedProblem) or problem.facts.layout != PLAIN_LAYOUT:
        return made
    contraction = replace(problem, facts=replace(problem.facts, layout=""))
    first = initial_configuration(contraction, task.machine)
    if first is None:
        return made
    return _by_script(task, contraction, first[0], first[1].text, FIRST)


def _initial_configuration(task: FusionTask, problem: TextProblem) -> tuple[Candidate, Script] | None:
    """Returns the next initial configuration of a task without a schedule.

    None after the last: it becomes loops.
    """
    if len(task.given_up) >= FIRST_CONFIGURATIONS:
        return None
    return initial_configuration(problem, task.machine, len(task.given_up))


def _noting(task: FusionTask, made: ScheduledFusion) -> ScheduledFusion:
    return replace(made, summary=replace(made.summary, given_up=task.given_up))


def _by_script(
    task: FusionTask, problem: TextProblem, candidate: Candidate, script: str, origin: str
) -> ScheduledFusion:
    summary = _summary(task.fusion, "", problem)
    summary = replace(summary, strategy=candidate.strategy, knobs=candidate.choices, origin=origin)
    code = _compiled(problem.text, script, useful_threads(summary, task.threads))
    return ScheduledFusion(code, replace(summary, is_divided=code.is_divided))


def _moved_bytes(fusion: Fusion) -> int:
    if fusion.ops == (SCATTER,):  # of its result, it writes rows alone
        return sum(view.type.bytes for view in (*fusion.inputs, fusion.inputs[0]))
    return sum(view.type.bytes for view in {*fusion.inputs, *fusion.outputs})


def _summary(fusion: Fusion, reason: str, problem: Problem | None = None) -> CompiledFusion:
    """Returns the description of a fusion that is compiled as loops, for ``reason``.

    ``problem``: the fusion's tuning problem, which counts the operations of its products; None: it has none.
    """
    if problem is not None and fusion.kind in PRODUCTS:
        element = problem.dtype
        flop = problem.flop
    else:
        element = fusion.outputs[0].type.element
        with transform.new_context(), ir.Location.unknown():
            flop = arithmetic_of(transform.parse(fusion.text, "fusion"))
    return CompiledFusion(
        kind=fusion.kind,
        ops=fusion.ops,
        strategy="",
        knobs=(),
        origin=LOOPS,
        reason=reason,
        element=element,
        flop=flop,
        moved_bytes=_moved_bytes(fusion),
    )


def _as_loops(fusion: Fusion, reason: str, threads: int) -> ScheduledFusion:
    summary = _summary(fusion, reason)
    text = fusion.text
    if EXTRACT in text or SCATTER in text:  # only loops have indices that are data
        with transform.new_context(), ir.Location.unknown():
            module = transform.parse(text, "fusion")
            assert_indirect_indices(module.body.operations[0].operation)
            row_writes_to_loops(module)
            text = str(module)
    if fusion.ops == (SCATTER,):  # rows of equal positions are written in order
        threads = 1
    code = _compiled(text, None, useful_threads(summary, threads))
    return ScheduledFusion(code, replace(summary, is_divided=code.is_divided))


def _compiled(text: str, script: str | None, threads: int) -> FusionCode:
    with transform.new_context(), ir.Location.unknown():
        try:
            code = compile_fusion(text, script, threads)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            names = dict.fromkeys(OPERATION.findall(text))
            error.add_note(f"a fusion of {', '.join(names)}")  # a defect: said with what it was at
            raise
    library = ctypes.CDLL(None)
    called = sorted(set(DECLARATION.findall(code.llvm_text)))
    missing = [name for name in called if not hasattr(library, name)]
    if missing:
        raise CandidateError(Stage.COMPILE, f"calls {missing[0]!r}, which the C library does not have")
    return code


def machine_code(code: FusionCode, isa: str) -> bytes:
    """Returns the object file of a fusion's code: from ``compiled_files``, or else compiled now.

    Each fusion is compiled for the instruction sets that it needs itself, as when it is timed. Raises
    CandidateError for code that LLVM rejects.
    """
    level = code_level(isa, needed_sets((code,), isa), own_architecture())
    key = CompiledFiles.key("machine code", code.llvm_text, level)
    return compiled_files().kept(key, lambda: object_code(fusion_module(code, level), FUSION_ENTRY))


def needed_sets(codes: Iterable[FusionCode], isa: str) -> tuple[str, ...]:
    """Returns the instruction sets that code needs: those of instructions that it calls, and ``isa``.

    ``isa`` only where it is one of ``ISAS``.
    """
    level = (isa,) if isa in ISAS else ()
    texts = dict.fromkeys(code.llvm_text for code in codes)
    called = encoded(instructions_needed("\n".join(texts)), isa)
    return tuple(dict.fromkeys((*level, *called)))
