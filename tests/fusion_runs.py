"""Compiles fusions, runs them on arrays between guards, and compares them with the reference."""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator

from tuner.core.fusions import CONTRACTION, ELEMENTWISE, QUANTIZED, Fusion
from tuner.core.numpy_types import DTYPES
from tuner.core.packings import FusionCode, WeightPacking
from tuner.core.problem_classes import TextProblem
from tuner.core.quantization import QUANTIZATION
from tuner.mlir.bindings import ir
from tuner.mlir.cpu.lowering import compile_fusion
from tuner.mlir.fusions.facts import fusion_problem
from tuner.mlir.fusions.function import STORE, fusion_arguments, fusion_function, parse_fusion
from tuner.mlir.ir.reading import walk
from tuner.mlir.reference.fusion_reference import Expected, evaluate, worst_error
from tuner.mlir.reference.products import PRODUCTS
from tuner.mlir.transform import new_context
from tuner.payload.packed_weights import pack, packed_shape
from tuner.runtime.cpu.jit import JittedModule
from tuner.targets.cpu.fusion_draws import FusionDraws, view_of

Array = Any
GUARD = 64  # elements before and after each array: NaN, which shows in a result where it is read


def as_problem(kind: str, text: str) -> TextProblem:
    """Returns the problem of a fusion's text."""
    return fusion_problem(Fusion(kind, text, (), (), ()))


def draw_inputs(text: str, rng: Generator) -> tuple[Array, ...]:
    """Returns random inputs of a fusion, contiguous arrays, as kernels are verified on."""
    kind = ELEMENTWISE
    if QUANTIZATION in text:
        kind = QUANTIZED
    elif any(name in text for name in PRODUCTS):
        kind = CONTRACTION
    draw = FusionDraws(as_problem(kind, text), rng).first
    views = map(view_of, draw.inputs, fusion_arguments(text))
    return tuple(map(np.ascontiguousarray, views))


def compiled(text: str, script: str | None, *, emulates: bool = False) -> FusionCode:
    """Returns a fusion compiled in a context of its own."""
    with new_context(), ir.Location.unknown():
        return compile_fusion(text, script, emulates=emulates)


def packed(weight: Array, packing: WeightPacking) -> Array:
    """Returns a weight as panels of columns."""
    target = np.empty(packed_shape(weight.shape, packing), weight.dtype)
    pack(weight, packing, target)
    return target


def run(code: FusionCode, inputs: Sequence[Array], outputs: Sequence[Expected], element: str) -> list[Array]:
    """Returns what a fusion's code computes. Fails where it writes outside of its outputs."""
    pairs = zip(inputs, code.packings, strict=True)
    given = [each if packing is None else packed(each, packing) for each, packing in pairs]
    unwritten = np.iinfo(f"{element[0]}{int(element[1:]) // 8}").min if element[0] == "i" else np.nan
    made = [np.full(each.value.shape, unwritten, DTYPES[element]) for each in outputs]
    arrays = [_guarded(each) for each in (*given, *made)]
    before = [whole.copy() for whole, _ in arrays]
    pointers = ctypes.c_void_p * len(arrays)
    addresses = pointers(*[part.ctypes.data for _, part in arrays])
    slots = pointers(*[ctypes.addressof(addresses) + 8 * number for number in range(len(arrays))])
    jitted = JittedModule(code.llvm_text, ("fusion",))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(jitted.addresses["fusion"])(ctypes.addressof(slots))
    for number, ((whole, part), old) in enumerate(zip(arrays, before, strict=True)):
        if number >= len(given):
            old[GUARD : GUARD + part.size] = part.reshape(-1)
        np.testing.assert_array_equal(whole.view(np.uint8), old.view(np.uint8))  # NaN of bf16 is unequal
    return [part for _, part in arrays[len(given) :]]


def error_of(
    text: str, script: str | None, rng: Generator, inputs: Sequence[Array] = (), *, emulates: bool = False
) -> float:
    """Returns the largest error of a compiled fusion on random inputs, in units of the tolerance."""
    given = tuple(inputs) or draw_inputs(text, rng)
    expected = evaluate(text, given)
    (element,) = output_elements(text)
    found = run(compiled(text, script, emulates=emulates), given, expected, element)
    return max(worst_error(each, array) for each, array in zip(expected, found, strict=True))


def output_elements(text: str) -> set[str]:
    """Returns the element types of a fusion's outputs, its last arguments."""
    with new_context(), ir.Location.unknown():
        module = parse_fusion(text)
        function = fusion_function(module)
        arguments = list(function.regions[0].blocks[0].arguments)
        outputs = arguments[len(arguments) - len(walk(function, STORE)) :]
        return {str(ir.MemRefType(each.type).element_type) for each in outputs}


def _guarded(array: Array) -> tuple[Array, Array]:
    """Returns a buffer with guards, and the part of it that holds a copy of the array."""
    guard = 1 if array.dtype.kind in "iub" else np.nan  # ml_dtypes' bfloat16 is of kind "V"
    whole = np.full(array.size + 2 * GUARD, guard, array.dtype)
    part = whole[GUARD : GUARD + array.size].reshape(array.shape)
    part[...] = array
    return whole, part
