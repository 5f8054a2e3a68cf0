"""Fusions that tests write by hand, and programs of them, compiled as programs of payloads are."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from tests.models.file_check import filled
from tuner.core import fusions as types
from tuner.core.instruction_sets import AARCH64, NEON, NO_ISA, code_level
from tuner.core.packings import FusionCode
from tuner.core.programs import CompiledFusion
from tuner.models.fusions.linking import FusionPlaces
from tuner.models.fusions.memory_plan import memory_plan
from tuner.models.linked_programs import program_object
from tuner.models.run.fused_code import FusedCode
from tuner.models.run.fused_program import FusedFunction
from tuner.models.run.program_weights import known_parts, packed_weights, weight_plan
from tuner.runtime.cpu.host import own_architecture

# runs wherever the tests do; of AArch64 atomics need more than the plain level has
ISA = NEON if own_architecture() is AARCH64 else NO_ISA
PLAIN = code_level(ISA, (), own_architecture())


def loop_code(count: int, size: int, value: str, packings: tuple[Any, ...] = ()) -> FusionCode:
    """Returns code that writes ``size`` elements %value, which ``value`` computes from %v0, %v1, ..."""
    arguments = ", ".join(f"%p{number}: !llvm.ptr" for number in range(count + 1))
    loads = "".join(filled(__file__, "LOAD", number=number) for number in range(count))
    parts = {"arguments": arguments, "size": size, "loads": loads, "value": value, "result": count}
    text = filled(__file__, "LOOP", **parts)
    return FusionCode(text, packings or (None,) * count)


ADD = "%value = llvm.fadd %v0, %v1 : f32"
MULTIPLY = "%value = llvm.fmul %v0, %v1 : f32"
EXP = "%value = llvm.call @expf(%v0) : (f32) -> f32"
SCALE = """%factors = llvm.mlir.addressof @factors : !llvm.ptr
    %at_factor = llvm.getelementptr %factors[1] : (!llvm.ptr) -> !llvm.ptr, f32
    %factor = llvm.load %at_factor : !llvm.ptr -> f32
    %value = llvm.fmul %v0, %factor : f32"""


def flat(buffer: int, size: int, offset: int = 0) -> types.View:
    return types.View(buffer, offset, types.TensorType((size,), "f32"), (1,))


def fusion(inputs: tuple[types.View, ...], *outputs: types.View, op: str = "arith.addf") -> types.Fusion:
    return types.Fusion(types.ELEMENTWISE, "", inputs, outputs, (op,))


def exp_of_weighted_sum(size: int = 8) -> tuple[types.FusedProgram, tuple[FusionCode, ...]]:
    """Returns exp(x * w + y), 3 * that, as five fusions of arguments x and y and one weight w."""
    kind = types.TensorType((size,), "f32")
    counts = {types.ARGUMENT: 2, types.WEIGHT: 1, types.TEMPORARY: 3, types.RESULT: 2}
    owners = ((owner, number) for owner, count in counts.items() for number in range(count))
    buffers = tuple(types.Buffer(owner, number, kind) for owner, number in owners)
    x, y, w, product, total, copy, first, second = (flat(number, size) for number in range(8))
    fusions = (
        fusion((x, w), product, op="arith.mulf"),
        fusion((product, y), total),
        fusion((total,), first, op="math.exp"),
        fusion((total,), copy, op="math.exp"),
        fusion((copy,), second, op="arith.mulf"),
    )
    values = ((2, MULTIPLY), (2, ADD), (1, EXP), (1, EXP), (1, SCALE))
    codes = tuple(loop_code(count, size, value) for count, value in values)
    return types.FusedProgram(fusions, buffers, (kind, kind), (kind, kind)), codes


def places_of(program: types.FusedProgram, codes: Sequence[FusionCode]) -> FusionPlaces:
    return FusionPlaces(program, memory_plan(program), weight_plan(program, codes))


def function_of(
    program: types.FusedProgram, codes: Sequence[FusionCode], weights: Sequence[np.ndarray] = ()
) -> FusedFunction:
    places = places_of(program, codes)
    packed = packed_weights(places.weights, known_parts(dict(enumerate(weights))))
    return FusedFunction(code_of(places, codes), packed)


def code_of(places: FusionPlaces, codes: Sequence[FusionCode]) -> FusedCode:
    return FusedCode(
        entry="main",
        arguments=places.program.arguments,
        results=places.program.results,
        arena_bytes=places.memory.arena_bytes,
        fills=places.memory.fills,
        weight_bytes=places.weights.weight_bytes,
        needs=(),
        compiler="for tests",
        fusions=tuple(
            CompiledFusion(fusion.kind, fusion.ops, "by_hand", (("tile", 4),), "first", "", "f32", 8, 96)
            for fusion in places.program.fusions
        ),
        object_code=program_object(places, codes, ISA),
    )


@cache
def compiled_code() -> FusedCode:
    program, codes = exp_of_weighted_sum()
    return code_of(places_of(program, codes), codes)


def compiled_function(weight: np.ndarray) -> FusedFunction:
    """Returns exp(x * weight + y) and 3 * that as a function of x and y of 8 elements each."""
    program, codes = exp_of_weighted_sum()
    weights = packed_weights(weight_plan(program, codes), known_parts({0: weight}))
    return FusedFunction(compiled_code(), weights)
