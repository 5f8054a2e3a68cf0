"""Compiles a payload as fusions for the CPU: schedules, code of fusions, one object file, packed weights.

``compile_fusions`` does all of it. A ``FusionTask`` compiles one fusion, by a stored schedule, an initial
configuration or as loops; child processes run the tasks that ``missing_fusions`` lists. ``linked_program``
joins the code to a LinkedProgram, which packs the weights last.
"""

import ctypes
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy.typing as npt

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
from tuner.core.progress import CompileObserver, ignore_compile_event
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.cpu.lowering import DECLARATION, compile_fusion
from tuner.mlir.cpu.needed_instructions import instructions_needed
from tuner.mlir.cpu.pipeline import cpu_compiler
from tuner.mlir.fusions.facts import fusion_problem
from tuner.mlir.ir.reading import types_of
from tuner.mlir.ir.resources import Data, split_payload
from tuner.programs.fusions.linking import FusionPlaces, function_names, fusion_module, linked
from tuner.programs.fusions.memory_plan import memory_plan
from tuner.programs.fusions.operations import arithmetic_of
from tuner.programs.fusions.payload import Constants, NotFused
from tuner.programs.fusions.pipeline import FormedText, form_text
from tuner.programs.lowering.read_program import EXTRACT, assert_indirect_indices
from tuner.programs.lowering.row_writes import SCATTER, row_writes_to_loops
from tuner.programs.run.fused_code import PROGRAM_ENTRY, FusedCode, FusedImage
from tuner.programs.run.program_weights import WeightPlan, packed_weights, weight_plan
from tuner.programs.weight_code import InitCode, InitTask, initialized_parts
from tuner.runtime.compiled_files import CompiledFiles, compiled_files
from tuner.runtime.cpu.host import own_architecture, usable_processors
from tuner.runtime.cpu.linkable_objects import merged_object
from tuner.space.scripts.choice import why_no_strategy
from tuner.targets.cpu.compiler import object_code
from tuner.tuning.pretuned import initial_configuration

LEAST_S = 15e-6  # of a fusion that is divided
FIRST_CONFIGURATIONS = 3  # that are tried of a fusion, each up to a time limit; then it becomes loops
PLAIN_LAYOUT = "nn"
PACKING_THREADS = 4  # at most: more read no more of memory in a second
# a name of linalg or tensor in printed MLIR
OPERATION = re.compile(r"\b(?:linalg|tensor)\.(?!yield|index|empty)[a-z_0-9.]+")
Array = npt.NDArray[Any]


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

    @property
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
        _machine_code(self.compile().code, self.machine.isa)

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


CompileTask = FusionTask | InitTask


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
    if schedules is not no_schedules and fusion.kind != LOOPS_KIND:
        problem = compiled_files().kept(_problem_key(fusion), lambda: _problem_of(fusion))
        if not isinstance(problem, Refusal):
            for schedule in schedules(problem, threads_of(fusion, problem, threads)):
                yield FusionTask(fusion, machine, schedule, threads)
    given_up: tuple[str, ...] = ()
    while True:
        task = FusionTask(fusion, machine, None, threads, given_up)
        yield task
        reason = _reason_given_up(task)
        if reason is None:
            return
        given_up = (*given_up, reason)


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


def compile_fusions(
    text: str, entry: str | None, machine: Machine, schedules: Schedules = no_schedules, threads: int = 1
) -> FusedImage | NotFused:
    """Compiles a payload as fusions; returns NotFused for a payload that must be compiled as a whole.

    Args:
        text: MLIR text of a function on tensors, with its constants.
        entry: the function to compile; None: ``main``, or the only public function.
        machine: the processor to compile for, that of this process.
        schedules: returns schedules for a fusion, the best first.
        threads: how many threads the program may use; it uses one if no fusion has enough work to divide.

    Raises CandidateError for text that does not parse, and where the data of constants are missing.
    """
    split = split_payload(text)
    formed = formed_text(split.text, entry, machine)
    if isinstance(formed, NotFused):
        return formed
    weights = formed.with_data(split.resources).weights  # raises where data are missing
    formed = formed.with_facts_of_data(split.resources)
    made = linked_program(formed, machine, schedules, threads)
    if isinstance(made, NotFused):
        return made
    return made.with_weights(weights)


def kept_program(
    text: str,
    entry: str | None,
    machine: Machine,
    schedules: Schedules,
    threads: int,
    resources: Mapping[str, Data],
    observe: CompileObserver = ignore_compile_event,
) -> FusedImage | NotFused | None:
    """Returns the program of ``compile_fusions`` if ``compiled_files`` has all its parts, else None.

    Returns NotFused if it is known that the program must be compiled as a whole. Nothing is compiled, so no
    child process is needed. ``text`` is the payload without the data of its constants, which ``resources``
    has by name. ``observe``: called when a weight is packed. Raises CandidateError where data are missing or
    do not fit.
    """
    files = compiled_files()
    formed = files.read(_formed_key(text, entry, machine))
    if not isinstance(formed, FormedText):
        return cast("NotFused | None", formed)
    formed = formed.with_facts_of_data(resources)
    parts = _kept_parts(formed, machine, schedules, threads)
    if parts is None:
        return None
    fusions, init = parts
    made = files.read(_linked_key(formed, fusions, machine, threads))
    if not isinstance(made, LinkedProgram):
        return None
    return replace(made, init=init).with_weights(formed.with_data(resources).weights, observe)


def _kept_parts(
    formed: FormedText, machine: Machine, schedules: Schedules, threads: int
) -> tuple[tuple[ScheduledFusion, ...], tuple[InitCode, ...]] | None:
    """Returns the compiled fusions of a program, and the code of its weights; None where one is not kept."""
    files = compiled_files()
    known: dict[tuple[str, str], ScheduledFusion] = {}
    for same, fusion in _distinct(formed).items():
        is_asked = schedules is not no_schedules and fusion.kind != LOOPS_KIND
        if is_asked and files.read(_problem_key(fusion)) is None:
            return None
        compiled = files.read(_next_task(fusion, machine, schedules, threads).key)
        if compiled is None:
            return None
        known[same] = compiled
    init = files.read(InitTask(formed.program.init).key) if formed.program.init else ()
    if init is None or not all(code.is_compiled for code in init):
        return None
    return tuple(known[_identity(fusion)] for fusion in formed.program.fusions), init


@dataclass(frozen=True, eq=False)
class PackedWeights:
    """The packed weights of a program, and the plan by which they are packed."""

    plan: WeightPlan
    arrays: tuple[Array, ...]


def packed_ahead(
    formed: FormedText,
    machine: Machine,
    schedules: Schedules,
    threads: int,
    constants: Constants,
    observe: CompileObserver = ignore_compile_event,
) -> PackedWeights | None:
    """Packs the weights of a program that is not linked yet: another process links it meanwhile.

    ``formed``: with its facts of data; ``observe``: called when a weight is packed. Returns None where
    ``compiled_files`` lacks a fusion or the code of the weights. Raises CandidateError for wrong data.
    """
    parts = _kept_parts(formed, machine, schedules, threads)
    if parts is None:
        return None
    fusions, init = parts
    try:
        plan = weight_plan(formed.program, [fusion.code for fusion in fusions])
    except ValueError:  # linking says why
        return None
    return PackedWeights(plan, _packed(plan, init, constants, observe))


def _packed(
    plan: WeightPlan, init: Sequence[InitCode], constants: Constants, observe: CompileObserver
) -> tuple[Array, ...]:
    threads = min(PACKING_THREADS, usable_processors().allowed)
    return packed_weights(plan, initialized_parts(init, constants), observe, threads)


def _next_task(fusion: Fusion, machine: Machine, schedules: Schedules, threads: int) -> FusionTask:
    """Returns the first task of a fusion that was not given up."""
    return next(
        task for task in _tasks(fusion, machine, schedules, threads) if _reason_given_up(task) is None
    )


def _formed_key(text: str, entry: str | None, machine: Machine) -> str:
    return CompiledFiles.key("fusions of a program", text, entry, machine.multiplies_pairs)


def _problem_of(fusion: Fusion) -> TextProblem | Refusal:
    """Returns a fusion as a tuning problem, or why no schedule is for it."""
    try:
        return fusion_problem(fusion)
    except UsageError as error:
        return Refusal(str(error))


def _problem_key(fusion: Fusion) -> str:
    return CompiledFiles.key("problem", fusion.kind, fusion.text)


def _linked_key(
    formed: FormedText, fusions: tuple[ScheduledFusion, ...], machine: Machine, threads: int
) -> str:
    # the text and the code of equal layers are written into the key once
    distinct = dict(zip(map(_identity, formed.program.fusions), fusions, strict=True))
    numbers = {same: number for number, same in enumerate(distinct)}
    called = [
        (numbers[_identity(fusion)], replace(fusion, kind="", text="")) for fusion in formed.program.fusions
    ]
    program = replace(formed.program, fusions=())
    content = (formed.entry, program, called, tuple(distinct.items()))
    return CompiledFiles.key("program", content, machine, threads)


def linked_program(
    formed: FormedText, machine: Machine, schedules: Schedules = no_schedules, threads: int = 1
) -> "LinkedProgram | NotFused":
    """Compiles the fusions of a program, and the code of its weights; reads no data of constants.

    ``formed``: with its facts of data. Returns NotFused for a program that must be compiled as a whole.
    Raises CandidateError where the code of its weights does not compile.
    """
    try:
        fusions = _scheduled(formed, machine, schedules, threads)
    except CandidateError as error:
        return NotFused(error.reason)
    key = _linked_key(formed, fusions, machine, threads)
    made = compiled_files().kept(key, lambda: _linked(formed, fusions, machine, threads))
    if isinstance(made, NotFused) or not formed.program.init:
        return made
    return replace(made, init=InitTask(formed.program.init).compile())


def missing_fusions(
    formed: FormedText, machine: Machine, schedules: Schedules = no_schedules, threads: int = 1
) -> tuple[CompileTask, ...]:
    """Returns what ``linked_program`` has to compile: a task for the code of weights, a task per fusion.

    Each fusion is compiled by its best schedule that was not given up. Fusions of equal text are one task,
    and what ``compiled_files`` has is left out. Returns () where the folder of ``compiled_files`` cannot be
    written.
    """
    files = compiled_files()
    if not files.is_writable:
        return ()
    next_tasks = [_next_task(fusion, machine, schedules, threads) for fusion in _distinct(formed).values()]
    missing = [_with_other_ways_known(task) for task in next_tasks if files.read(task.key) is None]
    init = [InitTask(formed.program.init)] if formed.program.init else []
    return (*(task for task in init if files.read(task.key) is None), *missing)


def _with_other_ways_known(task: FusionTask) -> FusionTask:
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


def _distinct(formed: FormedText) -> dict[tuple[str, str], Fusion]:
    """Returns the distinct fusions by (kind, text), in order: fusions of equal text are compiled once."""
    fusions: dict[tuple[str, str], Fusion] = {}
    for fusion in formed.program.fusions:
        fusions.setdefault(_identity(fusion), fusion)
    return fusions


def _identity(fusion: Fusion) -> tuple[str, str]:
    """Returns (kind, text) of a fusion: fusions with equal ones have the same code."""
    return fusion.kind, fusion.text


def formed_text(text: str, entry: str | None, machine: Machine) -> FormedText | NotFused:
    """Returns a payload without the data of its constants as fusions, from ``compiled_files`` or formed now.

    ``entry``: the function; None: ``main``, or the only public one. Returns NotFused for a program that must
    be compiled as a whole. Raises CandidateError(BIND) for text that does not parse.
    """
    return compiled_files().kept(
        _formed_key(text, entry, machine),
        lambda: form_text(text, entry, multiplies_pairs=machine.multiplies_pairs),
    )


@dataclass(frozen=True)
class LinkedProgram:
    """The machine code of a program of fusions without its weights, and what makes these from constants."""

    code: FusedCode
    plan: WeightPlan  # by which weights are packed
    init: tuple[InitCode, ...] = ()  # that computes the weights from the constants; (): they are these

    def with_weights(
        self, constants: Constants, observe: CompileObserver = ignore_compile_event
    ) -> FusedImage:
        """Returns the program with its packed weights, which are computed and packed a few at a time.

        ``observe``: called when a weight is packed. Raises CandidateError where the data of a constant are
        missing or do not fit.
        """
        return FusedImage(self.code, _packed(self.plan, self.init, constants, observe), self.plan)

    def with_packed(self, packed: PackedWeights | None, constants: Constants) -> FusedImage:
        """Returns the program with weights that were packed ahead; packs them where another plan was used.

        Raises CandidateError as ``with_weights`` does.
        """
        if packed is None or packed.plan != self.plan:
            return self.with_weights(constants)
        return FusedImage(self.code, packed.arrays, self.plan)


def _linked(
    formed: FormedText, fusions: tuple[ScheduledFusion, ...], machine: Machine, threads: int
) -> LinkedProgram | NotFused:
    codes = [fusion.code for fusion in fusions]
    try:
        memory = memory_plan(formed.program)
        places = FusionPlaces(formed.program, memory, weight_plan(formed.program, codes))
    except ValueError as error:  # compiled as a whole, the program needs no such plan
        return NotFused(f"no place in memory: {error}")
    made = program_object(places, codes, machine.isa)
    code = FusedCode(
        entry=formed.entry,
        arguments=formed.program.arguments,
        results=formed.program.results,
        arena_bytes=places.memory.arena_bytes,
        fills=places.memory.fills,
        weight_bytes=places.weights.weight_bytes,
        needs=_needs(codes, machine.isa),
        compiler=cpu_compiler().fingerprint,
        fusions=tuple(fusion.summary for fusion in fusions),
        object_code=made,
        threads=threads if any(code.is_divided for code in codes) else 1,
        asserts=any(code.asserts for code in codes),
        changed=formed.program.changed,
    )
    return LinkedProgram(code, places.weights)


def program_object(places: FusionPlaces, codes: Sequence[FusionCode], isa: str) -> bytes:
    """Returns the object file of a program for all machines of an isa that have what its fusions need.

    The machine code of each distinct fusion is from ``compiled_files``, or else compiled now. Raises
    CandidateError for code that LLVM rejects.
    """
    level = code_level(isa, _needs(codes, isa), own_architecture())
    by_text = {code.llvm_text: code for code in codes}
    called = {name: _machine_code(by_text[text], isa) for text, name in function_names(codes).items()}
    return merged_object(object_code(linked(places, codes, level), PROGRAM_ENTRY), called, FUSION_ENTRY)


def _machine_code(code: FusionCode, isa: str) -> bytes:
    """Returns the object file of a fusion's code: from ``compiled_files``, or else compiled now.

    Each fusion is compiled for the instruction sets that it needs itself, as when it is timed. Raises
    CandidateError for code that LLVM rejects.
    """
    level = code_level(isa, _needs((code,), isa), own_architecture())
    key = CompiledFiles.key("machine code", code.llvm_text, level)
    return compiled_files().kept(key, lambda: object_code(fusion_module(code, level), FUSION_ENTRY))


def _needs(codes: Iterable[FusionCode], isa: str) -> tuple[str, ...]:
    """Returns the instruction sets that code needs: the isa, where it is one, and those that it calls."""
    level = (isa,) if isa in ISAS else ()
    texts = dict.fromkeys(code.llvm_text for code in codes)
    called = encoded(instructions_needed("\n".join(texts)), isa)
    return tuple(dict.fromkeys((*level, *called)))


def _scheduled(
    formed: FormedText, machine: Machine, schedules: Schedules, threads: int
) -> tuple[ScheduledFusion, ...]:
    known: dict[tuple[str, str], ScheduledFusion] = {}
    for same, fusion in _distinct(formed).items():
        try:
            known[same] = schedule_fusion(fusion, machine, schedules, threads)
        except CandidateError as error:
            reason = f"{', '.join(dict.fromkeys(fusion.ops))}: {error.reason}"
            raise CandidateError(error.stage, reason) from error
    return tuple(known[_identity(fusion)] for fusion in formed.program.fusions)
