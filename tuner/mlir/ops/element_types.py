"""``tuner.element_types``: one element type takes the place of another."""

from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.ops.dialect import InPlaceOp, text
from tuner.mlir.retyping import Retyping, has_arithmetic


class ElementTypesOp(InPlaceOp, name="element_types"):
    """Changes every type of the function that holds elements of type ``from`` (a text) to hold ``to``.

    ``convert-vector-to-gpu`` knows f16 but not bf16, and both are 16 bits that are only moved and handed to
    ``nvgpu.mma.sync``: a script takes f16 for that time, and bf16 before and after. The handle (a func.func)
    stays valid. Silenceable failure: types of different widths, or arithmetic on ``from`` outside of
    ``linalg`` ops, whose meaning would change.
    """

    def change(self, function: Any) -> str | None:
        """Changes one function."""
        retyping = Retyping(ir.Type.parse(text(self, "from", "")), ir.Type.parse(text(self, "to", "")))
        if not retyping.is_same_width:
            return f"found {retyping.old} to {retyping.new}, allowed types of one width"
        reason = has_arithmetic(function, retyping.old)
        if reason is not None:
            return f"found {reason} on {retyping.old}, allowed moves and products"
        retyping.change(function)
        return None
