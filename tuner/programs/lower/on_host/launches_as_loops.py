"""Converts launches to loops, so that a GPU program runs on the host: for comparison, not for speed.

Takes outlined kernels and their launches; creates a function per kernel, which takes the kernel's parameters,
its indices and the sizes of its launch, and a loop nest per launch. Device memory becomes host memory, tokens
are removed. Threads run one after another, which is correct only where they neither synchronize nor share
memory; other kernels are interpreted, see ``interpreted_kernels``.

    gpu.launch_func @m::@k blocks in (%c4, %c1, %c1) threads in (%c256, %c1, %c1) args(%a : memref<1000xf32>)
  becomes
    scf.for %bx = %c0 to %c4 step %c1 {
      ...  // %by, %bz, %tx, %ty, %tz
        func.call @on_host_k(%a, %bx, %by, %bz, %tx, %ty, %tz, %c4, %c1, %c1, %c256, %c1, %c1) : ...
    }
"""

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Value, WalkResult, ir
from tuner.mlir.rewrite.building import create, index
from tuner.mlir.rewrite.gpu_indices import axis_of
from tuner.mlir.rewrite.launch_operands import ARGUMENTS, BLOCK, GRID, kernel_of, operands
from tuner.mlir.rewrite.symbols import function_type, name_of, private_function
from tuner.mlir.rewrite.type_sizes import is_workgroup
from tuner.mlir.rewrite.walking import walk, walk_ops, walk_where
from tuner.programs.lower.explicit_memory import use_host_memory
from tuner.programs.lower.on_host.interpreted_kernels import call_interpreter

# Operation in a kernel -> position of its x value among the 12 index arguments.
INDICES = {"gpu.block_id": 0, "gpu.thread_id": 3, "gpu.grid_dim": 6, "gpu.block_dim": 9}
ALLOWED = frozenset({*INDICES, "gpu.return", "gpu.global_id"})
HOST_OPS = frozenset(
    f"gpu.{name}"
    for name in (
        *("launch_func", "alloc", "dealloc", "memcpy", "memset", "wait"),
        *("host_register", "host_unregister"),
    )
)


def run_kernels_on_host(module: ir.Module) -> str:
    """Converts all kernel launches of a module to host code, in place: loops, or calls of the interpreter.

    The interpreter runs kernels whose threads synchronize or share memory; their MLIR text is returned, "" if
    there are none. Raises CandidateError(COMPILE) for kernels that neither can run.
    """
    kernels = [kernel for holder in walk(module, "gpu.module") for kernel in walk(holder, "gpu.func")]
    together = frozenset(name_of(kernel) for kernel in kernels if not has_independent_threads(kernel))
    interpreted = call_interpreter(module, together)
    names = {}
    for holder in walk(module, "gpu.module"):
        for kernel in walk(holder, "gpu.func"):
            names[name_of(kernel)] = _to_function(module, kernel)
    for op in reversed(_host_ops(module)):  # users of a token before the operation that returns it
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


def _host_ops(module: ir.Module) -> list[Op]:
    found: list[Op] = []

    def visit(op: Op) -> WalkResult:
        if op.name in HOST_OPS:
            found.append(op)
        return ir.WalkResult.ADVANCE

    walk_ops(module, visit, is_pre_order=True)
    return found


def _to_function(module: ir.Module, kernel: Op) -> str:
    name = f"on_host_{name_of(kernel)}"
    block = kernel.regions[0].blocks[0]
    kinds = [*(each.type for each in block.arguments), *[ir.IndexType.get()] * 12]
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

    False for a kernel of several blocks, and for one with barriers, shared memory, calls, globals or GPU
    operations other than indices and sizes.
    """
    blocks = kernel.regions[0].blocks
    if len(blocks) != 1 or len(function_type(kernel).inputs) != len(blocks[0].arguments):
        return False
    return not walk_where(kernel, lambda op: op != kernel and _ties_threads(op))


def _ties_threads(op: Op) -> bool:
    if any(isinstance(each.type, ir.MemRefType) and is_workgroup(each.type) for each in op.results):
        return True
    is_of_device = op.name.startswith(("gpu.", "nvgpu.", "nvvm.", "func.call", "memref.get_global"))
    return is_of_device and op.name not in ALLOWED


def _replace_indices(function: Op, indices: list[Value]) -> None:
    for name, first in INDICES.items():
        for op in walk(function, name):
            op.results[0].replace_all_uses_with(indices[first + axis_of(op)])
            op.erase()
    for op in walk(function, "gpu.global_id"):
        number = axis_of(op)
        block, thread, size = indices[number], indices[3 + number], indices[9 + number]
        kind = op.results[0].type
        with op.location, ir.InsertionPoint(op):
            start = create("arith.muli", [kind], [block, size]).results[0]
            global_id = create("arith.addi", [kind], [start, thread]).results[0]
        op.results[0].replace_all_uses_with(global_id)
        op.erase()


def _to_loops(launch: Op, names: dict[str, str]) -> None:
    grid, block = (
        [operands(launch, number)[0] for number in range(part.start, part.stop)] for part in (GRID, BLOCK)
    )
    sizes = [*grid, *block]
    with launch.location, ir.InsertionPoint(launch):
        zero, one = index(0), index(1)
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
    """Erases an operation.

    Raises CandidateError(COMPILE) where an operation outside GPU dialect uses its token.
    """
    for result in op.results:
        for use in result.uses:
            raise CandidateError(Stage.COMPILE, f"{use.owner.name}: tokens are for gpu operations only")
    op.erase()
