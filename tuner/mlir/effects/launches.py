"""Reads launches of kernels: their operands by segment, their kernel, the axis of an index of a thread."""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ir.reading import walk

AXES = "xyz"
# Operand segments in the order of GPUOps.td; segment 0 is the async dependencies.
GRID = slice(1, 4)
BLOCK = slice(4, 7)
CLUSTER = slice(7, 10)
SHARED_BYTES = 10
ARGUMENTS = 11
SEGMENTS = "operandSegmentSizes"


def axis_of(op: Op) -> int:
    """Returns the axis of an op such as ``gpu.block_id``: 0, 1 or 2 for x, y or z."""
    return AXES.index(str(op.attributes["dimension"]).removeprefix("#gpu<dim ").removesuffix(">"))


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
    """Returns the operands of a ``gpu.launch_func`` in one operand segment, such as ``ARGUMENTS``.

    ``segment``: the index of the segment in the op's ``operandSegmentSizes``.
    """
    sizes = list(ir.DenseI32ArrayAttr(launch.attributes[SEGMENTS]))
    start = sum(sizes[:segment])
    return list(launch.operands)[start : start + sizes[segment]]
