"""``tuner.bypass_l1``: copies of 16 bytes go around the first-level cache."""

from typing import Any

from tuner.mlir.bindings import ext, ir, transform
from tuner.mlir.ops.dialect import InPlaceEffects, TunerDialect, walk
from tuner.mlir.types import element_bytes

BYPASS_BYTES = 16  # PTX: cp.async.cg takes no other size


class BypassL1Op(TunerDialect.Operation, name="bypass_l1"):  # type: ignore[misc,call-arg,name-defined]
    """Sets ``bypassL1`` on every ``nvgpu.device_async_copy`` of 16 bytes, the only size that has that form.

    ``nvgpu.create_async_groups {bypass_l1}`` does the same, but the pipeliner drops it where it adds a
    predicate: run after that. The handle (a func.func) stays valid. Never fails.
    """

    target: ext.Operand[transform.AnyOpType]

    class Transform(transform.TransformOpInterface):  # type: ignore[misc]
        """Runs on every function of the handle."""

        @staticmethod
        def apply(op: Any, rewriter: Any, results: Any, state: Any) -> Any:
            """Changes the payload in place."""
            for function in state.get_payload_ops(op.target):
                for copy in walk(function, "nvgpu.device_async_copy"):
                    if _copied_bytes(copy) == BYPASS_BYTES:
                        copy.attributes["bypassL1"] = ir.UnitAttr.get()
            return transform.DiagnosedSilenceableFailure.Success

        @staticmethod
        def allow_repeated_handle_operands(op: Any) -> bool:
            """Tells that one handle is enough."""
            return False


def attach() -> None:
    """Gives the op its behaviour in the current context."""
    BypassL1Op.Transform.attach(BypassL1Op.OPERATION_NAME)
    InPlaceEffects.attach(BypassL1Op.OPERATION_NAME)


def _copied_bytes(copy: Any) -> int:
    elements = int(ir.IntegerAttr(copy.attributes["dstElements"]).value)
    return elements * element_bytes(ir.MemRefType(copy.operands[0].type).element_type)
