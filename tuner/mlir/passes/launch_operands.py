"""The operands of ``gpu.launch_func`` by what they mean."""

from typing import Any

from tuner.errors import CandidateError, Stage
from tuner.mlir.bindings import ir
from tuner.mlir.ops.dialect import walk

# Segments of the operands, in upstream's order.
GRID, BLOCK, CLUSTER = slice(1, 4), slice(4, 7), slice(7, 10)
SHARED_BYTES, ARGUMENTS = 10, 11
SEGMENTS = "operandSegmentSizes"


def launches_of(module: ir.Module, kernel: str) -> list[Any]:
    """Returns the launches of one kernel, in order."""
    return [op for op in walk(module, "gpu.launch_func") if kernel_of(op) == kernel]


def kernel_of(launch: Any) -> str:
    """Returns the name of the kernel, without that of its module."""
    return str(ir.SymbolRefAttr(launch.attributes["kernel"]).value[-1])


def operands(launch: Any, segment: int) -> list[Any]:
    """Returns the operands of one segment."""
    sizes = list(ir.DenseI32ArrayAttr(launch.attributes[SEGMENTS]))
    start = sum(sizes[:segment])
    return list(launch.operands)[start : start + sizes[segment]]


def constant(launch: Any, value: Any, what: str) -> int:
    """Returns an operand known at compile time. Raises CandidateError(COMPILE) for any other."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        raise CandidateError(Stage.COMPILE, f"launch of {kernel_of(launch)}: {what} is not constant")
    return int(ir.IntegerAttr(owner.attributes["value"]).value)


def shared_bytes(launch: Any) -> int:
    """Returns the dynamic shared memory that a launch asks for."""
    asked = operands(launch, SHARED_BYTES)
    return constant(launch, asked[0], "dynamic_shared_memory_size") if asked else 0


def set_shared_bytes(launch: Any, size: int) -> None:
    """Replaces the launch by one that asks for ``size`` bytes."""
    sizes = list(ir.DenseI32ArrayAttr(launch.attributes[SEGMENTS]))
    before = sum(sizes[:SHARED_BYTES])
    old = list(launch.operands)
    with launch.location, ir.InsertionPoint(launch):
        number = ir.Attribute.parse(f"{size} : i32")
        value = ir.Operation.create(
            "arith.constant", [ir.Type.parse("i32")], attributes={"value": number}
        ).results[0]
        attributes = {name: launch.attributes[name] for name in launch.attributes}
        attributes[SEGMENTS] = ir.DenseI32ArrayAttr.get([*sizes[:SHARED_BYTES], 1, *sizes[ARGUMENTS:]])
        ir.Operation.create(
            "gpu.launch_func",
            [result.type for result in launch.results],
            [*old[:before], value, *old[before + sizes[SHARED_BYTES] :]],
            attributes,
        )
    launch.erase()
