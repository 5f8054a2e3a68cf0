"""Which values an index of scf loops and arith ops can have: an interval, relative to a loop's variable."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ir.reading import constant_of, op_of

LOOP = "scf.for"


@dataclass(frozen=True)
class IndexRange:
    """The values that an index can have: ``factor`` times a loop's variable plus a number from low to high.

        scf.for %i = 0 to 1024 step 64 {
          scf.for %j = 0 to 64 step 16 {
            %at = arith.addi %i, %j : index

    has, relative to the loop of %i, factor 1 and 0 to 48; relative to no loop, 0 to 1008.
    """

    factor: int
    low: int
    high: int

    def plus(self, other: "IndexRange") -> "IndexRange":
        return IndexRange(self.factor + other.factor, self.low + other.low, self.high + other.high)

    def times(self, number: int) -> "IndexRange":
        low, high = sorted((self.low * number, self.high * number))
        return IndexRange(self.factor * number, low, high)


@dataclass(frozen=True)
class LoopBounds:
    """Constant bounds of an ``scf.for``: its first index, the index's step, and the number of iterations."""

    first: int
    step: int
    trips: int

    @property
    def last(self) -> int:
        """Returns the index of the last iteration; ``first`` for a loop without iterations."""
        return self.first + self.step * max(self.trips - 1, 0)


def bounds_of(loop: Op) -> LoopBounds | None:
    """Returns the bounds of an ``scf.for``; None if one of them is not constant or the step is below 1."""
    first, end, step = map(constant_of, list(loop.operands)[:3])
    if first is None or end is None or step is None or step < 1:
        return None
    return LoopBounds(first, step, max(-(-(end - first) // step), 0))


def range_of(index: Value, variable: Value | None) -> IndexRange | None:
    """Returns the values that ``index`` can have; None if the analysis does not find them.

    ``variable``: the index of a loop, which the result is relative to (``IndexRange.factor``); None: the
    interval over all iterations of all loops.
    """
    if variable is not None and index == variable:
        return IndexRange(1, 0, 0)
    known = constant_of(index)
    if known is not None:
        return IndexRange(0, known, known)
    if isinstance(index.owner, ir.Block):
        loop = index.owner.owner.operation
        if loop.name != LOOP or ir.BlockArgument(index).arg_number != 0:
            return None
        bounds = bounds_of(loop)
        if bounds is not None:
            return IndexRange(0, bounds.first, bounds.last)
        first, end = (range_of(operand, variable) for operand in list(loop.operands)[:2])
        if first is None or end is None or first.factor or end.factor:
            return None
        return IndexRange(0, first.low, max(end.high - 1, first.low))
    op = op_of(index, *RULES)
    if op is None:
        return None
    ranges = [range_of(operand, variable) for operand in op.operands]
    known_ranges = [index_range for index_range in ranges if index_range is not None]
    if len(known_ranges) == len(ranges):
        return RULES[op.name](*known_ranges)
    return None


def _product(left: IndexRange, right: IndexRange) -> IndexRange | None:
    if left.low == left.high and not left.factor:
        return right.times(left.low)
    if right.low == right.high and not right.factor:
        return left.times(right.low)
    return None


def _quotient(left: IndexRange, right: IndexRange) -> IndexRange | None:
    if left.factor or right.factor or right.low != right.high or right.low < 1 or left.low < 0:
        return None
    return IndexRange(0, left.low // right.low, left.high // right.low)


def _extreme(choose: Callable[[int, int], int], left: IndexRange, right: IndexRange) -> IndexRange | None:
    if left.factor or right.factor:
        return None
    return IndexRange(0, choose(left.low, right.low), choose(left.high, right.high))


RULES: dict[str, Callable[..., IndexRange | None]] = {
    "arith.addi": IndexRange.plus,
    "arith.subi": lambda left, right: left.plus(right.times(-1)),
    "arith.muli": _product,
    "arith.divui": _quotient,
    "arith.divsi": _quotient,
    "arith.floordivsi": _quotient,
    "arith.minsi": partial(_extreme, min),
    "arith.minui": lambda left, right: _extreme(min, left, right) if min(left.low, right.low) >= 0 else None,
    "arith.maxsi": partial(_extreme, max),
}
