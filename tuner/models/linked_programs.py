"""Compiles a payload as fusions for the CPU: code of fusions, one object file, packed weights.

``compile_fusions`` does all of it in this process. Else ``missing_fusions`` lists what child processes
compile, ``linked_program`` joins the code to a LinkedProgram, and the weights are packed meanwhile;
``kept_program`` takes all of it from ``compiled_files``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, cast

import numpy.typing as npt

from tuner.core.errors import CandidateError
from tuner.core.fusions import FUSION_ENTRY, Fusion
from tuner.core.fusions import LOOPS as LOOPS_KIND
from tuner.core.instruction_sets import code_level
from tuner.core.machine import Machine
from tuner.core.packings import FusionCode
from tuner.core.problem_classes import TextProblem
from tuner.core.programs import Schedules, no_schedules
from tuner.core.progress import CompileObserver, ignore_compile_event
from tuner.mlir.cpu.pipeline import cpu_compiler
from tuner.mlir.ir.resources import Data, split_payload
from tuner.models.fusion_compiler import (
    FusionTask,
    ScheduledFusion,
    machine_code,
    needed_sets,
    next_task,
    problem_key,
    schedule_fusion,
    tuned_problem,
    with_other_ways_known,
)
from tuner.models.fusions.linking import FusionPlaces, function_names, linked
from tuner.models.fusions.memory_plan import memory_plan
from tuner.models.fusions.payload import Constants, NotFused
from tuner.models.fusions.pipeline import FormedText, form_text
from tuner.models.run.fused_code import PROGRAM_ENTRY, FusedCode, FusedImage
from tuner.models.run.program_weights import WeightPlan, packed_weights, weight_plan
from tuner.models.weight_code import InitCode, InitTask, content_of, initialized_parts
from tuner.runtime.compiled_files import CompiledFiles, compiled_files
from tuner.runtime.cpu.host import own_architecture, usable_processors
from tuner.runtime.cpu.linkable_objects import merged_object
from tuner.targets.cpu.compiler import object_code

PACKING_THREADS = 4  # at most: more read no more of memory in a second
# Of weights that are looked up before they are packed: fewer are packed in the tenth of a second that
# loading the hash takes.
LEAST_COMPARED_BYTES = 1 << 27
Array = npt.NDArray[Any]
CompileTask = FusionTask | InitTask


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
        if is_asked and files.read(problem_key(fusion)) is None:
            return None
        _, stored = next_task(fusion, machine, schedules, threads)
        if stored is None:
            return None
        known[same] = stored
    init = files.read(InitTask(formed.program.init).key) if formed.program.init else ()
    if init is None or not all(code.is_compiled for code in init):
        return None
    return _of_each_fusion(formed, known), init


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
        plan = weight_plan(formed.program, list(map(attrgetter("code"), fusions)))
    except ValueError:  # linking says why
        return None
    return PackedWeights(plan, _packed(plan, init, constants, observe))


def _packed(
    plan: WeightPlan, init: Sequence[InitCode], constants: Constants, observe: CompileObserver
) -> tuple[Array, ...]:
    threads = min(PACKING_THREADS, usable_processors().allowed)
    is_large = sum(plan.weight_bytes) >= LEAST_COMPARED_BYTES
    content = content_of if is_large else None
    return packed_weights(plan, initialized_parts(init, constants), observe, threads, content)


def formed_text(text: str, entry: str | None, machine: Machine) -> FormedText | NotFused:
    """Returns a payload without the data of its constants as fusions, from ``compiled_files`` or formed now.

    ``entry``: the function; None: ``main``, or the only public one. Returns NotFused for a program that must
    be compiled as a whole. Raises CandidateError(BIND) for text that does not parse.
    """
    return compiled_files().kept(
        _formed_key(text, entry, machine),
        lambda: form_text(
            text,
            entry,
            multiplies_pairs=machine.multiplies_pairs,
            multiplies_bytes=machine.multiplies_bytes,
        ),
    )


def _formed_key(text: str, entry: str | None, machine: Machine) -> str:
    products = (machine.multiplies_pairs, machine.multiplies_bytes)
    return CompiledFiles.key("fusions of a program", text, entry, products)


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
    missing: list[CompileTask] = []
    if formed.program.init:
        init = InitTask(formed.program.init)
        if files.read(init.key) is None:
            missing.append(init)
    for fusion in _distinct(formed).values():
        task, stored = next_task(fusion, machine, schedules, threads)
        if stored is None:
            missing.append(with_other_ways_known(task))
    return tuple(missing)


def tuned_problems(formed: FormedText, threads: int) -> tuple[tuple[TextProblem, int], ...]:
    """Returns what the schedules of a program's fusions are stored for: distinct problems, each with threads.

    ``threads``: that the program may use.
    """
    asked = (tuned_problem(fusion, threads) for fusion in _distinct(formed).values())
    return tuple(dict.fromkeys(pair for pair in asked if pair is not None))


def linked_program(
    formed: FormedText, machine: Machine, schedules: Schedules = no_schedules, threads: int = 1
) -> "LinkedProgram | NotFused":
    """Compiles the fusions of a program, and the code of its weights; reads no data of constants.

    ``formed``: with its facts of data. Returns NotFused for a program that must be compiled as a whole.
    Raises CandidateError where LLVM rejects code of a fusion, or the code of its weights does not compile.
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
    return _of_each_fusion(formed, known)


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
    codes = list(map(attrgetter("code"), fusions))
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
        needs=needed_sets(codes, machine.isa),
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
    level = code_level(isa, needed_sets(codes, isa), own_architecture())
    by_text = {code.llvm_text: code for code in codes}
    called = {name: machine_code(by_text[text], isa) for text, name in function_names(codes).items()}
    return merged_object(object_code(linked(places, codes, level), PROGRAM_ENTRY), called, FUSION_ENTRY)


def _distinct(formed: FormedText) -> dict[tuple[str, str], Fusion]:
    """Returns the distinct fusions by (kind, text), in order: fusions of equal text are compiled once."""
    fusions: dict[tuple[str, str], Fusion] = {}
    for fusion in formed.program.fusions:
        fusions.setdefault(_identity(fusion), fusion)
    return fusions


def _of_each_fusion(
    formed: FormedText, known: Mapping[tuple[str, str], ScheduledFusion]
) -> tuple[ScheduledFusion, ...]:
    """Returns the code of each fusion of a program, in order; ``known``: of the distinct ones."""
    return tuple(known[_identity(fusion)] for fusion in formed.program.fusions)


def _identity(fusion: Fusion) -> tuple[str, str]:
    """Returns (kind, text) of a fusion: fusions with equal ones have the same code."""
    return fusion.kind, fusion.text
