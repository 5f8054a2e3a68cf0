"""``tuner.use_tf32``: tensor cores use f32 operands as tf32.

Takes a function with ``nvgpu.mma.sync``; sets the attribute ``tf32Enabled`` on those with f32 operands. A
tensor core then ignores the low 13 bits of the mantissa; inputs of dtype tf32 have zeros there. Other element
types stay.

    %d = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [16, 8, 8]} : (vector<4x1xf32>, ...
  becomes
    %d = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, ...
"""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ops.dialect import InPlaceOp
from tuner.mlir.rewrite.walking import walk


class UseTf32Op(InPlaceOp, name="use_tf32"):
    """The transform op ``tuner.use_tf32``, which lets tensor cores use f32 operands as tf32.

    Sets ``tf32Enabled`` on every ``nvgpu.mma.sync`` of f32 operands. The handle (a func.func) stays valid.
    Silenceable failure: no such ``nvgpu.mma.sync``.
    """

    def change(self, function: Op) -> str | None:
        """Sets ``tf32Enabled`` on each ``nvgpu.mma.sync`` of f32 operands in one function, in place.

        Returns None, or a message if the function has no such op.
        """
        products = [each for each in walk(function, "nvgpu.mma.sync") if _is_f32(each.operands[0])]
        if not products:
            return "found no nvgpu.mma.sync of f32 operands"
        for product in products:
            product.attributes["tf32Enabled"] = ir.UnitAttr.get()
        return None


def _is_f32(fragment: Value) -> bool:
    return isinstance(ir.VectorType(fragment.type).element_type, ir.F32Type)
