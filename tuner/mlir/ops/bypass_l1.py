"""``tuner.bypass_l1``: asynchronous copies of 16 bytes bypass the L1 cache (PTX: cp.async.cg).

Takes a function with ``nvgpu.device_async_copy``; sets the attribute ``bypassL1`` on copies of 16 bytes;
cp.async.cg has no other size. ``nvgpu.create_async_groups {bypass_l1}`` does the same, but the pipeliner
drops the attribute where it adds a predicate: run this op after pipelining.

    %t = nvgpu.device_async_copy %a[%i], %tile[%i], 8, %n : memref<64xf16> to memref<64xf16, ...>
  becomes
    %t = nvgpu.device_async_copy %a[%i], %tile[%i], 8, %n {bypassL1} : memref<64xf16> to memref<64xf16, ...>
"""

from tuner.mlir.bindings import Op, ir
from tuner.mlir.ops.dialect import InPlaceOp
from tuner.mlir.rewrite.type_sizes import element_bytes
from tuner.mlir.rewrite.walking import walk

BYPASS_BYTES = 16  # PTX: cp.async.cg takes no other size


class BypassL1Op(InPlaceOp, name="bypass_l1"):
    """The transform op ``tuner.bypass_l1``, which makes asynchronous copies of 16 bytes bypass the L1 cache.

    Sets ``bypassL1`` on each such ``nvgpu.device_async_copy``. The handle (a func.func) stays valid.
    Never fails.
    """

    def change(self, function: Op) -> str | None:
        """Sets ``bypassL1`` on each ``nvgpu.device_async_copy`` of 16 bytes in one function.

        Always returns None.
        """
        for copy in walk(function, "nvgpu.device_async_copy"):
            if _copied_bytes(copy) == BYPASS_BYTES:
                copy.attributes["bypassL1"] = ir.UnitAttr.get()
        return None


def _copied_bytes(copy: Op) -> int:
    elements = int(ir.IntegerAttr(copy.attributes["dstElements"]).value)
    return elements * element_bytes(ir.MemRefType(copy.operands[0].type).element_type)
