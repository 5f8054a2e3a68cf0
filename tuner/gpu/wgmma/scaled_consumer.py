"""A consumer of 8-bit floats with scales of blocks: sums of 128 of K times their scales are added up outside.

Tensor cores add up one stage, of 128 of K, which has one scale for each row of A and one for each 128 columns
of C. Each thread multiplies its sums by both scales and adds them to totals in f32. So no sum inside of the
tensor cores, which keep fewer bits of 8-bit products than f32 has, is longer than 128 of K.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from tuner.core.problem import SCALED_COLUMNS
from tuner.gpu.ir.scaled_sums import Scales
from tuner.gpu.ir.warps import assembly, word
from tuner.gpu.wgmma.integers import calculate, i32_as_index, long_word, loop_i32
from tuner.gpu.wgmma.plan import MMA_ROWS, PipelinePlan
from tuner.gpu.wgmma.register_operand import left_operand, right_operand
from tuner.gpu.wgmma.warpgroups import (
    POSITION_WORDS,
    Consumer,
    RingPosition,
    completed,
    multiplied,
    structs_with,
    undefined_sums,
    word_of,
)
from tuner.mlir.bindings import Value, ir
from tuner.mlir.ir.building import create, index, value, zero

# A step, of one stage:
#
# wait until the stage is full; fence; products, the first of which sets the sums; commit; load the scales of
# the next stage; wait for the products; release the stage; add the sums times their scales to the totals
#
# Scales come straight from global memory, by the read-only path: eight steps of a row share 32 bytes, and the
# loads have a step's products to arrive. The loop's last step loads its own scales once more.

HALVES = 2  # a thread's rows of 64: one in each half of its warp's 16
HALF_ROWS = 8
GROUP_COLUMNS = 8  # a thread has two adjacent sums of each of its rows per group
GROUP_SUMS = 4
GROUP_LINES = 2  # adjacent columns of the group of which a thread has sums; of swapped operands rows of C
SCALE_BYTES = 4


@final
@dataclass(frozen=True)
class ScaledConsumer(Consumer):
    """Generator of the code of a warpgroup that multiplies the sums of each stage by scales."""

    scales: Scales
    corner: tuple[Value, Value]  # row and column in C of the block's tile, indices
    first_step: Value | None = None  # of K, where the block's part begins, an i32; None: all of K

    def create(self, first: RingPosition) -> tuple[list[Value], RingPosition]:
        plan = self.plan
        addresses = [*self._left_addresses(), *self._right_addresses()]
        scales = _load(addresses, self._step_of(word(0)))
        totals = [zero(ir.F32Type.get())] * (plan.fragments * plan.sums)
        after_scales = POSITION_WORDS + len(scales)

        def step(number: Value, carried: list[Value]) -> list[Value]:
            position = RingPosition(*carried[:POSITION_WORDS])
            structs = self._multiply(position)
            loaded = _load(addresses, self._step_of(calculate("addi", number, 1)))
            sums = [completed(struct, plan) for struct in structs]
            self.release(position.stage)
            more = _added(plan, carried[after_scales:], sums, carried[POSITION_WORDS:after_scales])
            return [*self.ring.next_position(position).values, *loaded, *more]

        stage, parity, *rest = loop_i32(0, plan.k_tiles, [*first.values, *scales, *totals], step)
        totals = rest[len(scales) :]
        return structs_with(totals, plan), RingPosition(stage, parity)

    def _multiply(self, position: RingPosition) -> list[Value]:
        """Creates the products of a stage, without a wait for them; returns a struct of sums per 64 rows."""
        plan = self.plan
        ring = self.ring
        ring.wait(ring.full(position.stage), position)
        left = left_operand(ring, position.stage, self.number)
        right = right_operand(ring, position.stage)
        create("nvvm.wgmma.fence.aligned")
        structs = []
        for fragment in range(plan.fragments):
            sums = undefined_sums(plan)
            for step in range(plan.a.steps):
                at_left = left.at(plan.a.offset_bytes(fragment * MMA_ROWS, step))
                at_right = right.at(plan.b.offset_bytes(0, step))
                sums = multiplied(plan, sums, at_left, at_right, is_set=step == 0)
            structs.append(sums)
        create("nvvm.wgmma.commit.group.sync.aligned")
        return structs

    def _step_of(self, number: Value) -> Value:
        """Creates the step of K, an i32, of stage ``number`` of the block, or the last one that K has."""
        if self.first_step is not None:
            number = calculate("addi", number, self.first_step)
        last = ir.MemRefType(self.scales.of_a.type).shape[1] - 1
        return calculate("minui", number, last)

    def _left_addresses(self) -> list[Value]:
        """Creates the addresses of the first scale of each row, of swapped operands of each 64 columns."""
        row, column = self.corner
        lines = calculate("muli", self.number, self.plan.consumer_rows)
        if self.plan.is_swapped:
            first = value("arith.addi", column.type, column, i32_as_index(lines))
            distances = range(0, self.plan.consumer_rows, MMA_ROWS)
            return [_address(self.scales.of_b, first, distance, SCALED_COLUMNS) for distance in distances]
        warp_row = calculate("muli", calculate("shrui", self.thread, 5), HALVES * HALF_ROWS)
        lane_row = calculate("shrui", calculate("andi", self.thread, 31), 2)
        lines = calculate("addi", calculate("addi", lines, warp_row), lane_row)
        first = value("arith.addi", row.type, row, i32_as_index(lines))
        return [
            _address(self.scales.of_a, first, fragment * MMA_ROWS + half * HALF_ROWS, 1)
            for fragment in range(self.plan.fragments)
            for half in range(HALVES)
        ]

    def _right_addresses(self) -> list[Value]:
        """Creates the addresses of the first scale of groups of columns, of swapped operands of each row."""
        row, column = self.corner
        if not self.plan.is_swapped:
            distances = range(0, self.plan.b.rows, _shared_columns(self.plan))
            return [_address(self.scales.of_b, column, distance, SCALED_COLUMNS) for distance in distances]
        across = calculate("muli", calculate("andi", self.thread, 3), GROUP_LINES)
        first = value("arith.addi", row.type, row, i32_as_index(across))
        return [
            _address(self.scales.of_a, first, group + number, 1)
            for group in range(0, self.plan.b.rows, GROUP_COLUMNS)
            for number in range(GROUP_LINES)
        ]


def _shared_columns(plan: PipelinePlan) -> int:
    """Returns how many columns of a tile of C, counted from its first, surely share a scale of B."""
    return math.gcd(plan.b.rows, SCALED_COLUMNS)


def _address(scales: Value, first: Value, distance: int, share: int) -> Value:
    """Creates the address, an i64, of the first scale of a row or column of C, or of the last that C has.

    ``first``: of the thread or block, an index; ``distance``: from it; ``share``: rows or columns per scale.
    """
    type_ = ir.IndexType.get()
    count, steps = ir.MemRefType(scales.type).shape
    position = value("arith.addi", type_, first, index(distance))
    number = value("arith.divui", type_, position, index(share))
    inside = value("arith.minui", type_, number, index(count - 1))
    offset_bytes = value("arith.muli", type_, inside, index(steps * SCALE_BYTES))
    start = value("memref.extract_aligned_pointer_as_index", type_, scales)
    address = value("arith.addi", type_, start, offset_bytes)
    return value("arith.index_castui", ir.IntegerType.get_signless(64), address)


def _load(addresses: Sequence[Value], step: Value) -> list[Value]:
    """Creates the loads of the scales of ``step``, an i32, of K: inline PTX stays where it is created."""
    wide = value("arith.extui", ir.IntegerType.get_signless(64), step)
    offset_bytes = value("arith.muli", wide.type, wide, long_word(SCALE_BYTES))
    loaded = []
    for address in addresses:
        at = value("arith.addi", wide.type, address, offset_bytes)
        attributes = assembly("ld.global.nc.f32 $0, [$1];", "=f,l")
        loaded.append(value("llvm.inline_asm", ir.F32Type.get(), at, **attributes))
    return loaded


def _added(
    plan: PipelinePlan, totals: Sequence[Value], structs: Sequence[Value], scales: Sequence[Value]
) -> list[Value]:
    """Creates the totals plus the sums of a stage times the product of both scales.

    Thread t has rows t / 4 and 8 more of each 16, sums 4 j and 4 j + 1, and the two after these, of group j.
    """
    type_ = ir.F32Type.get()
    factors: dict[tuple[int, int], Value] = {}
    more = []
    for total_index, total in enumerate(totals):
        fragment, position = divmod(total_index, plan.sums)
        pair = _scales_of(plan, fragment, position)
        if pair not in factors:
            factors[pair] = value("arith.mulf", type_, *map(scales.__getitem__, pair))
        number_of_sum = word_of(structs[fragment], type_, position)
        more.append(value("llvm.intr.fma", type_, factors[pair], number_of_sum, total))
    return more


def _scales_of(plan: PipelinePlan, fragment: int, position: int) -> tuple[int, int]:
    """Returns which of a thread's scales, left ones first, are those of a sum."""
    group, in_group = divmod(position, GROUP_SUMS)
    half, line = divmod(in_group, GROUP_LINES)
    if plan.is_swapped:
        return fragment, plan.fragments + group * GROUP_LINES + line
    of_columns = group * GROUP_COLUMNS // _shared_columns(plan)
    return fragment * HALVES + half, plan.fragments * HALVES + of_columns
