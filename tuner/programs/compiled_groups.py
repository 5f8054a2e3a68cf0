"""Compiles a payload as groups of operations: machine code, and the weights packed as the code reads them."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.errors import CandidateError
from tuner.core.group_schedule import Schedules, no_schedules
from tuner.core.grouped_program import GroupedProgram, OpGroup
from tuner.core.instruction_sets import AVX512, AVX_VNNI, FEATURES, LEVELS, PLAIN_LEVEL, VNNI
from tuner.core.machine import Machine
from tuner.mlir import interpreter
from tuner.mlir.bindings import ir
from tuner.mlir.cpu.needed_instructions import instructions_needed
from tuner.mlir.cpu.pipeline import cpu_compiler
from tuner.programs.lower.entry import entry_of
from tuner.programs.lower.resources import split_payload
from tuner.programs.op_groups.group_program import group_program
from tuner.programs.op_groups.hoisting import INIT, init_parts
from tuner.programs.op_groups.linked_groups import GroupPlaces, ProcessorLevel, linked
from tuner.programs.op_groups.memory_plan import memory_plan
from tuner.programs.op_groups.payload import NotGrouped
from tuner.programs.run.grouped_code import PROGRAM_ENTRY, GroupedCode
from tuner.programs.run.grouped_image import GroupedImage
from tuner.programs.run.packed_weights import packed_block, weight_plan
from tuner.programs.scheduled_group import ScheduledGroup, schedule_group
from tuner.targets.cpu.object_code import write_object

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
    with interpreter.new_context(), ir.Location.unknown():
        return entry_of(interpreter.parse(split_payload(text).text, "payload"), entry)


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
    return ProcessorLevel(name, ",".join(FEATURES[each] for each in needs if each in FEATURES))


def _object_code(llvm_text: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "code.o"
        write_object(llvm_text, file, entry=PROGRAM_ENTRY)
        return file.read_bytes()


def initialized(program: GroupedProgram, weights: tuple[Array, ...]) -> Sequence[Array]:
    """Returns the arrays of a program's weight buffers, in the order of their numbers: runs its ``init``."""
    if not program.init:
        return weights
    from tuner.programs.lower.host_lowering import lower_host_program
    from tuner.programs.lower.read_program import read_program
    from tuner.programs.run.host_function import HostFunction

    compiled: dict[str, HostFunction] = {}
    found: dict[int, Array] = {}
    with interpreter.new_context(), ir.Location.unknown():
        for part in init_parts(program.init):
            arrays = [np.ascontiguousarray(weights[number]) for number in part.inputs]
            if part.text and part.text not in compiled:
                payload = read_program(part.text, INIT, limit=None)
                compiled[part.text] = HostFunction(lower_host_program(payload))
            made = compiled[part.text](*arrays) if part.text else arrays[0]
            found |= zip(part.results, made if len(part.results) > 1 else (made,), strict=True)
    return tuple(found[number] for number in range(len(found)))
