"""``tuner.prefetch_reads``: asks for the cache lines that later reads of an argument will want."""

from typing import Any

from tuner.mlir.bindings import ext, ir, transform
from tuner.mlir.ops.dialect import InPlaceEffects, TunerDialect, attribute, walk

VIEWS = ("memref.subview", "memref.cast")
LOCALITY = 3  # keep in every level of cache


class PrefetchReadsOp(TunerDialect.Operation, name="prefetch_reads"):  # type: ignore[misc,call-arg]
    """Inserts ``memref.prefetch`` before vector reads of one function argument inside loops.

    Attributes, all i64: ``argument`` (its number), ``columns`` (how many elements ahead in the row),
    ``line`` (elements of a cache line). The handle (a func.func on buffers) stays valid.
    Silenceable failure: the function has no such argument.
    """

    target: ext.Operand[transform.AnyOpType]

    class Transform(transform.TransformOpInterface):  # type: ignore[misc,name-defined]
        """Runs on every function of the handle."""

        @staticmethod
        def apply(op: Any, rewriter: Any, results: Any, state: Any) -> Any:
            """Changes the payload in place."""
            number = attribute(op, "argument", 1)
            for function in state.get_payload_ops(op.target):
                arguments = function.regions[0].blocks[0].arguments
                if number >= len(arguments):
                    return transform.DiagnosedSilenceableFailure.SilenceableFailure
                for read in walk(function, "vector.transfer_read"):
                    if read.parent.name == "scf.for" and _root(read.operands[0]) == arguments[number]:
                        _prefetch(read, attribute(op, "columns", 64), attribute(op, "line", 16))
            return transform.DiagnosedSilenceableFailure.Success

        @staticmethod
        def allow_repeated_handle_operands(op: Any) -> bool:
            """Tells that one handle is enough."""
            return False


def attach() -> None:
    """Gives the op its behaviour in the current context."""
    PrefetchReadsOp.Transform.attach(PrefetchReadsOp.OPERATION_NAME)
    InPlaceEffects.attach(PrefetchReadsOp.OPERATION_NAME)


def _root(value: Any) -> Any:
    """Follows views back to the buffer they look into."""
    while isinstance(value, ir.OpResult) and value.owner.name in VIEWS:
        value = value.owner.operands[0]
    return value


def _prefetch(read: Any, columns: int, line: int) -> None:
    """Prefetches every line that the vector covers, and the one its last element reaches, ``columns`` ahead."""
    width = ir.VectorType(read.results[0].type).shape[-1]
    index = ir.IndexType.get()
    buffer, *leading, last = read.operands[: 1 + ir.MemRefType(read.operands[0].type).rank]
    with ir.InsertionPoint(read), read.location:
        for offset in (*range(0, width, line), width - 1):
            ahead = _constant(index, columns + offset)
            column = ir.Operation.create("arith.addi", results=[index], operands=[last, ahead]).results[0]
            ir.Operation.create(
                "memref.prefetch",
                operands=[buffer, *leading, column],
                attributes={
                    "isWrite": ir.BoolAttr.get(False),
                    "localityHint": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), LOCALITY),
                    "isDataCache": ir.BoolAttr.get(True),
                },
            )


def _constant(type_: Any, value: int) -> Any:
    attributes = {"value": ir.IntegerAttr.get(type_, value)}
    return ir.Operation.create("arith.constant", results=[type_], attributes=attributes).results[0]
