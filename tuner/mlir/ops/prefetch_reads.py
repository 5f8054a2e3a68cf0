"""``tuner.prefetch_reads``: asks for the cache lines that later reads of an argument will want."""

from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.ops.dialect import InPlaceOp, attribute, walk

VIEWS = ("memref.subview", "memref.cast")
LOCALITY = 3  # keep in every level of cache


class PrefetchReadsOp(InPlaceOp, name="prefetch_reads"):
    """Inserts ``memref.prefetch`` before vector reads of one function argument inside loops.

    Attributes, all i64: ``argument`` (its number), ``rows`` and ``columns`` (how many elements ahead in
    the last two dimensions, 0 unless given), ``line`` (elements of a cache line). The handle (a func.func
    on buffers) stays valid.
    Silenceable failure: the function has no such argument.
    """

    def change(self, function: Any) -> str | None:
        """Changes one function."""
        number = attribute(self, "argument", 1)
        argument = _argument(function, number)
        if argument is None:
            found = function.name
            return f"target: found {found}, allowed func.func with argument {number}"
        for read in walk(function, "vector.transfer_read"):
            if _is_matrix_read_in_loop(read) and _root(read.operands[0]) == argument:
                ahead = (attribute(self, "rows", 0), attribute(self, "columns", 0))
                _prefetch(read, ahead, attribute(self, "line", 16))
        return None


def _argument(function: Any, number: int) -> Any | None:
    is_function = function.name == "func.func" and len(function.regions[0].blocks) > 0
    arguments = function.regions[0].blocks[0].arguments if is_function else []
    return arguments[number] if number < len(arguments) else None


def _is_matrix_read_in_loop(read: Any) -> bool:
    return bool(read.parent.name == "scf.for" and ir.MemRefType(read.operands[0].type).rank == 2)


def _root(value: Any) -> Any:
    """Follows views back to the buffer they look into."""
    while isinstance(value, ir.OpResult) and value.owner.name in VIEWS:
        value = value.owner.operands[0]
    return value


def _prefetch(read: Any, ahead: tuple[int, int], line: int) -> None:
    """Prefetches every line that the vector covers, and the one its last element reaches, that far ahead."""
    width = ir.VectorType(read.results[0].type).shape[-1]
    buffer, row, column = read.operands[:3]
    with ir.InsertionPoint(read), read.location:
        later_row = _plus(row, ahead[0])
        for offset in dict.fromkeys((*range(0, width, line), width - 1)):
            ir.Operation.create(
                "memref.prefetch",
                operands=[buffer, later_row, _plus(column, ahead[1] + offset)],
                attributes={
                    "isWrite": ir.BoolAttr.get(False),
                    "localityHint": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), LOCALITY),
                    "isDataCache": ir.BoolAttr.get(True),
                },
            )


def _plus(index: Any, distance: int) -> Any:
    if distance == 0:
        return index
    attributes = {"value": ir.IntegerAttr.get(index.type, distance)}
    constant = ir.Operation.create("arith.constant", results=[index.type], attributes=attributes).results[0]
    return ir.Operation.create("arith.addi", results=[index.type], operands=[index, constant]).results[0]
