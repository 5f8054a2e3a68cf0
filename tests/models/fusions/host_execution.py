"""Runs a program's fusions one after the other by today's host lowering: plain loops, no schedules."""

import math
from typing import Any

import numpy as np

from tests.models.lowering.compiled import cpu_function
from tests.models.payload_runs import listed
from tuner.core.fusions import ARGUMENT, RESULT, TEMPORARY, WEIGHT, Buffer, FusedProgram, Fusion, View
from tuner.core.numpy_types import DTYPES
from tuner.mlir.bindings import ir
from tuner.mlir.transform import new_context
from tuner.models.fusions.pipeline import FormedProgram, fuse_program

Array = Any
ENTRY = "run_fusions"
NOISE = 1e30  # in temporary buffers before the first call, so that a read of what nobody wrote shows


def formed(text: str, *, multiplies_pairs: bool = False, multiplies_bytes: bool = False) -> FormedProgram:
    """Returns a payload as fusions; fails for a payload that is refused."""
    program = fuse_program(text, multiplies_pairs=multiplies_pairs, multiplies_bytes=multiplies_bytes)
    assert isinstance(program, FormedProgram), program
    return program


class FusedFunction:
    """A program in fusions as a Python function; its temporary buffers keep their numbers between calls."""

    def __init__(self, formed_program: FormedProgram) -> None:
        self.program = formed_program.program
        weights = list(formed_program.weights)
        if self.program.init:
            weights = list(listed(cpu_function(self.program.init, "init")(*weights)))
        kinds = [buffer.type for buffer in self.program.buffers if buffer.owner == WEIGHT]
        assert [kind.shape for kind in kinds] == [weight.shape for weight in weights]
        self.memory = [_memory(buffer, weights) for buffer in self.program.buffers]
        self.function = cpu_function(_module(self.program), ENTRY)

    def __call__(self, *arguments: Array) -> tuple[Array, ...]:
        results = {}
        for number, buffer in enumerate(self.program.buffers):
            if buffer.owner == ARGUMENT:
                self.memory[number] = np.array(arguments[buffer.number]).reshape(-1)
            if buffer.owner == RESULT:
                self.memory[number] = _filled(buffer, NOISE)
                results[buffer.number] = self.memory[number].reshape(buffer.type.shape)
        self.function(*self.memory)
        return tuple(results[number] for number in sorted(results))


def _memory(buffer: Buffer, weights: list[Array]) -> Array:
    if buffer.owner == WEIGHT:
        return np.ascontiguousarray(weights[buffer.number]).reshape(-1)
    if buffer.owner == TEMPORARY:
        return _filled(buffer, NOISE if buffer.padding is None else buffer.padding)
    return None


def _filled(buffer: Buffer, number: float) -> Array:
    is_float = buffer.type.element.startswith(("f", "bf"))
    with np.errstate(over="ignore"):
        kept = number if is_float or abs(number) < 100 else 1
        return np.full(math.prod(buffer.type.shape), kept, DTYPES[buffer.type.element])


def _module(program: FusedProgram) -> str:
    kinds = [f"memref<{math.prod(buffer.type.shape)}x{buffer.type.element}>" for buffer in program.buffers]
    arguments = ", ".join(f"%b{number}: {kind}" for number, kind in enumerate(kinds))
    functions, body = [], []
    with new_context(), ir.Location.unknown():
        for at, fusion in enumerate(program.fusions):
            operands = (*fusion.inputs, *fusion.outputs)
            types = [_strided(view) for view in operands]
            functions.append(_with_types(fusion, f"fusion{at}", types))
            for number, (view, kind) in enumerate(zip(operands, types, strict=True)):
                place = f"[{view.offset}], sizes: {list(view.type.shape)}, strides: {list(view.strides)}"
                cast = f"memref.reinterpret_cast %b{view.buffer} to offset: {place}"
                body.append(f"%v{at}_{number} = {cast} : {kinds[view.buffer]} to {kind}")
            names = ", ".join(f"%v{at}_{number}" for number in range(len(types)))
            body.append(f"func.call @fusion{at}({names}) : ({', '.join(types)}) -> ()")
    lines = "\n".join(body)
    return "\n".join(functions) + f"\nfunc.func @{ENTRY}({arguments}) {{\n{lines}\nreturn\n}}\n"


def _with_types(fusion: Fusion, name: str, types: list[str]) -> str:
    """Returns a fusion's function on memrefs with the views' offsets, which its pointers have otherwise."""
    module = ir.Module.parse(fusion.text)
    function = module.body.operations[0].operation
    kinds = [ir.Type.parse(each) for each in types]
    for argument, kind in zip(function.regions[0].blocks[0].arguments, kinds, strict=True):
        assert argument.type.shape == kind.shape
        argument.set_type(kind)
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(kinds, []))
    function.attributes["sym_name"] = ir.StringAttr.get(name)
    function.attributes["sym_visibility"] = ir.StringAttr.get("private")
    return str(function)


def _strided(view: View) -> str:
    shape = "".join(f"{size}x" for size in view.type.shape)
    layout = f"strided<[{', '.join(map(str, view.strides))}], offset: {view.offset}>"
    return f"memref<{shape}{view.type.element}, {layout}>"
