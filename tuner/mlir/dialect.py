"""The MLIR dialect ``tuner``: the base class of its transform ops, their MLIR interfaces and attributes.

An op is imported when a text names it: packages of ops list theirs, and a context gets those of its texts.
"""

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, ext, ir, irdl, register_op_class, transform

DIALECT = "tuner"
# Packages with a table ``OPS``: op, without the dialect's prefix -> "module:class" that defines it.
OP_PACKAGES: tuple[str, ...] = ("tuner.mlir.cpu_ops", "tuner.gpu.ops")
NAMED_OP = re.compile(rf"\b{DIALECT}\.(\w+)")


class TunerDialect(ext.Dialect, name=DIALECT):  # type: ignore[misc,call-arg] # untyped bindings
    """The MLIR dialect ``tuner``, whose transform ops are written in Python.

    Most ops take one handle: ``"tuner.name"(%handle) {...} : (!transform.any_op) -> ()``.
    """

    @classmethod
    def add_ops(cls, *ops: Any) -> None:
        """Registers ops, classes of ``TunerDialect.Operation``, in the current MLIR context.

        ``TunerDialect.load`` of the bindings runs once per context, and so misses ops that are imported
        later.
        """
        module = ir.Module.create(ir.Location.unknown())
        with ir.InsertionPoint(module.body), ir.Location.unknown():
            dialect = irdl.dialect(cls.DIALECT_NAMESPACE)
            with ir.InsertionPoint(dialect.body):
                for op in ops:
                    op._emit_operation()  # noqa: SLF001 - as ``ext.Dialect.load`` calls it
        irdl.load_dialects(module)
        for op in ops:
            register_op_class(cls, op)


class InPlaceOp(TunerDialect.Operation):  # type: ignore[misc,name-defined] # untyped bindings
    """The base class of transform ops that take one handle and change its payload ops in place."""

    target: ext.Operand[transform.AnyOpType]
    consumes_handle = False  # True: ``change`` replaces the payload ops, and the handle becomes invalid

    if TYPE_CHECKING:  # the bindings' class takes the op's name as a keyword

        def __init_subclass__(cls, *, name: str) -> None: ...

    def change(self, function: Op) -> Refusal | None:
        """Changes one payload op in place; returns None, or a Refusal if the op cannot be applied to it."""
        raise NotImplementedError


class InPlaceTransform(transform.TransformOpInterface):  # type: ignore[misc] # untyped bindings
    """The implementation of an InPlaceOp for MLIR's transform interpreter.

    Calls ``change`` for each payload op, up to the first failure, which is silenceable.
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
        if len(op.operands):  # without, MLIR asks for effects before it verifies the number of operands
            transform.only_reads_handle(op.op_operands, effects)
        transform.modifies_payload(effects)


class ConsumingEffects(ir.MemoryEffectsOpInterface):  # type: ignore[misc] # untyped bindings
    """Memory effects of transform ops that consume their handles, which become invalid."""

    @staticmethod
    def get_effects(op: Op, effects: ir.MemoryEffectInstancesList) -> None:
        if len(op.operands):
            transform.consumes_handle(op.op_operands, effects)
        transform.modifies_payload(effects)


def add_named_ops(text: str) -> None:
    """Registers the ops of OP_PACKAGES that ``text`` names in the current MLIR context; imports each once.

    Names that no package lists are left for MLIR to refuse.
    """
    context = ir.Context.current
    for name in dict.fromkeys(NAMED_OP.findall(text)):
        place = op_places().get(name)
        if place is not None and not context.is_registered_operation(f"{DIALECT}.{name}"):
            op = _imported(place)
            TunerDialect.add_ops(op)
            InPlaceTransform.attach(op.OPERATION_NAME)
            effects = ConsumingEffects if op.consumes_handle else InPlaceEffects
            effects.attach(op.OPERATION_NAME)


def op_places() -> dict[str, str]:
    """Returns {op name without the dialect's prefix: "module:class"} of all OP_PACKAGES; imports no op."""
    return {name: place for package in OP_PACKAGES for name, place in import_module(package).OPS.items()}


def all_ops() -> list[type[InPlaceOp]]:
    """Imports and returns the classes of all ops of OP_PACKAGES, sorted by name."""
    return [_imported(place) for _, place in sorted(op_places().items())]


def _imported(place: str) -> type[InPlaceOp]:
    module, _, name = place.partition(":")
    op: type[InPlaceOp] = getattr(import_module(module), name)
    return op


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


def attributes_of(op: Op) -> dict[str, int | str]:
    """Returns the attributes of a transform op that are integers or strings: name -> value."""
    values: dict[str, int | str] = {}
    attributes = op.operation.attributes
    for name in attributes:
        if isinstance(attributes[name], ir.IntegerAttr | ir.StringAttr):
            values[name] = attributes[name].value
    return values


def integer_list(op: Op, name: str) -> tuple[int, ...]:
    """Returns the integers of the attribute ``name`` (array<i64>) of a transform op; () if it is absent."""
    attributes = op.operation.attributes
    if name in attributes:
        return tuple(ir.DenseI64ArrayAttr(attributes[name]))
    return ()
