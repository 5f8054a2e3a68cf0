"""Index values as a base plus a constant: of constants, sums and affine.apply."""

from collections.abc import Hashable

from tuner.mlir.bindings import Value, ir
from tuner.mlir.ir.building import symbol, value
from tuner.mlir.ir.reading import constant_of, op_of


def split_constant(index: Value) -> tuple[Hashable, int]:
    """Returns (base, constant), whose sum is an index value; creates no ops.

    For a constant, and an ``affine.apply`` that is one, the base is None. For another ``affine.apply`` it is
    the value to which the op only adds a constant, else (text of the op's expression without constants, its
    operands). For any other value the base is the value, and the constant 0.
    """
    known = constant_of(index)
    if known is not None:
        return None, known
    if op_of(index, "affine.apply") is None:
        return index, 0
    mapping = ir.AffineMapAttr(index.owner.attributes["map"]).value
    expression, constant = _split(mapping.results[0])
    if expression is None:
        return None, constant
    operands = tuple(index.owner.operands)
    names = _names(mapping)
    if expression in names:
        return operands[names.index(expression)], constant
    return (str(expression), operands), constant


def _split(expression: ir.AffineExpr) -> tuple[ir.AffineExpr | None, int]:
    """Returns (affine sum without constant terms, or None if it has only these; total of the constants)."""
    if isinstance(expression, ir.AffineConstantExpr):
        return None, int(expression.value)
    if not isinstance(expression, ir.AffineAddExpr):
        return expression, 0
    left, number = _split(expression.lhs)
    right, other_number = _split(expression.rhs)
    if left is None or right is None:
        return (right if left is None else left), number + other_number
    return ir.AffineExpr.get_add(left, right), number + other_number


def without_constant(index: Value) -> tuple[Value | None, int]:
    """Returns (base, constant) whose sum is an index value; may create ops for the base.

    The base is None if only a constant is left.
    """
    known = constant_of(index)
    if known is not None:
        return None, known
    if op_of(index, "arith.addi") is not None:
        return _sum_without_constant(index)
    if op_of(index, "affine.apply") is not None:
        return _apply_without_constant(index)
    return index, 0


def _sum_without_constant(total: Value) -> tuple[Value | None, int]:
    (left, number), (right, other_number) = map(without_constant, total.owner.operands)
    if number + other_number == 0:
        return total, 0
    if left is None or right is None:
        return (right if left is None else left), number + other_number
    return value("arith.addi", total.type, left, right), number + other_number


def _apply_without_constant(applied: Value) -> tuple[Value | None, int]:
    mapping = ir.AffineMapAttr(applied.owner.attributes["map"]).value
    expression, constant = _split(mapping.results[0])
    operands = list(applied.owner.operands)
    names = _names(mapping)
    # the constant part of an operand that the map only adds moves out of the map
    for position, name in enumerate(names):
        base, more = without_constant(operands[position])
        if more and base is not None and expression is not None and _is_added_once(expression, name):
            operands[position] = base
            constant += more
    if constant == 0:
        return applied, 0
    if expression is None:
        return None, constant
    if expression in names:
        return operands[names.index(expression)], constant
    kept = ir.AffineMapAttr.get(ir.AffineMap.get(mapping.n_dims, mapping.n_symbols, [expression]))
    return value("affine.apply", applied.type, *operands, map=kept), constant


def _names(mapping: ir.AffineMap) -> list[ir.AffineExpr]:
    dimensions = list(map(ir.AffineExpr.get_dim, range(mapping.n_dims)))
    return [*dimensions, *map(symbol, range(mapping.n_symbols))]


def _is_added_once(expression: ir.AffineExpr, name: ir.AffineExpr) -> bool:
    terms = _terms(expression)
    others = [term for term in terms if term != name]
    return len(others) == len(terms) - 1 and not any(_mentions(other, name) for other in others)


def _terms(expression: ir.AffineExpr) -> list[ir.AffineExpr]:
    if isinstance(expression, ir.AffineAddExpr):
        return _terms(expression.lhs) + _terms(expression.rhs)
    return [expression]


def _mentions(expression: ir.AffineExpr, name: ir.AffineExpr) -> bool:
    if isinstance(expression, ir.AffineBinaryExpr):
        return _mentions(expression.lhs, name) or _mentions(expression.rhs, name)
    return bool(expression == name)
