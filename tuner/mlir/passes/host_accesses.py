"""Which buffers an operation on the host reads and writes, with everything in its regions."""

from typing import Any

from tuner.errors import CandidateError, Stage
from tuner.mlir.bindings import ir
from tuner.mlir.ops.dialect import walk, walk_where
from tuner.mlir.passes.buffer_roots import VIEWS, described, is_buffer
from tuner.mlir.passes.kernel_effects import (
    ANYTHING,
    BYSTANDERS,
    NOTHING,
    READERS,
    READS,
    STORES,
    WRITERS,
    WRITES,
    Access,
    Effect,
)

# Make memory, hand it on or give it back, but do not look into it.
SILENT = (
    VIEWS
    | BYSTANDERS
    | {"arith.select", "memref.alloc", "memref.alloca", "memref.get_global", "memref.dealloc"}
)
# Whoever has the address may read and write whenever he likes.
ESCAPES = frozenset({"memref.extract_aligned_pointer_as_index", "memref.realloc", "bufferization.to_tensor"})


def host_accesses(op: Any) -> tuple[Access, ...]:
    """Returns the accesses to buffers from outside of the operation.

    Raises CandidateError(COMPILE) for an operation that keeps the address of one.
    """
    effects = [(value, ANYTHING) for value in _used_inside(op)]
    if not list(op.regions) or op.name.startswith("linalg."):
        own = set(op.operands)
        effects = [*_effects_of_operands(op), *(pair for pair in effects if pair[0] not in own)]
    return tuple(Access(value, effect) for value, effect in effects if effect != NOTHING)


def is_overwritten(op: Any, buffer: Any) -> bool:
    """Tells whether the operation is known to fill a memref from end to end without reading it."""
    return bool(op.name == "linalg.fill" and len(op.operands) == 2 and op.operands[1] == buffer)


def _effects_of_operands(op: Any) -> list[tuple[Any, Effect]]:
    found = [(number, value) for number, value in enumerate(op.operands) if is_buffer(value.type)]
    if op.name in ESCAPES and found:
        raise CandidateError(
            Stage.COMPILE,
            f"{described(found[0][1])}: found {op.name}, allowed operations that do not keep its address",
        )
    return [(value, _effect(op, number)) for number, value in found]


def _effect(op: Any, number: int) -> Effect:
    if op.name in SILENT:
        return NOTHING
    if op.name in READERS:
        return READS
    if op.name in WRITERS and not (op.name in STORES and number == 0):
        return WRITES if number == WRITERS[op.name] else READS
    if op.name == "linalg.fill":
        return WRITES
    if op.name.startswith("linalg.") and "operandSegmentSizes" in op.attributes:
        inputs = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[0]
        return READS if number < inputs else ANYTHING
    return ANYTHING


def _used_inside(op: Any) -> list[Any]:
    """Returns the memrefs that an operation and those in it use and do not make."""
    used: dict[Any, None] = {}
    made: set[Any] = set()
    for each in _with_nested(op):
        _effects_of_operands(each)  # refuses
        used.update(dict.fromkeys(value for value in each.operands if is_buffer(value.type)))
        made.update(() if each == op else each.results)
        made.update(value for region in each.regions for block in region.blocks for value in block.arguments)
    return [value for value in used if value not in made]


def refuse_device_code(function: Any, structured: set[Any]) -> None:
    """Raises CandidateError(COMPILE) for GPU operations that are no plain launch, or hidden in others."""
    for op in _with_nested(function):
        if op.name.startswith("gpu.") and not _is_plain_launch(op):
            raise CandidateError(Stage.COMPILE, f"found {op.name}, allowed gpu.launch_func without tokens")
    for launch in walk(function, "gpu.launch_func"):
        if launch not in structured:
            parent = launch.parent.operation.name
            raise CandidateError(
                Stage.COMPILE, f"found a launch in {parent}, allowed func.func, scf.for, scf.while, scf.if"
            )


def _with_nested(op: Any) -> list[Any]:
    """Returns the operation and all in it; an exception in a callback of ``walk`` would lose its type."""
    return walk_where(op, lambda _: True)


def _is_plain_launch(op: Any) -> bool:
    """Nothing is asynchronous yet: no token, no stream."""
    return (
        op.name == "gpu.launch_func"
        and not list(op.results)
        and ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[0] == 0
    )
