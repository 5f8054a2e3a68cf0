"""Lowers a whole program for the host: kernel launches become loops, or calls of the interpreter."""

from tuner.core.errors import CandidateError, Stage
from tuner.gpu.interpreter.kernels import decode_kernels
from tuner.gpu.lowering.explicit_memory import use_host_memory
from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.cpu.pipeline import EXPORTED
from tuner.mlir.effects.aliases import is_buffer
from tuner.mlir.effects.launches import ARGUMENTS, BLOCK, GRID, SHARED_BYTES, axis_of, kernel_of, operands
from tuner.mlir.effects.memory_effects import KernelEffects, is_passed_by_value
from tuner.mlir.effects.op_effects import WRITES_ATTRIBUTE
from tuner.mlir.ir.building import create, index, value
from tuner.mlir.ir.memrefs import is_workgroup
from tuner.mlir.ir.reading import (
    any_where,
    copy_of,
    function_type,
    name_of,
    parents_of,
    private_function,
    types_of,
    unsupported,
    walk,
    walk_where,
)
from tuner.mlir.passes import run_passes

PREFIX = "interpret_"  # prefix of the functions that the runtime defines
UNKNOWN_SIZE = -1  # bytes of dynamic shared memory of a launch that does not specify the number
SIZES = 7  # numbers that a launch passes: grid and block, x, y, z each, and bytes of dynamic shared memory
LOWER_AFFINE = "builtin.module(lower-affine)"
# Operation in a kernel -> position of its x value among the 12 last arguments of the kernel's function.
INDICES = {"gpu.block_id": 0, "gpu.thread_id": 3, "gpu.grid_dim": 6, "gpu.block_dim": 9}
ALLOWED = frozenset({*INDICES, "gpu.return", "gpu.global_id"})
HOST_OPS = frozenset(
    f"gpu.{name}"
    for name in (
        *("launch_func", "alloc", "dealloc", "memcpy", "memset", "wait"),
        *("host_register", "host_unregister"),
    )
)
OUTLINE = "builtin.module(gpu-launch-sink-index-computations,gpu-kernel-outlining)"


def call_interpreter(module: ir.Module, kernels: frozenset[str]) -> str:
    """Inserts, before each launch of the given kernels, a call of a function that interprets the kernel.

    ``kernels``: names. Erases these kernels; the caller erases their launches. The runtime defines the called
    function from the returned text, the kernels' MLIR; "" without kernels. Every parameter is a memref; a
    number is passed in one of rank 0. The first argument has the sizes of the launch. Raises
    CandidateError(COMPILE) for operations that the interpreter does not support, and for kernel arguments
    other than memrefs and numbers::

        gpu.launch_func @m::@k blocks in (%g, %1, %1) threads in (%t, %1, %1) args(%a : ..., %n : index)

        %sizes = memref.alloca() : memref<7xindex>    // grid, block, bytes of dynamic shared memory or -1
        %0 = memref.alloca() : memref<index>
        memref.store %n, %0[] : memref<index>
        func.call @interpret_k(%sizes, %a, %0) {writes = array<i64: 1>}
    """
    if not kernels:
        return ""
    run_passes(module, LOWER_AFFINE)
    effects = KernelEffects(module)
    for launch in walk(module, "gpu.launch_func"):
        if kernel_of(launch) in kernels:
            _call(module, launch, effects)
    kept = copy_of(module)
    for op in list(kept.body.operations):
        if op.operation.name != "gpu.module":
            op.operation.erase()
    for holder, is_interpreted in ((kept, True), (module, False)):
        for kernel in walk(holder, "gpu.func"):
            if (name_of(kernel) in kernels) is not is_interpreted:
                kernel.erase()
    decode_kernels(kept)
    return str(kept.operation.get_asm(enable_debug_info=True))


def _call(module: ir.Module, launch: Op, effects: KernelEffects) -> None:
    arguments = operands(launch, ARGUMENTS)
    written = {access.value for access in effects.of_launch(launch) if access.effect.writes}
    with launch.location:
        type_ = ir.IndexType.get()
        buffer = _stack_buffer(launch, ir.MemRefType.get([SIZES], type_))
        sizes = _grid_and_block(launch)
        with ir.InsertionPoint(launch):
            sizes += operands(launch, SHARED_BYTES) or [index(UNKNOWN_SIZE)]
            for size_index, size in enumerate(sizes):
                is_index = isinstance(size.type, ir.IndexType)
                whole = size if is_index else value("arith.index_cast", type_, size)
                create("memref.store", [], [whole, buffer, index(size_index)])
        passed = [buffer, *(_as_buffer(launch, argument) for argument in arguments)]
        name = PREFIX + kernel_of(launch)
        if name not in map(name_of, walk(module, "func.func")):
            signature = ir.FunctionType.get(types_of(passed), [])
            with ir.InsertionPoint(module.body):
                private_function(name, signature, **{EXPORTED: ir.UnitAttr.get()})
        with ir.InsertionPoint(launch):
            numbers = [number for number, argument in enumerate(arguments, 1) if argument in written]
            callee = ir.FlatSymbolRefAttr.get(name)
            writes = ir.DenseI64ArrayAttr.get(numbers)
            create("func.call", [], passed, callee=callee, **{WRITES_ATTRIBUTE: writes})


def _grid_and_block(launch: Op) -> list[Value]:
    numbers = (*range(GRID.start, GRID.stop), *range(BLOCK.start, BLOCK.stop))
    return [operands(launch, number)[0] for number in numbers]


def _as_buffer(launch: Op, argument: Value) -> Value:
    """Returns ``argument`` if it is a memref, else a memref of rank 0 on the stack that holds it.

    Raises CandidateError(COMPILE) for an argument that is neither a memref nor a number.
    """
    if is_buffer(argument.type):
        return argument
    if not is_passed_by_value(argument.type):
        actual = f"an argument of type {argument.type}, which has no meaning on the host"
        raise unsupported(launch, actual, "memrefs and numbers")
    buffer = _stack_buffer(launch, ir.MemRefType.get([], argument.type))
    with ir.InsertionPoint(launch):
        create("memref.store", [], [argument, buffer])
    return buffer


def _stack_buffer(launch: Op, type_: Type) -> Value:
    """Returns a buffer on the stack, allocated at the function's start, once for all iterations of a loop."""
    function = next(parent for parent in parents_of(launch) if parent.name == "func.func")
    with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
        segments = ir.DenseI32ArrayAttr.get([0, 0])
        return value("memref.alloca", type_, operandSegmentSizes=segments)


def run_kernels_on_host(module: ir.Module) -> str:
    """Converts all kernel launches of a module to host code, in place: loops, or calls of the interpreter.

    For comparison, not for speed. Device memory becomes host memory, tokens are removed. Threads run one
    after another, which is correct only where they neither synchronize nor share memory; the interpreter runs
    other kernels, whose MLIR text is returned. Raises CandidateError(COMPILE) for kernels that neither can
    run.

        gpu.launch_func @m::@k blocks in (%c4, %c1, %c1) threads in (%c256, %c1, %c1) args(%a : ...)
      becomes
        scf.for %bx = %c0 to %c4 step %c1 {
          ...  // %by, %bz, %tx, %ty, %tz
            func.call @on_host_k(%a, %bx, %by, %bz, %tx, %ty, %tz, %c4, %c1, %c1, %c256, %c1, %c1) : ...
        }
    """
    kernels = walk(module, "gpu.func")
    together = frozenset(name_of(kernel) for kernel in kernels if not has_independent_threads(kernel))
    interpreted = call_interpreter(module, together)
    names = {name_of(kernel): _to_function(module, kernel) for kernel in walk(module, "gpu.func")}
    host_ops = walk_where(module, lambda op: op.name in HOST_OPS)
    for op in reversed(host_ops):  # users of a token before the operation that returns it
        if op.name == "gpu.launch_func" and kernel_of(op) in together:
            _erase(op)
        elif op.name == "gpu.launch_func":
            _to_loops(op, names)
        else:
            use_host_memory(op)
            _erase(op)
    for holder in walk(module, "gpu.module"):
        holder.erase()
    return interpreted


def _to_function(module: ir.Module, kernel: Op) -> str:
    name = f"on_host_{name_of(kernel)}"
    block = kernel.regions[0].blocks[0]
    kinds = [*types_of(block.arguments), *[ir.IndexType.get()] * 12]
    with kernel.location, ir.InsertionPoint(module.body):
        function = private_function(name, ir.FunctionType.get(kinds, []))
    body = function.regions[0].blocks.append(*kinds, arg_locs=[kernel.location] * len(kinds))
    for old, new in zip(block.arguments, body.arguments, strict=False):
        old.replace_all_uses_with(new)
    for op in list(block.operations)[:-1]:
        body.append(op.operation)
    with kernel.location, ir.InsertionPoint(body):
        create("func.return")
    _replace_indices(function, list(body.arguments)[-12:])
    return name


def has_independent_threads(kernel: Op) -> bool:
    """Returns whether a kernel's threads can run one after another, as iterations of a loop.

    False for a kernel with several blocks, barriers, shared memory, calls, globals, or GPU operations other
    than indices.
    """
    blocks = kernel.regions[0].blocks
    if len(blocks) != 1 or len(function_type(kernel).inputs) != len(blocks[0].arguments):
        return False

    def ties_threads(op: Op) -> bool:
        is_shared = any(
            isinstance(result.type, ir.MemRefType) and is_workgroup(result.type) for result in op.results
        )
        is_of_device = op.name.startswith(("gpu.", "nvgpu.", "nvvm.", "func.call", "memref.get_global"))
        return op != kernel and (is_shared or (is_of_device and op.name not in ALLOWED))

    return not any_where(kernel, ties_threads)


def _replace_indices(function: Op, indices: list[Value]) -> None:
    for name, first in INDICES.items():
        for op in walk(function, name):
            op.results[0].replace_all_uses_with(indices[first + axis_of(op)])
            op.erase()
    for op in walk(function, "gpu.global_id"):
        number = axis_of(op)
        # block id, thread id, block dim
        block = indices[number]
        thread = indices[3 + number]
        size = indices[9 + number]
        type_ = op.results[0].type
        with op.location, ir.InsertionPoint(op):
            start = create("arith.muli", [type_], [block, size]).results[0]
            global_id = create("arith.addi", [type_], [start, thread]).results[0]
        op.results[0].replace_all_uses_with(global_id)
        op.erase()


def _to_loops(launch: Op, names: dict[str, str]) -> None:
    sizes = _grid_and_block(launch)
    with launch.location, ir.InsertionPoint(launch):
        zero = index(0)
        one = index(1)
    variables: list[Value] = []
    point = ir.InsertionPoint(launch)
    for size in sizes:
        with launch.location, point:
            loop = ir.Operation.create("scf.for", operands=[zero, size, one], regions=1)
        body = loop.regions[0].blocks.append(ir.IndexType.get(), arg_locs=[launch.location])
        variables.append(body.arguments[0])
        with launch.location, ir.InsertionPoint(body):
            end = create("scf.yield")
        point = ir.InsertionPoint(end)
    with launch.location, point:
        callee = ir.FlatSymbolRefAttr.get(names[kernel_of(launch)])
        create("func.call", [], [*operands(launch, ARGUMENTS), *variables, *sizes], callee=callee)
    _erase(launch)


def _erase(op: Op) -> None:
    """Erases an operation; raises CandidateError(COMPILE) if a token of it still has a user."""
    for result in op.results:
        for use in result.uses:
            raise CandidateError(Stage.COMPILE, f"{use.owner.name}: tokens are for gpu operations only")
    op.erase()
