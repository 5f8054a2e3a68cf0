"""The MLIR dialect ``tuner``: the base class of its transform ops, their MLIR interfaces and attributes."""

from typing import TYPE_CHECKING

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, ext, ir, irdl, transform

DIALECT = "tuner"


class TunerDialect(ext.Dialect, name=DIALECT):  # type: ignore[misc,call-arg] # untyped bindings
    """The MLIR dialect ``tuner``, whose transform ops are written in Python.

    Most ops take one handle: ``"tuner.name"(%handle) {...} : (!transform.any_op) -> ()``.
    """

    @classmethod
    def load_in_context(cls) -> None:
        """Registers the dialect in the current MLIR context."""
        if hasattr(cls, "_mlir_module"):  # of the process's first context; load() takes three times as long
            irdl.load_dialects(ir.Module.parse(str(cls._mlir_module)))
        else:
            cls.load()


class InPlaceOp(TunerDialect.Operation):  # type: ignore[misc,name-defined] # untyped bindings
    """The base class of transform ops that take one handle and change its payload ops in place."""

    target: ext.Operand[transform.AnyOpType]

    if TYPE_CHECKING:  # the bindings' class takes the op's name as a keyword

        def __init_subclass__(cls, *, name: str) -> None: ...

    def change(self, function: Op) -> Refusal | None:
        """Changes one payload op in place; returns None, or a Refusal if the op cannot be applied to it."""
        raise NotImplementedError


class InPlaceTransform(transform.TransformOpInterface):  # type: ignore[misc] # untyped bindings
    """The implementation of an InPlaceOp for MLIR's transform interpreter.

    Calls ``change`` for each payload op, up to the first failure, which is silenceable.
    ``tuner.mlir.transform`` attaches it to each op when the dialect is registered.
    """

    @staticmethod
    def apply(
        op: InPlaceOp,
        rewriter: transform.TransformRewriter,
        results: transform.TransformResults,
        state: transform.TransformState,
    ) -> transform.DiagnosedSilenceableFailure:
        for function in state.get_payload_ops(op.target):
            refusal = op.change(function.operation)
            if refusal is not None:
                return silenceable_failure(op, refusal.text)
        return transform.DiagnosedSilenceableFailure.Success

    @staticmethod
    def allow_repeated_handle_operands(op: InPlaceOp) -> bool:
        """Returns False: an InPlaceOp has one operand."""
        return False


class InPlaceEffects(ir.MemoryEffectsOpInterface):  # type: ignore[misc] # untyped bindings
    """Memory effects of transform ops that only read their handles and modify the payload."""

    @staticmethod
    def get_effects(op: Op, effects: ir.MemoryEffectInstancesList) -> None:
        transform.only_reads_handle(op.op_operands, effects)
        transform.modifies_payload(effects)


class ConsumingEffects(ir.MemoryEffectsOpInterface):  # type: ignore[misc] # untyped bindings
    """Memory effects of transform ops that consume their handles, which become invalid."""

    @staticmethod
    def get_effects(op: Op, effects: ir.MemoryEffectInstancesList) -> None:
        transform.consumes_handle(op.op_operands, effects)
        transform.modifies_payload(effects)


def silenceable_failure(op: Op, reason: str) -> transform.DiagnosedSilenceableFailure:
    """Emits ``reason`` as an MLIR error at ``op``; returns a failure that a script may catch."""
    op.operation.location.emit_error(f"{reason}\n")  # the interpreter appends to this text
    return transform.DiagnosedSilenceableFailure.SilenceableFailure


def attribute(op: Op, name: str, default: int) -> int:
    """Returns the integer attribute ``name`` of a transform op, or ``default`` if it is absent."""
    attributes = op.operation.attributes
    if name in attributes:
        return int(ir.IntegerAttr(attributes[name]).value)
    return default


def text(op: Op, name: str, default: str) -> str:
    """Returns the string attribute ``name`` of a transform op, or ``default`` if it is absent."""
    attributes = op.operation.attributes
    if name in attributes:
        return str(ir.StringAttr(attributes[name]).value)
    return default


def integer_list(op: Op, name: str) -> tuple[int, ...]:
    """Returns the integers of the attribute ``name`` (array<i64>) of a transform op; () if it is absent."""
    attributes = op.operation.attributes
    if name in attributes:
        return tuple(ir.DenseI64ArrayAttr(attributes[name]))
    return ()
