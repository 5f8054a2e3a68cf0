"""Allocates host memory that is copied to or from a device as page-locked memory.

Copies of page-locked memory are faster and truly asynchronous. ``memref.alloc`` and its ``memref.dealloc``
become ``gpu.alloc host_shared`` and ``gpu.dealloc``, which lower to ``mgpuMemAlloc(size, stream, 1)`` and
``mgpuMemFree``. Not handled, and left unchanged: results, since the caller frees them; the caller's memory;
the stack; non-contiguous memrefs.
"""

from tuner.mlir.bindings import Op, ir
from tuner.mlir.rewrite.building import create, value
from tuner.mlir.rewrite.definitions import op_of
from tuner.mlir.rewrite.type_sizes import is_row_major
from tuner.mlir.rewrite.walking import walk
from tuner.programs.lower.device_memory.buffers import BufferKind, MirroredBuffer


def pin(buffers: list[MirroredBuffer]) -> None:
    """Allocates the host memory of buffers as page-locked memory, in place.

    Left unchanged are buffers that the function returns, host memory that it takes from its caller, globals,
    stack memory, and non-contiguous memrefs. The host copy of an argument in device memory is changed too.
    """
    for buffer in buffers:
        if _can_be_pinned(buffer):
            _pin(buffer)


def forget_registrations(function: Op) -> None:
    """Erases the gpu.host_register and gpu.host_unregister of a function, and casts that only they used.

    They have no effect there, since kernels take copies in device memory.
    """
    for name in ("gpu.host_register", "gpu.host_unregister"):
        for op in walk(function, name):
            cast = op_of(op.operands[0], "memref.cast")
            op.erase()
            if cast is not None and not list(cast.results[0].uses):
                cast.erase()


def _can_be_pinned(buffer: MirroredBuffer) -> bool:
    if buffer.is_returned or buffer.kind not in (BufferKind.ALLOCATION, BufferKind.DEVICE_ARGUMENT):
        return False
    return buffer.host.owner.operation.name == "memref.alloc" and is_row_major(buffer.host.type)


def _pin(buffer: MirroredBuffer) -> None:
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


def _free(deallocation: Op) -> None:
    with deallocation.location, ir.InsertionPoint(deallocation):
        create("gpu.dealloc", [], [deallocation.operands[0]])
    deallocation.erase()
