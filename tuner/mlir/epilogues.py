"""Recognizes epilogues: finds the row of the table of epilogues that the op after a product computes.

The op and the row are both brought to a normal form of real arithmetic: sums and products without order, with
one constant each. ``x * 0.5 * (1 + erf(x / sqrt(2)))`` and ``(0.5 x) (erf(0.7071 x) + 1)`` are then equal.
"""

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from tuner.core.epilogues import EPILOGUES, SUM, Epilogue
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ir.reading import op_of

# A name, a number, or an operation with operands: ("add", 1.0, ("erf", "sum")) has its number in front, and
# the others in the order of their text.
Expression = str | float | tuple["Expression", ...]
DIGITS = 6  # that a constant in f32 and the table's number, a double, have in common

ADD = "add"
MUL = "mul"
MAX = "max"
INVERSE = "inverse"
AXES = MappingProxyType({"(d0, d1) -> (d1)": "n", "(d0, d1) -> (d0, d1)": "mn", "(d0, d1) -> ()": ""})
# axes -> the name of the argument that rows of the table have
ARGUMENT_BY_AXES = MappingProxyType(
    {argument.axes: argument.name for epilogue in EPILOGUES.values() for argument in epilogue.arguments}
)
TO_TENSOR = "bufferization.to_tensor"
CONVERSIONS = (
    "arith.extf",
    "arith.truncf",
    "arith.extsi",
    "arith.trunci",
)  # left out: a problem's types imply them
FUNCTIONS = MappingProxyType({"math.exp": "exp", "math.tanh": "tanh", "math.erf": "erf"})
# Numbers of predicates: ogt, oge, ugt, uge of floats; sgt, sge of integers.
GREATER = MappingProxyType({"arith.cmpf": ("2", "3", "9", "10"), "arith.cmpi": ("4", "5")})
FOLDS: Mapping[str, tuple[Callable[[float, float], float], float]] = MappingProxyType(
    {ADD: (operator.add, 0.0), MUL: (operator.mul, 1.0), MAX: (max, -math.inf)}
)
NAMES = MappingProxyType(
    {
        **{f"arith.{name}f": name for name in ("add", "sub", "mul", "div", "neg")},
        **{f"arith.{name}i": name for name in ("add", "sub", "mul")},
        **dict.fromkeys(("arith.maximumf", "arith.maxnumf", "arith.maxsi"), "max"),
        **dict.fromkeys(("math.powf", "math.fpowi"), "pow"),
    }
)


def epilogue_of(product: Op, root: Op) -> str:
    """Returns the name of the epilogue between a fusion's product and its result; "" if the table has none.

    Args:
        product: a ``linalg.matmul`` of two arguments of the fusion's function.
        root: the fusion's last op; ``product`` itself if its result is stored without an epilogue.
    """
    if product.name != "linalg.matmul" or not all(map(_is_argument, list(product.operands)[:2])):
        return ""
    if root == product:
        return _name_of_row(SUM)
    if root.name != "linalg.generic":
        return ""
    *inputs, _ = root.operands
    maps = [
        str(ir.AffineMapAttr(mapping).value) for mapping in ir.ArrayAttr(root.attributes["indexing_maps"])
    ]
    leaves = [_leaf(value, mapping, product) for value, mapping in zip(inputs, maps, strict=False)]
    if "" in leaves or len(set(leaves)) < len(leaves) or AXES.get(maps[-1]) != "mn":
        return ""
    block = root.regions[0].blocks[0]
    names = dict(zip(block.arguments, leaves, strict=False))
    result = _expression(list(block.operations)[-1].operands[0], names)
    if result is None:
        return ""
    return _name_of_row(result)


def _is_argument(value: Value) -> bool:
    """Returns whether a tensor is what an argument of the fusion's function holds."""
    read = op_of(value, TO_TENSOR)
    return read is not None and isinstance(read.operands[0].owner, ir.Block)


def _leaf(value: Value, mapping: str, product: Op) -> str:
    """Returns what rows call an operand: "sum", or by its axes "bias", "addend", "factor"; else ""."""
    axes = AXES.get(mapping.removeprefix("affine_map<").removesuffix(">"), "?")
    if value.owner == product:
        if axes == "mn":
            return SUM
        return ""
    if _is_argument(value):
        return ARGUMENT_BY_AXES.get(axes, "")
    return ""


def _name_of_row(expression: Expression) -> str:
    names = (name for name, epilogue in EPILOGUES.items() if _expression_of_row(epilogue) == expression)
    return next(names, "")


def _expression_of_row(epilogue: Epilogue) -> Expression:
    values: dict[str, Expression] = {}
    for step in epilogue.steps:
        operands = [
            values.get(operand, operand) if isinstance(operand, str) else operand for operand in step.operands
        ]
        values[step.name] = RULES[step.operation](*operands)
    return values.get(epilogue.result, epilogue.result)


def _expression(value: Value, names: Mapping[Value, str]) -> Expression | None:
    """Returns what a scalar of a body is made from; None for an operation that no row has."""
    if value in names:
        return names[value]
    if isinstance(value.owner, ir.Block):
        return None
    op = value.owner.operation
    if op.name == "arith.constant":
        return float(op.attributes["value"].value)
    operands = [_expression(operand, names) for operand in op.operands]
    known = [operand for operand in operands if operand is not None]
    if op.name == "arith.select":
        return _maximum(op, names)
    if len(known) < len(operands):
        return None
    if op.name in CONVERSIONS:
        return known[0]
    rule = RULES.get(FUNCTIONS.get(op.name, NAMES.get(op.name, "")))
    if rule is None:
        return None
    return rule(*known)


def _maximum(op: Op, names: Mapping[Value, str]) -> Expression | None:
    """Returns ``select(a > b, a, b)`` as the larger of both; None for another selection."""
    compared = op_of(op.operands[0], "arith.cmpf", "arith.cmpi")
    if compared is None or str(compared.attributes["predicate"]).split(" ")[0] not in GREATER[compared.name]:
        return None
    first, second = (_expression(operand, names) for operand in list(op.operands)[1:])
    sides = [_expression(operand, names) for operand in compared.operands]
    if first is None or second is None or sides != [first, second]:
        return None
    return _folded(MAX, (first, second))


def _folded(name: str, operands: Iterable[Expression]) -> Expression:
    """Returns a sum or product without brackets, one number in front, or the larger of several."""
    fold, neutral = FOLDS[name]
    number = neutral
    others = []
    for operand in operands:
        is_same = isinstance(operand, tuple) and operand[0] == name
        for term in operand[1:] if is_same and isinstance(operand, tuple) else (operand,):
            if isinstance(term, float):
                number = fold(number, term)
            else:
                others.append(term)
    number = float(f"{number:.{DIGITS - 1}e}")
    if not others or (name == MUL and number == 0):
        return number
    if number == neutral and len(others) == 1:
        return others[0]
    front: tuple[Expression, ...] = () if number == neutral else (number,)
    return (name, *front, *sorted(others, key=repr))


def _inverse(operand: Expression) -> Expression:
    if isinstance(operand, float) and operand:
        return 1 / operand
    return (INVERSE, operand)


def _power(base: Expression, exponent: Expression) -> Expression:
    if isinstance(exponent, float) and exponent in (2.0, 3.0):
        return _folded(MUL, [base] * int(exponent))
    return ("pow", base, exponent)


RULES: Mapping[str, Callable[..., Expression]] = MappingProxyType(
    {
        "add": lambda *operands: _folded(ADD, operands),
        "sub": lambda first, second: _folded(ADD, (first, _folded(MUL, (-1.0, second)))),
        "mul": lambda *operands: _folded(MUL, operands),
        "div": lambda first, second: _folded(MUL, (first, _inverse(second))),
        "neg": lambda operand: _folded(MUL, (-1.0, operand)),
        "max": lambda *operands: _folded(MAX, operands),
        "pow": _power,
        "exp": lambda operand: ("exp", operand),
        "tanh": lambda operand: ("tanh", operand),
        "erf": lambda operand: ("erf", operand),
    }
)
