"""Finds the fill with zeros that lets a ``C += A B`` be a ``C = A B``."""

from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.passes.buffer_roots import VIEWS
from tuner.mlir.passes.carried_values import last_of


def zero_fill_before(op: Any, c: Any) -> Any | None:
    """Returns the fill of C with zeros that nothing lies between but ops that leave C alone."""
    before = list(op.block.operations)
    place = next(number for number, other in enumerate(before) if other.operation == op)
    names = _names_of(c)
    for other in reversed([each.operation for each in before[:place]]):
        if _is_zero_fill(other) and other.operands[-1] == c:
            return other
        if _may_touch(other, names):
            return None
    return None


def _names_of(c: Any) -> set[Any]:
    """Returns the buffer behind C and every view of it."""
    root = c
    while not isinstance(root.owner, ir.Block) and root.owner.name in VIEWS:
        root = root.owner.operands[0]
    names, waiting = {root}, [root]
    while waiting:
        for use in waiting.pop().uses:
            if use.owner.name in VIEWS:
                names.add(use.owner.results[0])
                waiting.append(use.owner.results[0])
    return names


def _may_touch(op: Any, names: set[Any]) -> bool:
    found: list[bool] = []

    def visit(inner: Any) -> Any:
        reads = inner.name not in VIEWS and any(value in names for value in inner.operands)
        if reads or inner.name in ("func.call", "gpu.wait"):
            found.append(True)
            return ir.WalkResult.INTERRUPT
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return bool(found)


def _is_zero_fill(op: Any) -> bool:
    """Tells whether a generic writes zero to every element of its only buffer."""
    if op.name != "linalg.generic" or len(op.operands) != 2 or isinstance(op.operands[0].type, ir.MemRefType):
        return False
    block, constant = op.regions[0].blocks[0], op.operands[0].owner
    stored = last_of(block).operands[0]
    if stored != block.arguments[0] or isinstance(constant, ir.Block) or constant.name != "arith.constant":
        return False
    number = constant.attributes["value"]
    output = ir.AffineMapAttr(ir.ArrayAttr(op.attributes["indexing_maps"])[1]).value
    is_whole = output == ir.AffineMap.get_identity(output.n_dims)
    return is_whole and isinstance(number, ir.FloatAttr) and float(number.value) == 0.0
