"""The transform op ``tuner.dialect``."""

from typing import TYPE_CHECKING

from tuner.mlir.bindings import Op, ext, ir, transform

DIALECT = "tuner"


class TunerDialect(ext.Dialect, name=DIALECT):  # type: ignore[misc,call-arg] # untyped bindings
    """The MLIR dialect ``tuner``, whose transform ops are written in Python.

    Most ops take one handle: ``"tuner.name"(%handle) {...} : (!transform.any_op) -> ()``.
    """


class InPlaceOp(TunerDialect.Operation):  # type: ignore[misc,name-defined] # untyped bindings
    """The base class of tuner's transform ops that take one handle and change its payload ops in place.

    A subclass implements ``change``. The handle stays valid, except for the ops listed as consuming.
    """

    target: ext.Operand[transform.AnyOpType]

    if TYPE_CHECKING:  # the bindings' class takes the op's name as a keyword

        def __init_subclass__(cls, *, name: str) -> None: ...

    def change(self, function: Op) -> str | None:
        """Changes one payload op in place; returns None, or why this transform op cannot be applied to it.

        ``function`` is the payload op, a func.func for most ops. Each transform op implements this method;
        here it raises NotImplementedError.
        """
        raise NotImplementedError


class InPlaceTransform(transform.TransformOpInterface):  # type: ignore[misc] # untyped bindings
    """The implementation of InPlaceOp for MLIR's interpreter: calls ``change`` on each payload op.

    The first reason that ``change`` returns becomes a silenceable failure; the payload ops after it stay.
    """

    @staticmethod
    def apply(
        op: InPlaceOp,
        rewriter: transform.TransformRewriter,
        results: transform.TransformResults,
        state: transform.TransformState,
    ) -> transform.DiagnosedSilenceableFailure:
        """Calls ``op.change`` on each payload op of the handle of ``op``.

        MLIR's transform interpreter calls this method. Returns success, or a silenceable failure with the
        first reason that ``change`` returns.
        """
        for function in state.get_payload_ops(op.target):
            reason = op.change(function.operation)
            if reason is not None:
                return silenceable_failure(op, reason)
        return transform.DiagnosedSilenceableFailure.Success

    @staticmethod
    def allow_repeated_handle_operands(op: InPlaceOp) -> bool:
        """Returns False: MLIR may not accept one handle for several operands; these ops have only one."""
        return False


class InPlaceEffects(ir.MemoryEffectsOpInterface):  # type: ignore[misc] # untyped bindings
    """The memory effects, for MLIR, of transform ops that only read their handles and modify the payload.

    A handle that is only read stays valid.
    """

    @staticmethod
    def get_effects(op: Op, effects: ir.MemoryEffectInstancesList) -> None:
        """Appends to ``effects`` that ``op`` only reads its handles and modifies the payload.

        MLIR's transform interpreter calls this method.
        """
        transform.only_reads_handle(op.op_operands, effects)
        transform.modifies_payload(effects)


class ConsumingEffects(ir.MemoryEffectsOpInterface):  # type: ignore[misc] # untyped bindings
    """The memory effects, for MLIR, of transform ops that replace the payload ops of their handles.

    These ops consume the handles, which become invalid.
    """

    @staticmethod
    def get_effects(op: Op, effects: ir.MemoryEffectInstancesList) -> None:
        """Appends to ``effects`` that ``op`` consumes its handles and modifies the payload.

        MLIR's transform interpreter calls this method.
        """
        transform.consumes_handle(op.op_operands, effects)
        transform.modifies_payload(effects)


def silenceable_failure(op: Op, reason: str) -> transform.DiagnosedSilenceableFailure:
    """Emits ``reason`` as an MLIR error at the location of ``op``; returns a silenceable failure.

    A script may catch such a failure, for example by ``transform.alternatives``.
    """
    op.operation.location.emit_error(f"{reason}\n")  # the interpreter appends to this text
    return transform.DiagnosedSilenceableFailure.SilenceableFailure


def attribute(op: Op, name: str, default: int) -> int:
    """Returns the integer attribute ``name`` of a transform op, or ``default`` if it is absent."""
    attributes = op.operation.attributes
    return int(ir.IntegerAttr(attributes[name]).value) if name in attributes else default


def text(op: Op, name: str, default: str) -> str:
    """Returns the string attribute ``name`` of a transform op, or ``default`` if it is absent."""
    attributes = op.operation.attributes
    return str(ir.StringAttr(attributes[name]).value) if name in attributes else default


def integer_list(op: Op, name: str) -> tuple[int, ...]:
    """Returns the integers of the attribute ``name`` (array<i64>) of a transform op; () if it is absent."""
    attributes = op.operation.attributes
    return tuple(ir.DenseI64ArrayAttr(attributes[name])) if name in attributes else ()
