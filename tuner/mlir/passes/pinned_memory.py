"""Takes host memory that is copied from page-locked memory: copies are faster and truly asynchronous."""

from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.building import create, value
from tuner.mlir.ops.dialect import walk
from tuner.mlir.passes.device_buffers import Buffer, Kind
from tuner.mlir.types import is_row_major


def pin(buffers: list[Buffer]) -> None:
    """Replaces allocations by ``gpu.alloc host_shared``, which lowers to ``mgpuMemAlloc(size, stream, 1)``.

    Results stay as they are, since the caller frees them, and so does the caller's memory and the stack.
    """
    for buffer in buffers:
        if _can_be_pinned(buffer):
            _pin(buffer)


def forget_registrations(function: Any) -> None:
    """Erases ``gpu.host_register`` and its like: kernels get copies, so they need not reach host memory."""
    for name in ("gpu.host_register", "gpu.host_unregister"):
        for op in walk(function, name):
            cast = op.operands[0].owner
            op.erase()
            if (
                not isinstance(cast, ir.Block)
                and cast.name == "memref.cast"
                and not list(cast.results[0].uses)
            ):
                cast.operation.erase()


def _can_be_pinned(buffer: Buffer) -> bool:
    if buffer.is_returned or buffer.kind not in (Kind.ALLOCATION, Kind.NATIVE):
        return False
    return buffer.host.owner.operation.name == "memref.alloc" and is_row_major(buffer.host.type)


def _pin(buffer: Buffer) -> None:
    old = buffer.host.owner.operation
    sizes = list(old.operands)
    segments = ir.DenseI32ArrayAttr.get([0, len(sizes), 0])
    with old.location, ir.InsertionPoint(old):
        memory = value(
            "gpu.alloc", buffer.host.type, *sizes, operandSegmentSizes=segments, hostShared=ir.UnitAttr.get()
        )
    for deallocation in buffer.deallocations:
        _free(deallocation)
    buffer.host.replace_all_uses_with(memory)
    old.erase()
    buffer.host = memory


def _free(deallocation: Any) -> None:
    with deallocation.location, ir.InsertionPoint(deallocation):
        create("gpu.dealloc", [], [deallocation.operands[0]])
    deallocation.erase()
