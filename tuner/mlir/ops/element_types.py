"""``tuner.element_types``: replaces an element type by another one of the same width.

Takes a function whose arithmetic on the type, if any, is inside of linalg ops; replaces the type in every
type and constant. ``convert-vector-to-gpu`` supports f16 but not bf16, and both are 16 bits that are only
moved and passed to ``nvgpu.mma.sync``: a script uses f16 during that pass, and bf16 before and after. In the
same way i8 stands for 8-bit floats. Not handled: types of different widths; arith and math ops on the type,
whose meaning would change; nonzero constants where an integer replaces a float.

    %x = vector.load %a[%i, %i] : memref<8x8xbf16, strided<[9, 1]>>, vector<2xbf16>
  with from = "bf16", to = "f16" becomes
    %x = vector.load %a[%i, %i] : memref<8x8xf16, strided<[9, 1]>>, vector<2xf16>
"""

from tuner.mlir.bindings import Op, ir
from tuner.mlir.ops.dialect import InPlaceOp, text
from tuner.mlir.rewrite.retyping import Retyping, first_arithmetic_op, has_nonzero_constant


class ElementTypesOp(InPlaceOp, name="element_types"):
    """The transform op ``tuner.element_types``, which replaces an element type by one of the same width.

    Attributes ``from`` and ``to`` (strings): MLIR types, such as "bf16" and "f16". Replaced where numbers,
    memrefs, vectors, ranked tensors and constants have them; not in other types, such as gpu.mma_matrix, nor
    in dense constants of unequal elements: these must not occur. The handle (a func.func) stays valid.
    Silenceable failure: types of different widths, ``arith`` or ``math`` ops on ``from`` outside of
    ``linalg`` ops, or a nonzero constant where one type is a float and the other an integer.
    """

    def change(self, function: Op) -> str | None:
        """Replaces the element type ``from`` by ``to`` in one function, in place.

        In all types and constants; both types are attributes of this op. Returns None, or a message on why
        the types cannot be replaced; nothing is changed then.
        """
        retyping = Retyping(ir.Type.parse(text(self, "from", "")), ir.Type.parse(text(self, "to", "")))
        if not retyping.is_same_width:
            return f"found {retyping.old} to {retyping.new}, allowed types of one width"
        reason = first_arithmetic_op(function, retyping.old)
        if reason is not None:
            return f"found {reason} on {retyping.old}, allowed moves and products"
        if not retyping.converts_constants and has_nonzero_constant(function, retyping.old):
            return f"found a number of {retyping.old}, allowed zeros to become {retyping.new}"
        retyping.change(function)
        return None
