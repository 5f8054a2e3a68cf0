"""The transform op ``tuner.count_stages``."""

from dataclasses import dataclass

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.dialect import InPlaceOp
from tuner.mlir.ir.building import is_equal, value
from tuner.mlir.ir.index_terms import split_constant
from tuner.mlir.ir.reading import op_of, walk


class CountStagesOp(InPlaceOp, name="count_stages"):
    """``tuner.count_stages``: the stage of each pipelined loop becomes a counter instead of a remainder.

    Takes a function. Its pipelined loops, made by ``nvgpu.pipeline_shared_memory_copies`` over
    ``memref.multibuffer``, carry the stage that an iteration fills, a remainder, to the iterations that read
    it. The stage becomes the previous one plus one, wrapped to zero. A remainder by a number that is not a
    power of two takes 64-bit products: 8 to 27 more instructions per iteration. Other loops stay as they are:
    with a power of two of stages, or from a first iteration that is not constant, as with split K.

        %sums:2 = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %zero, %filled = %c1) -> ... {
          %later = arith.addi %k, %c32 : index
          %stage = affine.apply affine_map<(d0) -> ((d0 floordiv 16) mod 3)>(%later)
          ...
          scf.yield %next, %stage : f32, index
      becomes
          %number = arith.index_castui %filled : index to i32
          %above = arith.addi %number, %one : i32
          %is_after = arith.cmpi eq, %above, %three : i32
          %wrapped = arith.select %is_after, %none, %above : i32
          %stage = arith.index_castui %wrapped : i32 to index

    The handle (a func.func) stays valid. Never fails.
    """

    def change(self, function: Op) -> Refusal | None:
        for loop in walk(function, "scf.for"):
            inside = loop.regions[0].blocks[0]
            *_, end = inside.operations
            carried = zip(inside.arguments[1:], loop.operands[3:], end.operands, strict=True)
            for argument, first, stage in list(carried):
                counted = _stage_of(stage, inside.arguments[0])
                if counted is not None and counted.is_counted(loop, first):
                    _count(stage, argument, counted.stages)
        return None


@dataclass(frozen=True)
class _Stage:
    """The stage ((counter + ahead) floordiv step) mod stages."""

    ahead: int
    step: int
    stages: int

    def is_counted(self, loop: Op, first: Value) -> bool:
        """Returns whether a counter, which grows by one per iteration from ``first``, replaces the stage.

        ``first``: its value before the loop. False for a power of two of stages: their remainder is cheap.
        """
        if self.stages & (self.stages - 1) == 0:
            return False  # the remainder is a cheap bit mask
        low, _, stride = map(_constant, list(loop.operands)[:3])
        if low is None or stride != self.step or (low + self.ahead) % self.step:
            return False
        return _constant(first) == ((low + self.ahead) // self.step - 1) % self.stages


def _stage_of(stage: Value, counter: Value) -> _Stage | None:
    apply = op_of(stage, "affine.apply")
    if apply is None or len(apply.operands) != 1:
        return None
    remainder = ir.AffineMapAttr(apply.attributes["map"]).value.results[0]
    ahead = _distance(apply.operands[0], counter)
    if ahead is None or not isinstance(remainder, ir.AffineModExpr):
        return None
    quotient = remainder.lhs
    if not isinstance(quotient, ir.AffineFloorDivExpr) or isinstance(quotient.lhs, ir.AffineBinaryExpr):
        return None
    return _Stage(ahead, int(quotient.rhs.value), int(remainder.rhs.value))


def _distance(later: Value, counter: Value) -> int | None:
    if later == counter:
        return 0
    sum_ = op_of(later, "arith.addi")
    if sum_ is None:
        return None
    left, right = sum_.operands
    if left == counter:
        return _constant(right)
    return None


def _constant(number: Value) -> int | None:
    base, constant = split_constant(number)
    if base is None:
        return constant
    return None


def _count(stage: Value, before: Value, stages: int) -> None:
    apply = stage.owner
    word = ir.IntegerType.get_signless(32)
    with apply.location, ir.InsertionPoint(apply):
        none, unit, end = (
            value("arith.constant", word, value=ir.IntegerAttr.get(word, number)) for number in (0, 1, stages)
        )
        above = value("arith.addi", word, value("arith.index_castui", word, before), unit)
        is_after = is_equal(above, end)
        wrapped = value("arith.select", word, is_after, none, above)
        stage.replace_all_uses_with(value("arith.index_castui", stage.type, wrapped))
    apply.erase()
