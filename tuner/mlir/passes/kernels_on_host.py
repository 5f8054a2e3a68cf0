"""Makes loops of launches, so that a program for GPUs runs on the host: for comparison, not for speed.

Run after outlining. A kernel becomes a function of its parameters, its indices and the sizes of its launch.
Threads run one after another, which is right only where none waits for another: barriers and shared memory
are refused. Device memory becomes host memory, tokens vanish.
"""

from typing import Any

from tuner.errors import CandidateError, Stage
from tuner.mlir.bindings import ir
from tuner.mlir.building import create, index
from tuner.mlir.ops.dialect import walk
from tuner.mlir.parallel_loops import for_each_element, store
from tuner.mlir.passes.async_ops import is_token
from tuner.mlir.passes.launch_operands import ARGUMENTS, BLOCK, GRID, kernel_of, operands
from tuner.mlir.symbols import function_type, name_of

# What a kernel asks for -> where its three values begin among the indices that are passed on.
INDICES = {"gpu.block_id": 0, "gpu.thread_id": 3, "gpu.grid_dim": 6, "gpu.block_dim": 9}
DIMENSIONS = {"x": 0, "y": 1, "z": 2}
ALLOWED = frozenset({*INDICES, "gpu.return", "gpu.global_id"})
HOST_OPS = frozenset(
    f"gpu.{name}"
    for name in (
        *("launch_func", "alloc", "dealloc", "memcpy", "memset", "wait"),
        *("host_register", "host_unregister"),
    )
)


def run_kernels_on_host(module: ir.Module) -> None:
    """Rewrites in place. Raises CandidateError(COMPILE) for kernels whose threads work together."""
    names = {}
    for holder in walk(module, "gpu.module"):
        for kernel in walk(holder, "gpu.func"):
            names[name_of(kernel)] = _to_function(module, kernel)
    for op in reversed(_host_ops(module)):  # who waits for a token before who gives it
        if op.name == "gpu.launch_func":
            _to_loops(op, names)
        else:
            _use_host_memory(op)
    for holder in walk(module, "gpu.module"):
        holder.erase()


def _host_ops(module: ir.Module) -> list[Any]:
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name in HOST_OPS:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _to_function(module: ir.Module, kernel: Any) -> str:
    name = f"on_host_{name_of(kernel)}"
    _require_independent_threads(kernel)
    block = kernel.regions[0].blocks[0]
    kinds = [*(each.type for each in block.arguments), *[ir.IndexType.get()] * 12]
    with kernel.location, ir.InsertionPoint(module.body):
        kind = ir.TypeAttr.get(ir.FunctionType.get(kinds, []))
        function = ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": ir.StringAttr.get(name),
                "function_type": kind,
                "sym_visibility": ir.StringAttr.get("private"),
            },
            regions=1,
        )
    body = function.regions[0].blocks.append(*kinds, arg_locs=[kernel.location] * len(kinds))
    for old, new in zip(block.arguments, body.arguments, strict=False):
        old.replace_all_uses_with(new)
    for op in list(block.operations)[:-1]:
        body.append(op.operation)
    with kernel.location, ir.InsertionPoint(body):
        create("func.return")
    _replace_indices(function, list(body.arguments)[-12:])
    return name


def _require_independent_threads(kernel: Any) -> None:
    name = name_of(kernel)
    first = kernel.regions[0].blocks[0]
    declared = function_type(kernel).inputs
    if len(kernel.regions[0].blocks) != 1 or len(declared) != len(first.arguments):
        _refuse(name, "control flow or memory of its own")

    found: list[str] = []

    def visit(op: Any) -> Any:
        if op.name.startswith(("gpu.", "nvgpu.", "nvvm.")) and op.name not in ALLOWED:
            found.append(op.name)
        return ir.WalkResult.ADVANCE

    for op in first.operations:
        op.operation.walk(visit)
    if found:
        _refuse(name, found[0])


def _refuse(kernel: str, found: str) -> None:
    raise CandidateError(
        Stage.COMPILE,
        f"{kernel} on the host: found {found}, allowed threads that do not wait or share memory",
    )


def _replace_indices(function: Any, indices: list[Any]) -> None:
    for name, first in INDICES.items():
        for op in walk(function, name):
            op.results[0].replace_all_uses_with(indices[first + _dimension(op)])
            op.erase()
    for op in walk(function, "gpu.global_id"):
        number = _dimension(op)
        block, thread, size = indices[number], indices[3 + number], indices[9 + number]
        kind = op.results[0].type
        with op.location, ir.InsertionPoint(op):
            start = create("arith.muli", [kind], [block, size]).results[0]
            place = create("arith.addi", [kind], [start, thread]).results[0]
        op.results[0].replace_all_uses_with(place)
        op.erase()


def _dimension(op: Any) -> int:
    text = str(op.attributes["dimension"])  # #gpu<dim x>
    return DIMENSIONS[text.removeprefix("#gpu<dim ").removesuffix(">")]


def _to_loops(launch: Any, names: dict[str, str]) -> None:
    grid, block = (
        [operands(launch, number)[0] for number in range(part.start, part.stop)] for part in (GRID, BLOCK)
    )
    sizes = [*grid, *block]
    with launch.location, ir.InsertionPoint(launch):
        zero, one = index(0), index(1)
    places: list[Any] = []
    point = ir.InsertionPoint(launch)
    for size in sizes:
        with launch.location, point:
            loop = ir.Operation.create("scf.for", operands=[zero, size, one], regions=1)
        body = loop.regions[0].blocks.append(ir.IndexType.get(), arg_locs=[launch.location])
        places.append(body.arguments[0])
        with launch.location, ir.InsertionPoint(body):
            end = create("scf.yield")
        point = ir.InsertionPoint(end)
    with launch.location, point:
        callee = ir.FlatSymbolRefAttr.get(names[kernel_of(launch)])
        create("func.call", [], [*operands(launch, ARGUMENTS), *places, *sizes], callee=callee)
    _erase(launch)


def _use_host_memory(op: Any) -> None:
    kept = [each for each in op.operands if not is_token(each)]
    kinds = [each.type for each in op.results if not is_token(each)]
    with op.location, ir.InsertionPoint(op):
        if op.name == "gpu.memcpy":
            create("memref.copy", [], kept[::-1])  # there the destination comes first
        elif op.name == "gpu.memset":
            for_each_element(kept[0], lambda place: store(kept[1], kept[0], place))
        elif op.name == "gpu.dealloc":
            create("memref.dealloc", [], kept)
        elif op.name == "gpu.alloc":
            segments = ir.DenseI32ArrayAttr.get([len(kept), 0])
            new = create("memref.alloc", kinds, kept, operandSegmentSizes=segments)
            op.results[0].replace_all_uses_with(new.results[0])
    _erase(op)


def _erase(op: Any) -> None:
    """Erases an op that nothing uses any more but what passes tokens around."""
    for result in op.results:
        for use in result.uses:
            raise CandidateError(Stage.COMPILE, f"{use.owner.name}: found a token, allowed for gpu ops alone")
    op.erase()
