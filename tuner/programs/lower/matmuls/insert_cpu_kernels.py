"""Replaces a program's matmuls by calls of tuned CPU kernels, which take the addresses of their arrays.

Takes the matches of ``find_matmuls.py`` and a bound script per problem. ``call_kernels`` inserts calls of
functions that are declared only, because the kernels have their own pipeline and calling convention. ``link``
adds the LLVM dialect of the kernels when the program is in LLVM dialect as well.

    linalg.generic ... ins(%a, %b : ...) outs(%c : memref<512x512xf32>)
  becomes, where C was filled with zeros
    %address = memref.extract_aligned_pointer_as_index %a : memref<512x512xf32> -> index
    %0 = arith.index_cast %address : index to i64
    %1 = llvm.inttoptr %0 : i64 to !llvm.ptr
    ...
    llvm.call @matmul_0(%1, %3, %5) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tuner.core.errors import Stage, failing_at
from tuner.core.problem import Problem
from tuner.core.target import Partition, Script
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.cpu.jit_guards import reject_what_the_jit_cannot_take
from tuner.mlir.cpu.lowering import lower_to_llvm
from tuner.mlir.effects.op_effects import READ_ONLY_ATTRIBUTE
from tuner.mlir.interpreter import apply_script, parse
from tuner.mlir.rewrite.building import create, value
from tuner.mlir.rewrite.symbols import name_of
from tuner.payload.cpu import element_offsets, partitions_in, payload_mlir
from tuner.programs.lower.matmuls.find_matmuls import find_matmuls
from tuner.programs.lower.matmuls.replace_matmuls import Multiply, replace_matmuls
from tuner.programs.lower.read_program import ProgramPayload

POINTER = "!llvm.ptr"


@dataclass(frozen=True)
class LinkedKernel:
    """A CPU kernel that a script produced for one matmul problem, in LLVM dialect, to be added by ``link``.

    Each of its partitions of C is computed by one call.
    """

    problem: Problem
    llvm: str  # module in LLVM dialect; symbols that it defines end in ``suffix``
    suffix: str
    partitions: tuple[Partition, ...]


def call_kernels(payload: ProgramPayload, scripts: Mapping[Problem, Script]) -> tuple[LinkedKernel, ...]:
    """Replaces matmuls that have a script by calls of compiled CPU kernels, in place; returns the kernels.

    The called functions are only declared; ``link`` adds their definitions later. Raises CandidateError for a
    script that fails: BIND, COMPILE or RESOURCES.
    """
    kernels: dict[Problem, LinkedKernel] = {}
    matches = [match for match in find_matmuls(payload) if match.problem in scripts]
    for problem in dict.fromkeys(match.problem for match in matches):
        kernels[problem] = _compile(problem, scripts[problem], f"_{len(kernels)}")
        _declare(payload.module, kernels[problem])
    replace_matmuls(matches, lambda match: _multiply(kernels[match.problem]))
    return tuple(kernels.values())


def link(module: ir.Module, kernels: tuple[LinkedKernel, ...]) -> None:
    """Replaces the declarations of kernels by their definitions, in place, in a module in LLVM dialect.

    ``kernels`` is what ``call_kernels`` returned for the program.
    """
    for kernel in kernels:
        own = parse(kernel.llvm, "kernel")
        names = {name_of(op.operation) for op in own.body.operations if _has_body(op.operation)}
        for op in list(module.body.operations):
            if name_of(op.operation) in names:
                op.operation.erase()
        known = {name_of(op.operation) for op in module.body.operations}
        for op in list(own.body.operations):
            if name_of(op.operation) not in known:
                module.body.append(op.operation)


def _compile(problem: Problem, script: Script, suffix: str) -> LinkedKernel:
    with failing_at(Stage.BIND):
        partitions = partitions_in(script.text, problem)
    module = parse(payload_mlir(problem, partitions), "payload")
    apply_script(module, parse(script.text, "script"))
    text = lower_to_llvm(module)
    reject_what_the_jit_cannot_take(text)
    own = [name_of(op.operation) for op in module.body.operations if _has_body(op.operation)]
    for name in own:
        text = re.sub(rf"@{re.escape(name)}\b", f"@{name}{suffix}", text)
    return LinkedKernel(problem, text, suffix, partitions)


def _has_body(op: Op) -> bool:
    return op.name != "llvm.func" or len(op.regions[0].blocks) > 0


def _declare(module: ir.Module, kernel: LinkedKernel) -> None:
    kind = ir.Type.parse(f"!llvm.func<void ({POINTER}, {POINTER}, {POINTER})>")
    for entry in dict.fromkeys(partition.entry for partition in kernel.partitions):
        with ir.InsertionPoint(module.body):
            ir.Operation.create(
                "llvm.func",
                attributes={
                    "sym_name": ir.StringAttr.get(f"{entry}{kernel.suffix}"),
                    "function_type": ir.TypeAttr.get(kind),
                    "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
                },
                regions=1,
            )


def _multiply(kernel: LinkedKernel) -> Multiply:
    return lambda *arrays: _call(kernel, arrays)


def _call(kernel: LinkedKernel, arrays: tuple[Value, ...]) -> None:
    for partition in kernel.partitions:
        offsets = element_offsets(kernel.problem, partition)
        pointers = [
            _pointer(array, offset, is_read_only=number < len(arrays) - 1)
            for number, (array, offset) in enumerate(zip(arrays, offsets, strict=True))
        ]
        create(
            "llvm.call",
            [],
            pointers,
            callee=ir.FlatSymbolRefAttr.get(f"{partition.entry}{kernel.suffix}"),
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([len(pointers), 0]),
            op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
        )


def _pointer(array: Value, offset: int, *, is_read_only: bool) -> Value:
    """Returns the address of an element of a row-major memref."""
    wide = ir.IntegerType.get_signless(64)
    words = {READ_ONLY_ATTRIBUTE: ir.UnitAttr.get()} if is_read_only else {}
    start = value("memref.extract_aligned_pointer_as_index", ir.IndexType.get(), array, **words)
    address = value("arith.index_cast", wide, start)
    if offset:
        size = array.type.element_type.width // 8
        distance = value("arith.constant", wide, value=ir.IntegerAttr.get(wide, offset * size))
        address = value("arith.addi", wide, address, distance)
    return value("llvm.inttoptr", ir.Type.parse(POINTER), address)
