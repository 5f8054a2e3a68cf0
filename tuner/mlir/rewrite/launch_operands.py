"""Accessors of ``gpu.launch_func`` that the bindings lack, operands by segment; a launch's constant grid."""

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite.building import value
from tuner.mlir.rewrite.definitions import attributes_of, constant_of
from tuner.mlir.rewrite.walking import walk

# Operand segments in the order of GPUOps.td; segment 0 is the async dependencies.
GRID, BLOCK, CLUSTER = slice(1, 4), slice(4, 7), slice(7, 10)
SHARED_BYTES, ARGUMENTS = 10, 11
SEGMENTS = "operandSegmentSizes"
# Attributes of a gpu.launch and of its kernel.
CLUSTER_SIZE = "nvvm.cluster_dim"  # blocks along x, y and z
TILE_GRID = "tuner.tile_grid"  # output tiles along x and y, where a block computes several


def launches_of(module: ir.Module, kernel: str) -> list[Op]:
    """Returns, in program order, each ``gpu.launch_func`` of a kernel ``kernel``, of any ``gpu.module``."""
    return [op for op in walk(module, "gpu.launch_func") if kernel_of(op) == kernel]


def kernel_of(launch: Op) -> str:
    """Returns the name of the kernel that a ``gpu.launch_func`` launches, without its gpu.module."""
    return str(ir.SymbolRefAttr(launch.attributes["kernel"]).value[-1])


def module_of(launch: Op) -> str:
    """Returns the name of the ``gpu.module`` whose kernel a ``gpu.launch_func`` launches."""
    return str(ir.SymbolRefAttr(launch.attributes["kernel"]).value[0])


def operands(launch: Op, segment: int) -> list[Value]:
    """Returns the operands of a ``gpu.launch_func`` in one operand segment, such as its kernel arguments.

    ``segment``: the index in ``operandSegmentSizes``, such as ``ARGUMENTS``.
    """
    sizes = list(ir.DenseI32ArrayAttr(launch.attributes[SEGMENTS]))
    start = sum(sizes[:segment])
    return list(launch.operands)[start : start + sizes[segment]]


def constant(launch: Op, value: Value, what: str) -> int:
    """Returns the integer of ``value``, an operand of a ``gpu.launch_func`` that must be constant.

    ``what`` names the operand in the error message. Raises CandidateError(COMPILE) if it is not constant.
    """
    found = constant_of(value)
    if found is None:
        raise CandidateError(Stage.COMPILE, f"launch of {kernel_of(launch)}: {what} is not constant")
    return found


def shared_bytes(launch: Op) -> int:
    """Returns the dynamic shared memory of a ``gpu.launch_func`` in bytes; 0 if it requests none.

    Raises CandidateError(COMPILE) if the size is not constant.
    """
    asked = shared_bytes_operand(launch)
    return 0 if asked is None else constant(launch, asked, "dynamic_shared_memory_size")


def shared_bytes_operand(launch: Op) -> Value | None:
    """Returns the dynamic shared memory size of a ``gpu.launch_func``, an i32 value; None without one."""
    asked = operands(launch, SHARED_BYTES)
    return asked[0] if asked else None


def set_shared_bytes(launch: Op, size: int, more: Value | None = None) -> None:
    """Replaces a ``gpu.launch_func`` by one with ``size`` + ``more`` bytes of dynamic shared memory.

    ``more``: an i32 value, None for 0. Erases ``launch``, which must not be used afterwards.
    """
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
    """Returns the blocks of a ``gpu.launch`` along (x, y); None if one of the two is not constant."""
    columns, rows = map(constant_of, list(launch.operands)[:2])
    return None if columns is None or rows is None else (columns, rows)
