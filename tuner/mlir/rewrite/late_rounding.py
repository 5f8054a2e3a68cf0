"""Rounds to bf16 after numbers are limited, and not before: comparisons and choices are then of f32.

Rounding never changes the order of two numbers, and a limit is a bf16 number, so the result is the same; only
a zero that a number is rounded to may have the other sign. Vector code would extend bf16 for each comparison.

    %r = arith.truncf %x : f32 to bf16
    %c = arith.cmpf ugt, %r, %limit : bf16
    %y = arith.select %c, %r, %limit : bf16
  becomes, with %wide the same constant
    %c = arith.cmpf ugt, %x, %wide : f32
    %s = arith.select %c, %x, %wide : f32
    %y = arith.truncf %s : f32 to bf16
"""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite.building import create, value
from tuner.mlir.rewrite.definitions import attributes_of, op_of
from tuner.mlir.rewrite.walking import walk

ROUND, COMPARE, SELECT = "arith.truncf", "arith.cmpf", "arith.select"


def round_late(function: Op) -> None:
    """Moves roundings from f32 to bf16 after selections of the number or a limit, in place."""
    for op in walk(function, SELECT):
        compare = op_of(op.operands[0], COMPARE)
        rounding = None if compare is None else op_of(compare.operands[0], ROUND)
        if compare is not None and rounding is not None:
            _swap(op, compare, rounding)


def _swap(select: Op, compare: Op, rounding: Op) -> None:
    """Replaces a selection of a rounded number or its limit by the rounded selection."""
    rounded, wide = rounding.results[0], rounding.operands[0]
    limit = _constant_of(compare.operands[1])
    of_bf16 = isinstance(rounded.type, ir.BF16Type) and isinstance(wide.type, ir.F32Type)
    chosen = [_is_made_by(each, rounding) for each in list(select.operands)[1:]]
    others = [_constant_of(each) for each in list(select.operands)[1:]]
    if not of_bf16 or limit is None or sum(chosen) != 1 or others[chosen.index(False)] != limit:
        return
    with ir.InsertionPoint(select), select.location:
        bound = value("arith.constant", wide.type, value=ir.FloatAttr.get(wide.type, limit))
        condition = create(COMPARE, [compare.results[0].type], [wide, bound], **attributes_of(compare))
        operands = (wide if is_number else bound for is_number in chosen)
        limited = value(SELECT, wide.type, condition.results[0], *operands)
        again = value(ROUND, rounded.type, limited)
    select.results[0].replace_all_uses_with(again)
    select.erase()


def _is_made_by(number: Value, op: Op) -> bool:
    found = op_of(number, ROUND)
    return found is not None and found == op


def _constant_of(number: Value) -> float | None:
    """Returns the number of an ``arith.constant`` of a float type; None for any other value."""
    op = op_of(number, "arith.constant")
    found = None if op is None else op.attributes["value"]
    return float(found.value) if isinstance(found, ir.FloatAttr) else None
