"""``tuner.element_types``: one element type takes the place of another."""

from typing import Any

from tuner.mlir.bindings import ext, ir, transform
from tuner.mlir.ops.dialect import InPlaceEffects, TunerDialect, refuse, text
from tuner.mlir.retyping import Retyping, has_arithmetic


class ElementTypesOp(TunerDialect.Operation, name="element_types"):  # type: ignore[misc,call-arg,name-defined]
    """Changes every type of the function that holds elements of type ``from`` (a text) to hold ``to``.

    ``convert-vector-to-gpu`` knows f16 but not bf16, and both are 16 bits that are only moved and handed to
    ``nvgpu.mma.sync``: a script takes f16 for that time, and bf16 before and after. The handle (a func.func)
    stays valid. Silenceable failure: types of different widths, or arithmetic on ``from`` outside of
    ``linalg`` ops, whose meaning would change.
    """

    target: ext.Operand[transform.AnyOpType]

    class Transform(transform.TransformOpInterface):  # type: ignore[misc]
        """Runs on every function of the handle."""

        @staticmethod
        def apply(op: Any, rewriter: Any, results: Any, state: Any) -> Any:
            """Changes the payload in place."""
            retyping = Retyping(ir.Type.parse(text(op, "from", "")), ir.Type.parse(text(op, "to", "")))
            if not retyping.is_same_width:
                return refuse(op, f"found {retyping.old} to {retyping.new}, allowed types of one width")
            for function in state.get_payload_ops(op.target):
                reason = has_arithmetic(function.operation, retyping.old)
                if reason is not None:
                    return refuse(op, f"found {reason} on {retyping.old}, allowed moves and products")
                retyping.change(function.operation)
            return transform.DiagnosedSilenceableFailure.Success

        @staticmethod
        def allow_repeated_handle_operands(op: Any) -> bool:
            """Tells that one handle is enough."""
            return False


def attach() -> None:
    """Gives the op its behaviour in the current context."""
    ElementTypesOp.Transform.attach(ElementTypesOp.OPERATION_NAME)
    InPlaceEffects.attach(ElementTypesOp.OPERATION_NAME)
