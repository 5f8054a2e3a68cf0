"""Evaluation of an expression's syntax tree, elementwise: the tree is walked, nothing is executed."""

import ast
from collections.abc import Mapping

from tuner.space import partial_arithmetic
from tuner.space.operators import ARITHMETIC, COMPARISONS
from tuner.space.partial_arithmetic import Operand, Partial


def evaluate(node: ast.expr, values: Mapping[str, Operand]) -> Partial:
    """Returns the value of an expression's syntax tree, elementwise where names stand for columns.

    ``values`` gives each name a number, a text or a column. The tree must be whitelisted. Raises TypeError
    for text in arithmetic, as a condition, or compared with a number or by order; OverflowError for a power
    that could exceed 1024 bits or a quotient that no float can hold.
    """
    match node:
        case ast.Name(name):
            return Partial(values[name])
        case ast.Constant(value=int() | float() | str() as value):
            return Partial(value)
        case ast.BinOp(left, operation, right):
            name = ARITHMETIC[type(operation)]
            return partial_arithmetic.arithmetic(name, evaluate(left, values), evaluate(right, values))
        case ast.UnaryOp(sign, operand):
            return _signed(sign, evaluate(operand, values))
        case ast.BoolOp(text, operands):
            joined = partial_arithmetic.all_of if isinstance(text, ast.And) else partial_arithmetic.any_of
            return joined([evaluate(operand, values) for operand in operands])
        case ast.IfExp(test, then, other):
            return partial_arithmetic.choose(*(evaluate(part, values) for part in (test, then, other)))
        case ast.Call(ast.Name(name), arguments):
            return _call(name, [evaluate(argument, values) for argument in arguments])
        case ast.Compare(left, signs, rights):
            return _chain(evaluate(left, values), signs, rights, values)
    raise AssertionError(f"not whitelisted: {ast.dump(node)}")


def _signed(sign: ast.unaryop, operand: Partial) -> Partial:
    if isinstance(sign, ast.Not):
        return partial_arithmetic.negate(operand)
    return partial_arithmetic.arithmetic("-" if isinstance(sign, ast.USub) else "+", Partial(0), operand)


def _call(name: str, arguments: list[Partial]) -> Partial:
    match name:
        case "min":
            return partial_arithmetic.smallest(arguments)
        case "max":
            return partial_arithmetic.largest(arguments)
        case "abs":
            return partial_arithmetic.magnitude(arguments[0])
    return partial_arithmetic.ceil_div(arguments[0], arguments[1])


def _chain(
    left: Partial, signs: list[ast.cmpop], rights: list[ast.expr], values: Mapping[str, Operand]
) -> Partial:
    """Evaluates ``a < b <= c`` as ``a < b and b <= c``; ``in`` may only come last."""
    links = []
    for sign, right in zip(signs, rights, strict=True):
        if isinstance(right, ast.Tuple | ast.List):
            members = [partial_arithmetic.compare("==", left, evaluate(item, values)) for item in right.elts]
            found = partial_arithmetic.any_of(members)
            links.append(found if isinstance(sign, ast.In) else partial_arithmetic.negate(found))
            continue
        operand = evaluate(right, values)
        links.append(partial_arithmetic.compare(COMPARISONS[type(sign)], left, operand))
        left = operand
    return partial_arithmetic.all_of(links)
