"""Launches of kernels: their operands and attributes, and the ids of blocks and threads along an axis."""

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.launches import ARGUMENTS, SEGMENTS, SHARED_BYTES, kernel_of, operands
from tuner.mlir.ir.building import recreated, value
from tuner.mlir.ir.reading import constant_of, replace_results

# Attributes of a gpu.launch and of its kernel.
CLUSTER_SIZE = "nvvm.cluster_dim"  # blocks along x, y and z
TILE_GRID = "tuner.tile_grid"  # output tiles along x and y, where a block computes several


def index_along(name: str, axis: str) -> Value:
    """Creates the op ``name``, such as ``gpu.block_id``, along "x", "y" or "z"; returns its index value."""
    return value(name, ir.IndexType.get(), dimension=ir.Attribute.parse(f"#gpu<dim {axis}>"))


def constant(launch: Op, operand: Value, name: str) -> int:
    """Returns the integer of an operand of a ``gpu.launch_func``; ``name``: of the operand, for the error.

    Raises CandidateError(COMPILE) if the operand is not constant.
    """
    number = constant_of(operand)
    if number is None:
        raise CandidateError(Stage.COMPILE, f"launch of {kernel_of(launch)}: {name} is not constant")
    return number


def shared_bytes(launch: Op) -> int:
    """Returns the dynamic shared memory of a ``gpu.launch_func`` in bytes; 0 if it has none.

    Raises CandidateError(COMPILE) if the size is not constant.
    """
    requested = shared_bytes_operand(launch)
    if requested is None:
        return 0
    return constant(launch, requested, "dynamic_shared_memory_size")


def shared_bytes_operand(launch: Op) -> Value | None:
    """Returns the dynamic shared memory size of a ``gpu.launch_func``, an i32 value; None without one."""
    requested = operands(launch, SHARED_BYTES)
    if requested:
        return requested[0]
    return None


def set_shared_bytes(launch: Op, size: int, extra_bytes: Value | None = None) -> None:
    """Replaces a ``gpu.launch_func`` by one with another size of dynamic shared memory; erases the old one.

    The size is ``size`` bytes, plus ``extra_bytes``, an i32 value, if that is given.
    """
    sizes = list(ir.DenseI32ArrayAttr(launch.attributes[SEGMENTS]))
    before = sum(sizes[:SHARED_BYTES])
    old = list(launch.operands)
    with launch.location, ir.InsertionPoint(launch):
        type_ = ir.IntegerType.get_signless(32)
        total = value("arith.constant", type_, value=ir.IntegerAttr.get(type_, size))
        if extra_bytes is not None:
            total = value("arith.addi", type_, total, extra_bytes)
        new = recreated(
            launch,
            [result.type for result in launch.results],
            [*old[:before], total, *old[before + sizes[SHARED_BYTES] :]],
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([*sizes[:SHARED_BYTES], 1, *sizes[ARGUMENTS:]]),
        )
    replace_results(launch, new.results)
    launch.erase()


def constant_grid(launch: Op) -> tuple[int, int] | None:
    """Returns the blocks of a ``gpu.launch`` along (x, y); None if one of the two is not constant."""
    columns, rows = map(constant_of, list(launch.operands)[:2])
    if columns is None or rows is None:
        return None
    return (columns, rows)
