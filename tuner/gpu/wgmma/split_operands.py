"""A consumer of f32 by three products of tf32: operands are split, sums are added up outside.

A number of f32 is the sum of high and low bits, both tf32, with a relative error of 2^-22. A product of x and
y is low x.high y + high x.low y + high x.high y, and the tensor cores add all three up. What is left out, low
x.low y, is 2^-22 of the product. The left operand is split in registers. The right one is in shared memory
twice: as it is, since tensor cores cut off bits beyond tf32, and as a matrix of the bits that they cut off.

Tensor cores cut their sums off as well, always towards zero, by far the largest error for a long K. So sums
start anew with each stage, and are added to totals in f32, rounded to nearest: "promotion" (Ootomo and
Yokota, arXiv 2203.03341).
"""

from collections.abc import Sequence
from typing import final

from tuner.gpu.ir.warps import assembly, i32
from tuner.gpu.wgmma.integers import loop_i32
from tuner.gpu.wgmma.plan import FRAGMENT_WORDS, MMA_ROWS, PipelinePlan
from tuner.gpu.wgmma.register_operand import (
    create_product,
    fragment_addresses,
    read_fragments,
    release_by_warps,
    right_operand,
)
from tuner.gpu.wgmma.warpgroups import (
    POSITION_WORDS,
    Consumer,
    RingPosition,
    added,
    completed,
    structs_with,
    words_of,
)
from tuner.mlir.bindings import Value, ir
from tuner.mlir.ir.building import create, value

# A step, of one stage:
#
# split the fragments; fence; products, the first of which sets the sums; commit; wait until the next stage is
# full; read its fragments; wait for the products; release the stage; add the sums to the totals
#
# The high bits of the left operand are rounded to nearest, so its low bits have either sign, and so has what
# is left out. If they were cut, all of it would have one sign in sums of positive numbers.
# On sm_90 that is one instruction, as is the difference; an addition to the bits and a mask are two.


@final
class SplitConsumer(Consumer):
    """Generator of the code of a warpgroup that multiplies f32 by products of high and low tf32 bits."""

    def create(self, first: RingPosition) -> tuple[list[Value], RingPosition]:
        ring = self.ring
        plan = self.plan
        own = fragment_addresses(ring, self.number, self.thread)
        words = read_fragments(ring, first, own)

        def step(_number: Value, carried: list[Value]) -> list[Value]:
            position, words, totals = self._unpacked(carried)
            following, read, sums = self._next(position, words, own)
            return [*following.values, *read, *added(totals, sums)]

        if plan.k_tiles > 1:
            position, words, totals = self._next(first, words, own)
            carried = loop_i32(2, plan.k_tiles, [*position.values, *words, *totals], step)
            position, words, totals = self._unpacked(carried)
            totals = tuple(added(totals, self._multiplied(position, words)))
        else:
            position = first
            totals = self._multiplied(first, words)
        return structs_with(totals, plan), ring.next_position(position)

    def _unpacked(
        self, carried: Sequence[Value]
    ) -> tuple[RingPosition, tuple[Value, ...], tuple[Value, ...]]:
        plan = self.plan
        last = POSITION_WORDS + plan.fragments * plan.a.steps * FRAGMENT_WORDS
        position = RingPosition(*carried[:POSITION_WORDS])
        return position, (*carried[POSITION_WORDS:last],), (*carried[last:],)

    def _next(
        self, position: RingPosition, words: Sequence[Value], own: list[Value]
    ) -> tuple[RingPosition, tuple[Value, ...], tuple[Value, ...]]:
        """Creates a stage's step; returns position and fragments of the next stage, and this one's sums.

        ``words``: fragments of this stage; ``own``: addresses of the lane's fragments. Releases this stage.
        """
        structs = self._issue(position, words)
        following = self.ring.next_position(position)
        read = read_fragments(self.ring, following, own)
        sums = _completed(structs, self.plan)
        release_by_warps(self.ring, self.thread, position.stage)
        return following, read, sums

    def _multiplied(self, position: RingPosition, words: Sequence[Value]) -> tuple[Value, ...]:
        structs = self._issue(position, words)
        sums = _completed(structs, self.plan)
        if self.plan.tiles > 1:
            release_by_warps(self.ring, self.thread, position.stage)
        return sums

    def _issue(self, position: RingPosition, words: Sequence[Value]) -> list[Value]:
        """Creates the products of a stage, without a wait; returns the sums, one LLVM struct per 64 rows."""
        plan = self.plan
        right = right_operand(self.ring, position.stage)
        parts = list(map(_split, words))
        create("nvvm.wgmma.fence.aligned")
        structs = []
        for fragment in range(plan.consumer_rows // MMA_ROWS):
            sums = None
            for step in range(plan.a.steps):
                at = (fragment * plan.a.steps + step) * FRAGMENT_WORDS
                high, low = zip(*parts[at : at + FRAGMENT_WORDS], strict=True)
                offset = plan.b.offset_bytes(0, step)
                right_high = right.at(offset)
                right_low = right.at(plan.b.bytes + offset)  # in the next tile of the stage
                for left, operand in ((low, right_high), (high, right_low), (high, right_high)):
                    sums = create_product(plan, sums, left, operand)
            structs.append(sums)
        create("nvvm.wgmma.commit.group.sync.aligned")
        return structs


def _split(word: Value) -> tuple[Value, Value]:
    """Creates the high bits of an f32, rounded to nearest, and the rest; takes and returns i32 values."""
    single = ir.F32Type.get()
    number = value("arith.bitcast", single, word)
    high = value("llvm.inline_asm", i32(), number, **assembly("cvt.rn.tf32.f32 $0, $1;", "=r,f"))
    rest = value("arith.subf", single, number, value("arith.bitcast", single, high))
    return high, value("arith.bitcast", i32(), rest)


def _completed(structs: Sequence[Value], plan: PipelinePlan) -> tuple[Value, ...]:
    """Creates the waits for all products; returns the sums, one f32 per register."""
    return (*words_of([completed(struct, plan) for struct in structs], plan),)
