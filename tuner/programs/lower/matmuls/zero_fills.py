"""Finds the fill with zeros that turns ``C += A B`` into ``C = A B``.

Searches backwards through one block of linalg on memrefs, up to the first operation that may access C or a
view of C. A fill in another block, or by an operation other than a ``linalg.generic`` of a constant, is not
found.
"""

from tuner.mlir.bindings import Op, Value, WalkResult, ir
from tuner.mlir.effects.aliases import aliases_of
from tuner.mlir.effects.buffer_roots import VIEWS, origins_of
from tuner.mlir.effects.region_dataflow import last_of
from tuner.mlir.rewrite.definitions import op_of
from tuner.mlir.rewrite.walking import walk_ops


def zero_fill_before(op: Op, c: Value) -> Op | None:
    """Returns the operation that fills ``c`` with zeros before ``op`` in the same block, or None.

    None also if an operation between the two may access ``c``.
    """
    before = list(op.block.operations)
    index = next(number for number, other in enumerate(before) if other.operation == op)
    found = [aliases_of(origin) for origin in origins_of(c)]
    if any(each.is_kept for each in found):
        return None
    aliases = {value for each in found for value in each.values}
    for other in reversed([each.operation for each in before[:index]]):
        if _is_zero_fill(other) and other.operands[-1] == c:
            return other
        if _may_touch(other, aliases):
            return None
    return None


def _may_touch(op: Op, aliases: set[Value]) -> bool:
    found: list[bool] = []

    def visit(inner: Op) -> WalkResult:
        reads = inner.name not in VIEWS and any(value in aliases for value in inner.operands)
        if reads or inner.name in ("func.call", "gpu.wait"):
            found.append(True)
            return ir.WalkResult.INTERRUPT
        return ir.WalkResult.ADVANCE

    walk_ops(op, visit)
    return bool(found)


def _is_zero_fill(op: Op) -> bool:
    """Returns whether a linalg.generic writes zero to every element of its only buffer."""
    if op.name != "linalg.generic" or len(op.operands) != 2 or isinstance(op.operands[0].type, ir.MemRefType):
        return False
    block, constant = op.regions[0].blocks[0], op_of(op.operands[0], "arith.constant")
    if constant is None or last_of(block).operands[0] != block.arguments[0]:
        return False
    number = constant.attributes["value"]
    output = ir.AffineMapAttr(ir.ArrayAttr(op.attributes["indexing_maps"])[1]).value
    is_whole = output == ir.AffineMap.get_identity(output.n_dims)
    return is_whole and isinstance(number, ir.FloatAttr) and float(number.value) == 0.0
