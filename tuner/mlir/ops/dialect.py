"""The dialect of tuner's transform ops, and their base class: one handle as operand, no result."""

from typing import TYPE_CHECKING

from tuner.mlir.bindings import Op, ext, ir, transform

DIALECT = "tuner"


class TunerDialect(ext.Dialect, name=DIALECT):  # type: ignore[misc,call-arg] # untyped bindings
    """The dialect of the ops in this package: ``"tuner.name"(%handle) {...} : (!transform.any_op) -> ()``."""


class InPlaceOp(TunerDialect.Operation):  # type: ignore[misc,name-defined] # untyped bindings
    """A transform op that changes the payload ops of its only handle, which usually stays valid."""

    target: ext.Operand[transform.AnyOpType]

    if TYPE_CHECKING:  # the bindings' class takes the op's name as a keyword

        def __init_subclass__(cls, *, name: str) -> None: ...

    def change(self, function: Op) -> str | None:
        """Applies the op to one payload op in place; returns why it cannot be applied, else None."""
        raise NotImplementedError


class InPlaceTransform(transform.TransformOpInterface):  # type: ignore[misc] # untyped bindings
    """Calls ``change`` on each payload op of the handle; the first failure is a silenceable failure."""

    @staticmethod
    def apply(
        op: InPlaceOp,
        rewriter: transform.TransformRewriter,
        results: transform.TransformResults,
        state: transform.TransformState,
    ) -> transform.DiagnosedSilenceableFailure:
        """Applies the op; called by the transform interpreter."""
        for function in state.get_payload_ops(op.target):
            reason = op.change(function.operation)
            if reason is not None:
                return silenceable_failure(op, reason)
        return transform.DiagnosedSilenceableFailure.Success

    @staticmethod
    def allow_repeated_handle_operands(op: InPlaceOp) -> bool:
        """Returns whether several operands may be the same handle: False, these ops have one operand."""
        return False


class InPlaceEffects(ir.MemoryEffectsOpInterface):  # type: ignore[misc] # untyped bindings
    """Side effects of ops that only read their handle, which stays valid, and modify the payload."""

    @staticmethod
    def get_effects(op: Op, effects: ir.MemoryEffectInstancesList) -> None:
        """Adds the side effects of ``op`` to the list; called by the transform interpreter."""
        transform.only_reads_handle(op.op_operands, effects)
        transform.modifies_payload(effects)


class ConsumingEffects(ir.MemoryEffectsOpInterface):  # type: ignore[misc] # untyped bindings
    """Side effects of an op that replaces the payload ops of its handle, which becomes invalid."""

    @staticmethod
    def get_effects(op: Op, effects: ir.MemoryEffectInstancesList) -> None:
        """Adds the side effects of ``op`` to the list; called by the transform interpreter."""
        transform.consumes_handle(op.op_operands, effects)
        transform.modifies_payload(effects)


def silenceable_failure(op: Op, reason: str) -> transform.DiagnosedSilenceableFailure:
    """Emits the reason as a diagnostic and returns a silenceable failure, which a script may catch."""
    op.operation.location.emit_error(f"{reason}\n")  # the interpreter appends to this text
    return transform.DiagnosedSilenceableFailure.SilenceableFailure


def attribute(op: Op, name: str, default: int) -> int:
    """Returns an integer attribute of a transform op, or ``default`` without it."""
    attributes = op.operation.attributes
    return int(ir.IntegerAttr(attributes[name]).value) if name in attributes else default


def text(op: Op, name: str, default: str) -> str:
    """Returns a string attribute of a transform op, or ``default`` without it."""
    attributes = op.operation.attributes
    return str(ir.StringAttr(attributes[name]).value) if name in attributes else default
