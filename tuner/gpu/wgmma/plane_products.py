"""A consumer of f32 by six products of bf16: each operand is the sum of three matrices of bf16.

x = high + middle + low, where kernels before have written the three planes of each operand. Of the nine
products of planes the three smallest are left out, which together are about 2^-24 of the product. All planes
are in shared memory, so any operand may have k not innermost, as wgmma takes elements of 2 bytes so.

Tensor cores cut their sums off, always towards zero, an error that grows with K. So sums of high x high start
anew with each stage, and are added to totals in f32 (promotion). The other five products have sums of their
own, of all of K: these are 2^-8 of the result, and so is what is cut off them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from tuner.gpu.wgmma.integers import loop_i32
from tuner.gpu.wgmma.plan import MMA_ROWS, PLANES
from tuner.gpu.wgmma.register_operand import Descriptor, left_operand, right_operand
from tuner.gpu.wgmma.warpgroups import (
    POSITION_WORDS,
    Consumer,
    RingPosition,
    added,
    completed,
    multiplied,
    structs_with,
    undefined_sums,
    words_of,
)
from tuner.mlir.bindings import Value
from tuner.mlir.ir.building import create

# A step, of one stage:
#
# wait until the stage is full; fence; large products, the first of which sets their sums; commit; small
# products; commit; wait for the large ones, and so for all of the stage before; release that; add the sums of
# the large products to the totals
#
# Additions overlap the small products, five sixths of a stage, of the same warpgroup.

HIGH, MIDDLE, LOW = range(len(PLANES))
LARGE = ((HIGH, HIGH),)  # planes of the left and of the right operand
SMALL = ((LOW, HIGH), (HIGH, LOW), (MIDDLE, MIDDLE), (MIDDLE, HIGH), (HIGH, MIDDLE))  # the smallest first


@dataclass(frozen=True)
class _Stage:
    """The operands of a stage that is full: descriptors of the first plane of each, others follow it."""

    left: Descriptor
    right: Descriptor


@final
class PlaneConsumer(Consumer):
    """Generator of the code of a warpgroup that multiplies three planes of bf16 of both operands, for f32."""

    def create(self, first: RingPosition) -> tuple[list[Value], RingPosition]:
        plan = self.plan
        ring = self.ring
        nothing = [undefined_sums(plan) for _ in range(plan.fragments)]
        totals, small = self._multiply(first, nothing, is_first=True)
        after_small = POSITION_WORDS + 1 + plan.fragments

        def step(_number: Value, carried: list[Value]) -> list[Value]:
            position = RingPosition(*carried[:POSITION_WORDS])
            before, *so_far = carried[POSITION_WORDS:after_small]
            large, small = self._multiply(position, so_far, is_first=False)
            self.release(before)
            more = added(carried[after_small:], large)
            return [*ring.next_position(position).values, position.stage, *small, *more]

        carried = [*ring.next_position(first).values, first.stage, *small, *totals]
        stage, parity, last, *rest = loop_i32(1, plan.k_tiles, carried, step)
        small_sums = words_of([completed(struct, plan) for struct in rest[: plan.fragments]], plan)
        sums = added(rest[plan.fragments :], small_sums)
        if plan.tiles > 1:
            self.release(last)
        return structs_with(sums, plan), RingPosition(stage, parity)

    def _multiply(
        self, position: RingPosition, small: Sequence[Value], *, is_first: bool
    ) -> tuple[list[Value], list[Value]]:
        """Creates the products of a stage, and the wait for the large ones.

        Returns the sums of these, one f32 per register, and of the small ones, which are not complete, an
        LLVM struct per 64 rows.
        """
        plan = self.plan
        ring = self.ring
        ring.wait(ring.full(position.stage), position)
        left = left_operand(ring, position.stage, self.number)
        stage = _Stage(left, right_operand(ring, position.stage))
        create("nvvm.wgmma.fence.aligned")
        nothing = [undefined_sums(plan) for _ in range(plan.fragments)]
        large = self._group(stage, LARGE, nothing, is_set=True)
        more = self._group(stage, SMALL, small, is_set=is_first)
        return words_of([completed(struct, plan, newest=1) for struct in large], plan), more

    def _group(
        self,
        stage: _Stage,
        pairs: Sequence[tuple[int, int]],
        sums: Sequence[Value],
        *,
        is_set: bool,
    ) -> list[Value]:
        """Creates a group of products of pairs of planes; returns the sums, an LLVM struct per 64 rows."""
        plan = self.plan
        new = []
        for fragment, so_far in enumerate(sums):
            for step in range(plan.a.steps):
                at_left = plan.a.offset_bytes(fragment * MMA_ROWS, step)
                at_right = plan.b.offset_bytes(0, step)
                for plane_a, plane_b in pairs:
                    so_far = multiplied(
                        plan,
                        so_far,
                        stage.left.at(plane_a * plan.a.bytes + at_left),
                        stage.right.at(plane_b * plan.b.bytes + at_right),
                        is_set=is_set and step == 0 and (plane_a, plane_b) == pairs[0],
                    )
            new.append(so_far)
        create("nvvm.wgmma.commit.group.sync.aligned")
        return new
