"""Accessors of ``gpu.launch_func``, which the bindings have none for: operands by segment; also a grid."""

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite.building import value
from tuner.mlir.rewrite.definitions import attributes_of, constant_of
from tuner.mlir.rewrite.walking import walk

# Operand segments in the order of GPUOps.td; 0 is async dependencies.
GRID, BLOCK, CLUSTER = slice(1, 4), slice(4, 7), slice(7, 10)
SHARED_BYTES, ARGUMENTS = 10, 11
SEGMENTS = "operandSegmentSizes"
# Attributes of a gpu.launch and of its kernel.
CLUSTER_SIZE = "nvvm.cluster_dim"  # blocks along x, y and z
TILE_GRID = "tuner.tile_grid"  # tiles of the output along x and y, where a block makes several


def launches_of(module: ir.Module, kernel: str) -> list[Op]:
    """Returns the launches of one kernel, in the order of the module."""
    return [op for op in walk(module, "gpu.launch_func") if kernel_of(op) == kernel]


def kernel_of(launch: Op) -> str:
    """Returns the kernel's symbol without that of its ``gpu.module``."""
    return str(ir.SymbolRefAttr(launch.attributes["kernel"]).value[-1])


def module_of(launch: Op) -> str:
    """Returns the symbol of the kernel's ``gpu.module``."""
    return str(ir.SymbolRefAttr(launch.attributes["kernel"]).value[0])


def operands(launch: Op, segment: int) -> list[Value]:
    """Returns the operands of one segment."""
    sizes = list(ir.DenseI32ArrayAttr(launch.attributes[SEGMENTS]))
    start = sum(sizes[:segment])
    return list(launch.operands)[start : start + sizes[segment]]


def constant(launch: Op, value: Value, what: str) -> int:
    """Returns an operand's constant; ``what`` names it. Raises CandidateError(COMPILE) if it is none."""
    found = constant_of(value)
    if found is None:
        raise CandidateError(Stage.COMPILE, f"launch of {kernel_of(launch)}: {what} is not constant")
    return found


def shared_bytes(launch: Op) -> int:
    """Returns the bytes of dynamic shared memory of a launch. Raises CandidateError(COMPILE)."""
    asked = asked_shared_bytes(launch)
    return 0 if asked is None else constant(launch, asked, "dynamic_shared_memory_size")


def asked_shared_bytes(launch: Op) -> Value | None:
    """Returns the operand that says how much dynamic shared memory a launch asks for, an i32, if any."""
    asked = operands(launch, SHARED_BYTES)
    return asked[0] if asked else None


def set_shared_bytes(launch: Op, size: int, more: Value | None = None) -> None:
    """Replaces the launch by one with ``size`` bytes of dynamic shared memory, and ``more`` behind them."""
    sizes = list(ir.DenseI32ArrayAttr(launch.attributes[SEGMENTS]))
    before = sum(sizes[:SHARED_BYTES])
    old = list(launch.operands)
    with launch.location, ir.InsertionPoint(launch):
        kind = ir.IntegerType.get_signless(32)
        total = value("arith.constant", kind, value=ir.IntegerAttr.get(kind, size))
        if more is not None:
            total = value("arith.addi", kind, total, more)
        attributes = attributes_of(launch)
        attributes[SEGMENTS] = ir.DenseI32ArrayAttr.get([*sizes[:SHARED_BYTES], 1, *sizes[ARGUMENTS:]])
        new = ir.Operation.create(
            "gpu.launch_func",
            [result.type for result in launch.results],
            [*old[:before], total, *old[before + sizes[SHARED_BYTES] :]],
            attributes,
        )
    for before_it, after_it in zip(launch.results, new.results, strict=True):
        before_it.replace_all_uses_with(after_it)
    launch.erase()


def constant_grid(launch: Op) -> tuple[int, int] | None:
    """Returns the numbers of blocks of a ``gpu.launch`` along x and y; None where they are not constant."""
    columns, rows = map(constant_of, list(launch.operands)[:2])
    return None if columns is None or rows is None else (columns, rows)
