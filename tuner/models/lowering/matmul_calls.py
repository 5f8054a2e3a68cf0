"""Replaces a program's matmuls by calls of tuned CPU kernels.

``call_kernels`` replaces the matmuls and compiles their kernels; ``link`` adds the kernels to the program in
LLVM dialect.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tuner.core.errors import Stage, failing_at
from tuner.core.interfaces import Partition, Script
from tuner.core.problem import Problem
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.cpu.lowering import bufferize_remaining_tensors, lower_to_llvm, reject_unjittable
from tuner.mlir.effects.op_effects import READ_ONLY_ATTRIBUTE
from tuner.mlir.ir.building import create, value
from tuner.mlir.ir.reading import name_of
from tuner.mlir.programs.matmul_replacement import replace_matmuls
from tuner.mlir.programs.matmuls import find_matmuls
from tuner.mlir.programs.payload import ProgramPayload
from tuner.mlir.transform import apply_script, parse
from tuner.payload.cpu import element_offsets, payload_mlir
from tuner.payload.partitions import partitions_in

POINTER = "!llvm.ptr"


@dataclass(frozen=True)
class LinkedKernel:
    """A script's CPU kernel for one matmul problem, in LLVM dialect; a call computes one partition of C."""

    problem: Problem
    llvm: str  # module in LLVM dialect; symbols that it defines end in ``suffix``
    suffix: str
    partitions: tuple[Partition, ...]


def call_kernels(payload: ProgramPayload, scripts: Mapping[Problem, Script]) -> tuple[LinkedKernel, ...]:
    """Replaces matmuls that have a script by calls of compiled CPU kernels, in place; returns the kernels.

    The functions are only declared, because the kernels have their own pipeline and calling convention;
    ``link`` adds them when the program is in LLVM dialect as well. Raises CandidateError for a script that
    fails.

        linalg.generic ... ins(%a, %b : ...) outs(%c : memref<512x512xf32>)
      becomes, where C was filled with zeros
        %address = memref.extract_aligned_pointer_as_index %a : memref<512x512xf32> -> index
        %0 = arith.index_cast %address : index to i64
        %1 = llvm.inttoptr %0 : i64 to !llvm.ptr
        ...
        llvm.call @matmul_0(%1, %3, %5) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()
    """
    kernels: dict[Problem, LinkedKernel] = {}
    matches = [match for match in find_matmuls(payload) if match.problem in scripts]
    for problem in dict.fromkeys(match.problem for match in matches):
        script = scripts[problem]
        suffix = f"_{len(kernels)}"
        with failing_at(Stage.BIND):
            partitions = partitions_in(script.text, problem)
        module = parse(payload_mlir(problem, partitions), "payload")
        apply_script(module, parse(script.text, "script"))
        bufferize_remaining_tensors(module)
        text = lower_to_llvm(module)
        reject_unjittable(text)
        for op in module.body.operations:
            if _has_body(op.operation):
                name = name_of(op.operation)
                text = re.sub(rf"@{re.escape(name)}\b", f"@{name}{suffix}", text)
        kernels[problem] = LinkedKernel(problem, text, suffix, partitions)
        type_ = ir.Type.parse(f"!llvm.func<void ({POINTER}, {POINTER}, {POINTER})>")
        for entry in dict.fromkeys(partition.entry for partition in partitions):
            attributes = {
                "sym_name": ir.StringAttr.get(f"{entry}{suffix}"),
                "function_type": ir.TypeAttr.get(type_),
                "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
            }
            with ir.InsertionPoint(payload.module.body):
                ir.Operation.create("llvm.func", attributes=attributes, regions=1)
    replace_matmuls(matches, lambda match, *arrays: _call(kernels[match.problem], arrays))
    return tuple(kernels.values())


def link(module: ir.Module, kernels: tuple[LinkedKernel, ...]) -> None:
    """Adds the definitions of kernels to a program in LLVM dialect, in place of their declarations.

    ``kernels``: what ``call_kernels`` returned for the program.
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


def _has_body(op: Op) -> bool:
    return op.name != "llvm.func" or len(op.regions[0].blocks) > 0


def _call(kernel: LinkedKernel, arrays: tuple[Value, ...]) -> None:
    for partition in kernel.partitions:
        offsets = element_offsets(kernel.problem, partition)
        pointers = [
            _pointer(array, offset, is_read_only=index < len(arrays) - 1)
            for index, (array, offset) in enumerate(zip(arrays, offsets, strict=True))
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
    wide = ir.IntegerType.get_signless(64)
    words = {READ_ONLY_ATTRIBUTE: ir.UnitAttr.get()} if is_read_only else {}
    start = value("memref.extract_aligned_pointer_as_index", ir.IndexType.get(), array, **words)
    address = value("arith.index_cast", wide, start)
    if offset:
        size = array.type.element_type.width // 8
        distance = value("arith.constant", wide, value=ir.IntegerAttr.get(wide, offset * size))
        address = value("arith.addi", wide, address, distance)
    return value("llvm.inttoptr", ir.Type.parse(POINTER), address)
