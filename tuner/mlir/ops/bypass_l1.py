"""``tuner.bypass_l1``: copies of 16 bytes go around the first-level cache."""

from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.ops.dialect import InPlaceOp, walk
from tuner.mlir.types import element_bytes

BYPASS_BYTES = 16  # PTX: cp.async.cg takes no other size


class BypassL1Op(InPlaceOp, name="bypass_l1"):
    """Sets ``bypassL1`` on every ``nvgpu.device_async_copy`` of 16 bytes, the only size that has that form.

    ``nvgpu.create_async_groups {bypass_l1}`` does the same, but the pipeliner drops it where it adds a
    predicate: run after that. The handle (a func.func) stays valid. Never fails.
    """

    def change(self, function: Any) -> str | None:
        """Changes one function."""
        for copy in walk(function, "nvgpu.device_async_copy"):
            if _copied_bytes(copy) == BYPASS_BYTES:
                copy.attributes["bypassL1"] = ir.UnitAttr.get()
        return None


def _copied_bytes(copy: Any) -> int:
    elements = int(ir.IntegerAttr(copy.attributes["dstElements"]).value)
    return elements * element_bytes(ir.MemRefType(copy.operands[0].type).element_type)
