"""Programs of hand-written groups, compiled to machine code as programs of payloads are."""

import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from tests.programs.fusions.group_texts import exp_of_weighted_sum
from tuner.core.fusions import GroupCode, GroupedProgram
from tuner.core.programs import CompiledGroup
from tuner.programs.fusions.linking import GroupPlaces, ProcessorLevel, linked
from tuner.programs.fusions.memory_plan import memory_plan
from tuner.programs.run.fused_code import PROGRAM_ENTRY, GroupedCode, aligned_bytes, fill_weights, weight_plan
from tuner.programs.run.fused_program import GroupedFunction
from tuner.targets.cpu.compiler import write_object

PLAIN = ProcessorLevel("x86-64")  # every processor that runs the tests can run it


def function_of(
    program: GroupedProgram, codes: Sequence[GroupCode], weights: Sequence[np.ndarray] = ()
) -> GroupedFunction:
    """Returns a program of groups with their code as a function."""
    places = GroupPlaces(program, memory_plan(program), weight_plan(program, codes))
    block = aligned_bytes(places.weights.bytes)
    fill_weights(places.weights, weights, block)
    return GroupedFunction(code_of(places, codes), block)


def code_of(places: GroupPlaces, codes: Sequence[GroupCode]) -> GroupedCode:
    """Returns the machine code of groups whose buffers have places."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "code.o"
        write_object(linked(places, codes, PLAIN), file, entry=PROGRAM_ENTRY)
        return GroupedCode(
            entry="main",
            arguments=places.program.arguments,
            results=places.program.results,
            arena_bytes=places.memory.arena_bytes,
            fills=places.memory.fills,
            weights_bytes=places.weights.bytes,
            needs=(),
            compiler="for tests",
            groups=tuple(
                CompiledGroup(group.kind, group.ops, "by_hand", (("tile", 4),), "first", "", "f32", 8, 96)
                for group in places.program.groups
            ),
            object_code=file.read_bytes(),
        )


@cache
def compiled_code() -> GroupedCode:
    """Returns the code of ``exp_of_weighted_sum``, compiled once."""
    program, codes = exp_of_weighted_sum()
    return code_of(GroupPlaces(program, memory_plan(program), weight_plan(program, codes)), codes)


def compiled_function(weight: np.ndarray) -> GroupedFunction:
    """Returns exp(x * weight + y) and 3 * that as a function of x and y of 8 elements each."""
    block = aligned_bytes(compiled_code().weights_bytes)
    program, codes = exp_of_weighted_sum()
    fill_weights(weight_plan(program, codes), [weight], block)
    return GroupedFunction(compiled_code(), block)
