"""``tuner.use_tf32``: f32 operands of tensor cores become tf32."""

from typing import Any

from tuner.mlir.bindings import ext, ir, transform
from tuner.mlir.ops.dialect import InPlaceEffects, TunerDialect, refuse, walk


class UseTf32Op(TunerDialect.Operation, name="use_tf32"):  # type: ignore[misc,call-arg,name-defined]
    """Sets ``tf32Enabled`` on every ``nvgpu.mma.sync`` of f32 operands.

    A tensor core then ignores the low 13 bits of the mantissa; inputs of dtype tf32 have zeros there. The
    handle (a func.func) stays valid. Silenceable failure: no such ``nvgpu.mma.sync``.
    """

    target: ext.Operand[transform.AnyOpType]

    class Transform(transform.TransformOpInterface):  # type: ignore[misc]
        """Runs on every function of the handle."""

        @staticmethod
        def apply(op: Any, rewriter: Any, results: Any, state: Any) -> Any:
            """Changes the payload in place."""
            for function in state.get_payload_ops(op.target):
                products = [each for each in walk(function, "nvgpu.mma.sync") if _is_f32(each.operands[0])]
                if not products:
                    return refuse(op, "found no nvgpu.mma.sync of f32 operands")
                for product in products:
                    product.attributes["tf32Enabled"] = ir.UnitAttr.get()
            return transform.DiagnosedSilenceableFailure.Success

        @staticmethod
        def allow_repeated_handle_operands(op: Any) -> bool:
            """Tells that one handle is enough."""
            return False


def attach() -> None:
    """Gives the op its behaviour in the current context."""
    UseTf32Op.Transform.attach(UseTf32Op.OPERATION_NAME)
    InPlaceEffects.attach(UseTf32Op.OPERATION_NAME)


def _is_f32(fragment: Any) -> bool:
    return isinstance(ir.VectorType(fragment.type).element_type, ir.F32Type)
