"""Splits index values into a symbolic base and a constant offset, to compare addresses."""

from collections.abc import Hashable

from tuner.mlir.bindings import Value, ir


def split_constant(index: Value) -> tuple[Hashable, int]:
    """Returns (base, constant): two indices of equal bases differ by their constants.

    The base is None for a constant, (affine expression, its symbols) for ``affine.apply``, or the value.
    """
    if isinstance(index.owner, ir.Block):
        return index, 0
    if index.owner.name == "arith.constant":
        return None, int(ir.IntegerAttr(index.owner.attributes["value"]).value)
    if index.owner.name != "affine.apply":
        return index, 0
    expression, constant = _split(ir.AffineMapAttr(index.owner.attributes["map"]).value.results[0])
    return (str(expression), tuple(index.owner.operands)), constant


def _split(expression: ir.AffineExpr) -> tuple[ir.AffineExpr | None, int]:
    """Returns a sum without its constant terms (None if nothing is left), and their total."""
    if isinstance(expression, ir.AffineConstantExpr):
        return None, int(expression.value)
    if not isinstance(expression, ir.AffineAddExpr):
        return expression, 0
    left, one = _split(expression.lhs)
    right, other = _split(expression.rhs)
    if left is None or right is None:
        return (right if left is None else left), one + other
    return ir.AffineExpr.get_add(left, right), one + other
