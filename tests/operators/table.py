"""Operators of two operands in MLIR and in PTX, with their exact results on Python's integers and fractions.

``{type}`` is the operands' type, ``{sign}`` and ``{bits}`` its parts: ``s32`` in PTX, ``i32`` in MLIR.
"""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any


@dataclass(frozen=True)
class Operator:
    """An operator; a machine that lacks it has "" for its text."""

    name: str
    mlir: str
    ptx: str
    exact: Callable[[Any, Any], Any]
    sign: str = "su"  # s: reads bits as signed numbers, u: as unsigned ones, su: either gives the same bits
    is_truth: bool = False  # the result is true or false, in PTX 1 or 0


def _integer(mlir: str, ptx: str, exact: Callable[[int, int], int], sign: str = "su") -> Operator:
    text = f"{ptx} %d, %a, %b;" if ptx else ""
    return Operator(mlir, f"%r = arith.{mlir} %a, %b : {{type}}", text, exact, sign)


def _comparison(mlir: str, ptx: str, exact: Callable[[Any, Any], bool], sign: str = "su") -> Operator:
    kind = "i" if sign else "f"
    text = f"setp.{ptx}.{{type}} %q, %a, %b; selp.b32 %d, 1, 0, %q;" if ptx else ""
    return Operator(
        f"cmp{kind} {mlir}", f"%r = arith.cmp{kind} {mlir}, %a, %b : {{type}}", text, exact, sign, True
    )


def quotient(a: int, b: int) -> int:
    """Returns a / b without its fraction."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int) -> int:
    """Returns what ``quotient`` leaves, with the sign of a."""
    return a - quotient(a, b) * b


ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    name: getattr(operator, name) for name in ("lt", "le", "gt", "ge")
}
INTEGERS = (
    _integer("addi", "add.{type}", operator.add),
    _integer("subi", "sub.{type}", operator.sub),
    _integer("muli", "mul.lo.{type}", operator.mul),
    _integer("andi", "and.b{bits}", operator.and_),
    _integer("ori", "or.b{bits}", operator.or_),
    _integer("xori", "xor.b{bits}", operator.xor),
    _integer("maxsi", "max.{type}", max, "s"),
    _integer("maxui", "max.{type}", max, "u"),
    _integer("minsi", "min.{type}", min, "s"),
    _integer("minui", "min.{type}", min, "u"),
    _comparison("eq", "eq", operator.eq),
    _comparison("ne", "ne", operator.ne),
    *(_comparison(f"{sign}{name}", name, exact, sign) for sign in "su" for name, exact in ORDERS.items()),
)
# of a divisor that is not 0, nor -1
DIVISIONS = (
    _integer("divsi", "div.{type}", quotient, "s"),
    _integer("divui", "div.{type}", quotient, "u"),
    _integer("remsi", "rem.{type}", remainder, "s"),
    _integer("remui", "rem.{type}", remainder, "u"),
    _integer("floordivsi", "", operator.floordiv, "s"),
    _integer("ceildivsi", "", lambda a, b: -(-a // b), "s"),
    _integer("ceildivui", "", lambda a, b: -(-a // b), "u"),
)
# by less than the width; PTX takes larger ones, too
SHIFTS = (
    _integer("shli", "shl.b{bits}", operator.lshift),
    _integer("shrsi", "shr.{type}", operator.rshift, "s"),
    _integer("shrui", "shr.{type}", operator.rshift, "u"),
)


def _float(mlir: str, ptx: str, exact: Callable[[Fraction, Fraction], Fraction]) -> Operator:
    return Operator(mlir, f"%r = arith.{mlir} %a, %b : {{type}}", f"{ptx}.rn.{{type}} %d, %a, %b;", exact, "")


# exact on fractions; rounded once
FLOATS = (
    _float("addf", "add", operator.add),
    _float("subf", "sub", operator.sub),
    _float("mulf", "mul", operator.mul),
    _float("divf", "div", operator.truediv),
)


def _extreme(mlir: str, ptx: str, *, keeps_nan: bool) -> Operator:
    order: Any = max if "max" in mlir else min

    def exact(a: float, b: float) -> float:
        numbers = [each for each in (a, b) if not math.isnan(each)]
        if not numbers or (keeps_nan and len(numbers) < 2):
            return math.nan
        return float(order(numbers, key=lambda each: (each, math.copysign(1, each))))  # -0 is less than 0

    return Operator(mlir, f"%r = arith.{mlir} %a, %b : {{type}}", f"{ptx}.{{type}} %d, %a, %b;", exact, "")


EXTREMES = (
    _extreme("maximumf", "max.NaN", keeps_nan=True),
    _extreme("minimumf", "min.NaN", keeps_nan=True),
    _extreme("maxnumf", "max", keeps_nan=False),
    _extreme("minnumf", "min", keeps_nan=False),
)


def _ordered(name: str, *, is_true_of_nan: bool) -> Operator:
    def exact(a: float, b: float) -> bool:
        if math.isnan(a) or math.isnan(b):
            return is_true_of_nan
        return bool(getattr(operator, name)(a, b))

    return _comparison(f"{'u' if is_true_of_nan else 'o'}{name}", f"{name}{'u' * is_true_of_nan}", exact, "")


ORDERINGS = (
    *(_ordered(name, is_true_of_nan=nan) for name in (*ORDERS, "eq", "ne") for nan in (False, True)),
    _comparison("ord", "num", lambda a, b: not (math.isnan(a) or math.isnan(b)), ""),
    _comparison("uno", "nan", lambda a, b: math.isnan(a) or math.isnan(b), ""),
    _comparison("false", "", lambda a, b: False, ""),
    _comparison("true", "", lambda a, b: True, ""),
)
