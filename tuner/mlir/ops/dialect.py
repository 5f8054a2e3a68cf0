"""The dialect of this project's transform ops, and what they share: one handle in, payload changed."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tuner.mlir.bindings import ext, ir, transform

DIALECT = "tuner"


class TunerDialect(ext.Dialect, name=DIALECT):  # type: ignore[misc,call-arg] # untyped bindings
    """Holds the ops of this folder; scripts call them in generic syntax: ``"tuner.name"(%handle) {...}``."""


class InPlaceOp(TunerDialect.Operation):  # type: ignore[misc,name-defined] # untyped bindings
    """A transform op that changes the functions of its one handle, which stays valid."""

    target: ext.Operand[transform.AnyOpType]

    if TYPE_CHECKING:  # the bindings take the op's name

        def __init_subclass__(cls, *, name: str) -> None: ...

    def change(self, function: Any) -> str | None:
        """Changes one function; returns why it does not, where it refuses to."""
        raise NotImplementedError


class InPlaceTransform(transform.TransformOpInterface):  # type: ignore[misc] # untyped bindings
    """Changes the functions in turn, up to the first that is refused: a silenceable failure."""

    @staticmethod
    def apply(op: InPlaceOp, rewriter: Any, results: Any, state: Any) -> Any:
        """Runs for the transform interpreter."""
        for function in state.get_payload_ops(op.target):
            reason = op.change(function.operation)
            if reason is not None:
                return _refuse(op, reason)
        return transform.DiagnosedSilenceableFailure.Success

    @staticmethod
    def allow_repeated_handle_operands(op: InPlaceOp) -> bool:
        """Tells that one handle is enough."""
        return False


class InPlaceEffects(ir.MemoryEffectsOpInterface):  # type: ignore[misc] # untyped bindings
    """Reads its handle, which stays valid, and modifies the payload."""

    @staticmethod
    def get_effects(op: Any, effects: Any) -> None:
        """Declares the effects to the transform interpreter."""
        transform.only_reads_handle(op.op_operands, effects)
        transform.modifies_payload(effects)


def walk(root: Any, name: str) -> list[Any]:
    """Returns the payload ops of that name below ``root``, in order."""
    found: list[Any] = []

    def visit(op: Any) -> Any:  # walk_where takes a tenth longer
        if op.name == name:
            found.append(op)
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit)
    return found


def walk_where(root: Any, is_wanted: Callable[[Any], bool]) -> list[Any]:
    """Returns the wanted payload ops below ``root``, and ``root`` if it is, each after those inside of it."""
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if is_wanted(op):
            found.append(op)
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit)
    return found


def _refuse(op: Any, reason: str) -> Any:
    """Says why the transform op cannot be applied and returns the failure, which a script may silence."""
    op.operation.location.emit_error(f"{reason}\n")  # a line of its own: the interpreter goes on behind it
    return transform.DiagnosedSilenceableFailure.SilenceableFailure


def attribute(op: Any, name: str, default: int) -> int:
    """Returns an optional integer attribute of a transform op."""
    attributes = op.operation.attributes
    return int(ir.IntegerAttr(attributes[name]).value) if name in attributes else default


def text(op: Any, name: str, default: str) -> str:
    """Returns an optional text attribute of a transform op."""
    attributes = op.operation.attributes
    return str(ir.StringAttr(attributes[name]).value) if name in attributes else default
