"""Converts launches of kernels whose threads synchronize or share memory to calls of the interpreter.

A launch becomes a call of a declared function, which the runtime defines: it interprets the text of the
kernel. Every parameter is passed as a memref, a number as a memref of rank 0; the first argument is a memref
with the sizes of the launch::

    gpu.launch_func @m::@k blocks in (%g, %1, %1) threads in (%t, %1, %1) args(%a : memref<4xf32>, %n : index)

    %sizes = memref.alloca() : memref<7xindex>    // grid, block, bytes of dynamic shared memory or -1
    %0 = memref.alloca() : memref<index>
    memref.store %n, %0[] : memref<index>
    func.call @interpret_k(%sizes, %a, %0) {writes = array<i64: 1>}
"""

from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.cpu.pipeline import EXPORTED
from tuner.mlir.effects.address_flow import is_buffer
from tuner.mlir.effects.kernel_effects import KernelEffects, is_number
from tuner.mlir.effects.op_effects import WRITES_ATTRIBUTE
from tuner.mlir.pipeline import run_passes
from tuner.mlir.rewrite.building import create, index, value
from tuner.mlir.rewrite.launch_operands import ARGUMENTS, BLOCK, GRID, SHARED_BYTES, kernel_of, operands
from tuner.mlir.rewrite.located_error import unsupported
from tuner.mlir.rewrite.module_copy import copy_of
from tuner.mlir.rewrite.symbols import name_of, private_function
from tuner.mlir.rewrite.walking import parents_of, walk
from tuner.programs.interpret.kernels import decode_kernels

PREFIX = "interpret_"  # prefix of the functions that the runtime defines
UNKNOWN_SIZE = -1  # bytes of dynamic shared memory of a launch that does not specify the number
SIZES = 7
LOWER_AFFINE = "builtin.module(lower-affine)"


def call_interpreter(module: ir.Module, kernels: frozenset[str]) -> str:
    """Inserts, before each launch of the given kernels, a call of a function that interprets the kernel.

    Changes the module in place: erases these kernels; the caller erases their launches. Returns the kernels'
    MLIR text; "" without kernels. Raises CandidateError(COMPILE) for operations that the interpreter does not
    support, and for kernel arguments other than memrefs and numbers.
    """
    if not kernels:
        return ""
    run_passes(module, LOWER_AFFINE)
    effects = KernelEffects(module)
    for launch in walk(module, "gpu.launch_func"):
        if kernel_of(launch) in kernels:
            _call(module, launch, effects)
    return _taken_out(module, kernels)


def _taken_out(module: ir.Module, kernels: frozenset[str]) -> str:
    """Erases kernels; returns the text of a module with these kernels and the rest of their gpu.modules."""
    kept = copy_of(module)
    for op in list(kept.body.operations):
        if op.operation.name != "gpu.module":
            op.operation.erase()
    for kernel in walk(kept, "gpu.func"):
        if name_of(kernel) not in kernels:
            kernel.erase()
    for kernel in walk(module, "gpu.func"):
        if name_of(kernel) in kernels:
            kernel.erase()
    decode_kernels(kept)
    return str(kept.operation.get_asm(enable_debug_info=True))


def _call(module: ir.Module, launch: Op, effects: KernelEffects) -> None:
    arguments = operands(launch, ARGUMENTS)
    written = {access.value for access in effects.of_launch(launch) if access.effect.writes}
    with launch.location:
        passed = [_sizes(launch), *(_as_buffer(launch, each) for each in arguments)]
        name = PREFIX + kernel_of(launch)
        _declare(module, name, [each.type for each in passed])
        with ir.InsertionPoint(launch):
            numbers = [number for number, each in enumerate(arguments, 1) if each in written]
            callee = ir.FlatSymbolRefAttr.get(name)
            writes = ir.DenseI64ArrayAttr.get(numbers)
            create("func.call", [], passed, callee=callee, **{WRITES_ATTRIBUTE: writes})


def _declare(module: ir.Module, name: str, kinds: list[Type]) -> None:
    if any(name_of(function) == name for function in walk(module, "func.func")):
        return
    with ir.InsertionPoint(module.body):
        private_function(name, ir.FunctionType.get(kinds, []), **{EXPORTED: ir.UnitAttr.get()})


def _sizes(launch: Op) -> Value:
    """Returns a buffer with the sizes of a launch."""
    kind = ir.IndexType.get()
    buffer = _room(launch, ir.MemRefType.get([SIZES], kind))
    sizes = [operands(launch, number)[0] for part in (GRID, BLOCK) for number in range(part.start, part.stop)]
    with ir.InsertionPoint(launch):
        sizes += operands(launch, SHARED_BYTES) or [index(UNKNOWN_SIZE)]
        for place, size in enumerate(sizes):
            is_index = isinstance(size.type, ir.IndexType)
            whole = size if is_index else value("arith.index_cast", kind, size)
            create("memref.store", [], [whole, buffer, index(place)])
    return buffer


def _as_buffer(launch: Op, argument: Value) -> Value:
    """Returns an argument that is a buffer, or a buffer that contains it. Raises CandidateError(COMPILE)."""
    if is_buffer(argument.type):
        return argument
    if not is_number(argument.type):
        found = f"an argument of type {argument.type}, which has no meaning on the host"
        raise unsupported(launch, found, "memrefs and numbers")
    buffer = _room(launch, ir.MemRefType.get([], argument.type))
    with ir.InsertionPoint(launch):
        create("memref.store", [], [argument, buffer])
    return buffer


def _room(launch: Op, kind: Type) -> Value:
    """Returns a stack buffer, allocated once per function instead of once per iteration."""
    function = next(each for each in parents_of(launch) if each.name == "func.func")
    with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
        segments = ir.DenseI32ArrayAttr.get([0, 0])
        return value("memref.alloca", kind, operandSegmentSizes=segments)
