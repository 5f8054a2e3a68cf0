"""Programs of hand-written fusions, compiled to machine code as programs of payloads are."""

import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from tests.programs.fusions.group_texts import exp_of_weighted_sum
from tuner.core.fusions import FusedProgram, FusionCode
from tuner.core.programs import CompiledFusion
from tuner.programs.fusions.linking import FusionPlaces, ProcessorLevel, linked
from tuner.programs.fusions.memory_plan import memory_plan
from tuner.programs.run.fused_code import PROGRAM_ENTRY, FusedCode, aligned_bytes, fill_weights, weight_plan
from tuner.programs.run.fused_program import FusedFunction
from tuner.targets.cpu.compiler import write_object

PLAIN = ProcessorLevel("x86-64")  # every processor that runs the tests can run it


def function_of(
    program: FusedProgram, codes: Sequence[FusionCode], weights: Sequence[np.ndarray] = ()
) -> FusedFunction:
    """Returns a program of fusions with their code as a function."""
    places = FusionPlaces(program, memory_plan(program), weight_plan(program, codes))
    block = aligned_bytes(places.weights.bytes)
    fill_weights(places.weights, weights, block)
    return FusedFunction(code_of(places, codes), block)


def code_of(places: FusionPlaces, codes: Sequence[FusionCode]) -> FusedCode:
    """Returns the machine code of fusions whose buffers have places."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "code.o"
        write_object(linked(places, codes, PLAIN), file, entry=PROGRAM_ENTRY)
        return FusedCode(
            entry="main",
            arguments=places.program.arguments,
            results=places.program.results,
            arena_bytes=places.memory.arena_bytes,
            fills=places.memory.fills,
            weights_bytes=places.weights.bytes,
            needs=(),
            compiler="for tests",
            fusions=tuple(
                CompiledFusion(fusion.kind, fusion.ops, "by_hand", (("tile", 4),), "first", "", "f32", 8, 96)
                for fusion in places.program.fusions
            ),
            object_code=file.read_bytes(),
        )


@cache
def compiled_code() -> FusedCode:
    """Returns the code of ``exp_of_weighted_sum``, compiled once."""
    program, codes = exp_of_weighted_sum()
    return code_of(FusionPlaces(program, memory_plan(program), weight_plan(program, codes)), codes)


def compiled_function(weight: np.ndarray) -> FusedFunction:
    """Returns exp(x * weight + y) and 3 * that as a function of x and y of 8 elements each."""
    block = aligned_bytes(compiled_code().weights_bytes)
    program, codes = exp_of_weighted_sum()
    fill_weights(weight_plan(program, codes), [weight], block)
    return FusedFunction(compiled_code(), block)
