"""``tuner.use_tf32``: f32 operands of tensor cores become tf32."""

from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.ops.dialect import InPlaceOp, walk


class UseTf32Op(InPlaceOp, name="use_tf32"):
    """Sets ``tf32Enabled`` on every ``nvgpu.mma.sync`` of f32 operands.

    A tensor core then ignores the low 13 bits of the mantissa; inputs of dtype tf32 have zeros there. The
    handle (a func.func) stays valid. Silenceable failure: no such ``nvgpu.mma.sync``.
    """

    def change(self, function: Any) -> str | None:
        """Changes one function."""
        products = [each for each in walk(function, "nvgpu.mma.sync") if _is_f32(each.operands[0])]
        if not products:
            return "found no nvgpu.mma.sync of f32 operands"
        for product in products:
            product.attributes["tf32Enabled"] = ir.UnitAttr.get()
        return None


def _is_f32(fragment: Any) -> bool:
    return isinstance(ir.VectorType(fragment.type).element_type, ir.F32Type)
