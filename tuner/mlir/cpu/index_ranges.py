"""The values that an index can have, as a multiple of one loop's variable plus an interval.

scf.for %i = 0 to 1024 step 64 {
  scf.for %j = 0 to 64 step 16 {
    %at = arith.addi %i, %j : index      // of %i: 1 * %i + (0 to 48); of no loop: 0 to 1008
"""

from collections.abc import Callable
from dataclasses import dataclass

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite.definitions import constant_of, op_of

LOOP = "scf.for"


@dataclass(frozen=True)
class IndexRange:
    """``factor`` times a loop's variable plus a number from ``low`` to ``high``."""

    factor: int
    low: int
    high: int

    def plus(self, other: "IndexRange") -> "IndexRange":
        """Returns the range of the sum."""
        return IndexRange(self.factor + other.factor, self.low + other.low, self.high + other.high)

    def times(self, number: int) -> "IndexRange":
        """Returns the range of the product with a number."""
        low, high = sorted((self.low * number, self.high * number))
        return IndexRange(self.factor * number, low, high)


@dataclass(frozen=True)
class LoopBounds:
    """Constant bounds of a loop."""

    first: int
    step: int
    trips: int

    @property
    def last(self) -> int:
        """Returns the last value of the loop's variable, the first one of a loop without iterations."""
        return self.first + self.step * max(self.trips - 1, 0)


def bounds_of(loop: Op) -> LoopBounds | None:
    """Returns the bounds of an ``scf.for``; None where one is no constant."""
    first, end, step = (constant_of(each) for each in list(loop.operands)[:3])
    if first is None or end is None or step is None or step < 1:
        return None
    return LoopBounds(first, step, max(-(-(end - first) // step), 0))


def range_of(index: Value, variable: Value | None) -> IndexRange | None:
    """Returns the values that an index can have; None where that is not known.

    ``variable``: that of the loop whose factor is wanted; None: the interval over all loops.
    """
    if variable is not None and index == variable:
        return IndexRange(1, 0, 0)
    known = constant_of(index)
    if known is not None:
        return IndexRange(0, known, known)
    if isinstance(index.owner, ir.Block):
        return _of_loop(index, variable)
    op = op_of(index, *RULES)
    if op is None:
        return None
    found = [range_of(each, variable) for each in op.operands]
    known_ranges = [each for each in found if each is not None]
    return RULES[op.name](*known_ranges) if len(known_ranges) == len(found) else None


def _of_loop(index: Value, variable: Value | None) -> IndexRange | None:
    """Returns the values of the variable of an ``scf.for``."""
    loop = index.owner.owner.operation
    if loop.name != LOOP or ir.BlockArgument(index).arg_number != 0:
        return None
    bounds = bounds_of(loop)
    if bounds is not None:
        return IndexRange(0, bounds.first, bounds.last)
    first, end = (range_of(each, variable) for each in list(loop.operands)[:2])
    if first is None or end is None or first.factor or end.factor:
        return None
    return IndexRange(0, first.low, max(end.high - 1, first.low))


def _product(left: IndexRange, right: IndexRange) -> IndexRange | None:
    if left.low == left.high and not left.factor:
        return right.times(left.low)
    return left.times(right.low) if right.low == right.high and not right.factor else None


def _quotient(left: IndexRange, right: IndexRange) -> IndexRange | None:
    if left.factor or right.factor or right.low != right.high or right.low < 1 or left.low < 0:
        return None
    return IndexRange(0, left.low // right.low, left.high // right.low)


def _least(left: IndexRange, right: IndexRange) -> IndexRange | None:
    if left.factor or right.factor:
        return None
    return IndexRange(0, min(left.low, right.low), min(left.high, right.high))


def _greatest(left: IndexRange, right: IndexRange) -> IndexRange | None:
    if left.factor or right.factor:
        return None
    return IndexRange(0, max(left.low, right.low), max(left.high, right.high))


RULES: dict[str, Callable[..., IndexRange | None]] = {
    "arith.addi": IndexRange.plus,
    "arith.subi": lambda left, right: left.plus(right.times(-1)),
    "arith.muli": _product,
    "arith.divui": _quotient,
    "arith.divsi": _quotient,
    "arith.floordivsi": _quotient,
    "arith.minsi": _least,
    "arith.minui": lambda left, right: _least(left, right) if min(left.low, right.low) >= 0 else None,
    "arith.maxsi": _greatest,
}
