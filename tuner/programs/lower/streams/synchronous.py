"""Makes the host wait for each operation of device work: a program's semantics without any overlap.

Takes a function of synchronous device work; puts each operation on a new stream, and the host waits for the
stream immediately. Tokens are needed even here, because ``gpu-to-llvm`` silently leaves synchronous
allocations and copies unconverted.

    gpu.memcpy %b, %a : memref<4xf32>, memref<4xf32>
  becomes
    %0 = gpu.wait async
    %1 = gpu.memcpy async [%0] %b, %a : memref<4xf32>, memref<4xf32>
    gpu.wait [%1]
"""

from tuner.mlir.bindings import Op, ir
from tuner.mlir.effects.buffer_accesses import inside, is_device_work
from tuner.programs.lower.streams.async_ops import make_async, wait_async, wait_on_host


def wait_for_each(function: Op) -> None:
    """Makes the host wait for each device operation of a function, in place, so that no work overlaps.

    Each operation gets a new stream, which ends with a host wait.
    """
    works = [op for op in inside(function) if is_device_work(op)]
    for op in works:
        with op.location, ir.InsertionPoint(op):
            dependency = wait_async([])
        token = make_async(op, dependency)
        with op.location, ir.InsertionPoint(op):
            wait_on_host([token])
    for op in reversed(works):
        op.erase()
