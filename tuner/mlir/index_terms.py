"""Splits index values into what varies and a constant, to compare addresses."""

from typing import Any

from tuner.mlir.bindings import ir


def split_constant(index: Any) -> tuple[Any, int]:
    """Returns (base, constant): equal bases with constants c and d are c - d apart."""
    if isinstance(index.owner, ir.Block):
        return index, 0
    if index.owner.name == "arith.constant":
        return None, int(ir.IntegerAttr(index.owner.attributes["value"]).value)
    if index.owner.name != "affine.apply":
        return index, 0
    expression, constant = _split(ir.AffineMapAttr(index.owner.attributes["map"]).value.results[0])
    return (str(expression), tuple(index.owner.operands)), constant


def _split(expression: Any) -> tuple[Any | None, int]:
    """Takes the constants out of a sum."""
    if isinstance(expression, ir.AffineConstantExpr):
        return None, int(expression.value)
    if not isinstance(expression, ir.AffineAddExpr):
        return expression, 0
    left, one = _split(expression.lhs)
    right, other = _split(expression.rhs)
    if left is None or right is None:
        return (right if left is None else left), one + other
    return ir.AffineExpr.get_add(left, right), one + other
