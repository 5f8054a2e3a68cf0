"""The dialect of this project's transform ops, and their base class: one handle in, nothing out."""

from typing import TYPE_CHECKING

from tuner.mlir.bindings import Op, ext, ir, transform

DIALECT = "tuner"


class TunerDialect(ext.Dialect, name=DIALECT):  # type: ignore[misc,call-arg] # untyped bindings
    """The dialect of the ops of this folder: ``"tuner.name"(%handle) {...} : (!transform.any_op) -> ()``."""


class InPlaceOp(TunerDialect.Operation):  # type: ignore[misc,name-defined] # untyped bindings
    """A transform op that changes the functions of its one handle, which mostly stays valid."""

    target: ext.Operand[transform.AnyOpType]

    if TYPE_CHECKING:  # the bindings take the op's name

        def __init_subclass__(cls, *, name: str) -> None: ...

    def change(self, function: Op) -> str | None:
        """Changes one function in place; returns None, or why it cannot be changed."""
        raise NotImplementedError


class InPlaceTransform(transform.TransformOpInterface):  # type: ignore[misc] # untyped bindings
    """Runs ``change`` on each function of the handle; the first that fails is a silenceable failure."""

    @staticmethod
    def apply(
        op: InPlaceOp,
        rewriter: transform.TransformRewriter,
        results: transform.TransformResults,
        state: transform.TransformState,
    ) -> transform.DiagnosedSilenceableFailure:
        """Applies the op; the transform interpreter calls it."""
        for function in state.get_payload_ops(op.target):
            reason = op.change(function.operation)
            if reason is not None:
                return silenceable_failure(op, reason)
        return transform.DiagnosedSilenceableFailure.Success

    @staticmethod
    def allow_repeated_handle_operands(op: InPlaceOp) -> bool:
        """Returns whether several operands may be one handle: these ops have one operand."""
        return False


class InPlaceEffects(ir.MemoryEffectsOpInterface):  # type: ignore[misc] # untyped bindings
    """Side effects of these ops: they read their handle, which so stays valid, and modify the payload."""

    @staticmethod
    def get_effects(op: Op, effects: ir.MemoryEffectInstancesList) -> None:
        """Lists the effects; the transform interpreter calls it."""
        transform.only_reads_handle(op.op_operands, effects)
        transform.modifies_payload(effects)


class ConsumingEffects(ir.MemoryEffectsOpInterface):  # type: ignore[misc] # untyped bindings
    """Side effects of an op that replaces what its handle stands for: the handle is not valid behind it."""

    @staticmethod
    def get_effects(op: Op, effects: ir.MemoryEffectInstancesList) -> None:
        """Lists the effects; the transform interpreter calls it."""
        transform.consumes_handle(op.op_operands, effects)
        transform.modifies_payload(effects)


def silenceable_failure(op: Op, reason: str) -> transform.DiagnosedSilenceableFailure:
    """Emits the reason as a diagnostic and returns the failure, which a script may silence."""
    op.operation.location.emit_error(f"{reason}\n")  # the interpreter appends to this text
    return transform.DiagnosedSilenceableFailure.SilenceableFailure


def attribute(op: Op, name: str, default: int) -> int:
    """Returns an optional integer attribute of a transform op."""
    attributes = op.operation.attributes
    return int(ir.IntegerAttr(attributes[name]).value) if name in attributes else default


def text(op: Op, name: str, default: str) -> str:
    """Returns an optional text attribute of a transform op."""
    attributes = op.operation.attributes
    return str(ir.StringAttr(attributes[name]).value) if name in attributes else default
