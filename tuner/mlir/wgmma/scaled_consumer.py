"""A consumer of 8-bit floats with scales of blocks: sums of 128 of K times their scales are added up outside.

Tensor cores add up one stage, of 128 of K, which has one scale for each row of A and one for each 128 columns
of C. Each thread multiplies its sums by both scales and adds them to totals in f32. So no sum inside of the
tensor cores, which keep fewer bits of 8-bit products than f32 has, is longer than 128 of K.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tuner.core.problem import SCALED_COLUMNS
from tuner.mlir.bindings import Value, ir
from tuner.mlir.ir.building import index, value
from tuner.mlir.ir.scaled_sums import Scales
from tuner.mlir.wgmma.integers import as_index, calculate, long_word, loop_i32, word
from tuner.mlir.wgmma.plan import MMA_ROWS, PipelinePlan
from tuner.mlir.wgmma.warpgroups import (
    POSITION_WORDS,
    Consumer,
    RingPosition,
    assembly,
    completed,
    struct_with,
    word_of,
)

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
SCALE_BYTES = 4


def columns_of_scale(plan: PipelinePlan) -> int:
    """Returns how many columns of a tile of C, counted from its first, surely share a scale of B."""
    return math.gcd(plan.b.rows, SCALED_COLUMNS)


@dataclass(frozen=True)
class ScaledConsumer:
    """A generator of the code of one consumer: a warpgroup that applies scales to the sums of each stage."""

    consumer: Consumer
    scales: Scales
    corner: tuple[Value, Value]  # row and column in C of the block's tile, indices

    @property
    def plan(self) -> PipelinePlan:
        return self.consumer.ring.plan

    def create(self, first: RingPosition) -> tuple[list[Value], RingPosition]:
        """Creates the loop over tiles of k from position ``first`` on; returns (sums, position after it).

        ``sums``: one LLVM struct of a thread's totals per 64 rows of C.
        """
        plan = self.plan
        addresses = self._addresses()
        scales = _load(addresses, word(0))
        zero = value("arith.constant", ir.F32Type.get(), value=ir.FloatAttr.get(ir.F32Type.get(), 0.0))
        totals = [zero] * (plan.fragments * plan.sums)
        after_scales = POSITION_WORDS + len(scales)

        def step(number: Value, carried: list[Value]) -> list[Value]:
            position = RingPosition(*carried[:POSITION_WORDS])
            structs = self.consumer.multiply_alone(position)
            following = calculate("minui", calculate("addi", number, 1), plan.k_tiles - 1)
            loaded = _load(addresses, following)
            sums = [completed(struct, plan) for struct in structs]
            self.consumer.release(position.stage)
            factors = self._factors(carried[POSITION_WORDS:after_scales])
            more = _added(plan, carried[after_scales:], sums, factors)
            return [*self.consumer.ring.next_position(position).values, *loaded, *more]

        stage, parity, *rest = loop_i32(0, plan.k_tiles, [*first.values, *scales, *totals], step)
        totals = rest[len(scales) :]
        structs = [struct_with(totals[at : at + plan.sums]) for at in range(0, len(totals), plan.sums)]
        return structs, RingPosition(stage, parity)

    def _addresses(self) -> list[Value]:
        """Creates the addresses, i64, of the first scales: of each of the thread's rows, then of columns."""
        row, column = self.corner
        warp_row = calculate("muli", calculate("shrui", self.consumer.thread, 5), HALVES * HALF_ROWS)
        lane_row = calculate("shrui", calculate("andi", self.consumer.thread, 31), 2)
        above = calculate("muli", self.consumer.number, self.plan.consumer_rows)
        above = calculate("addi", calculate("addi", above, warp_row), lane_row)
        first_row = value("arith.addi", row.type, row, as_index(above))
        rows = [
            _row_address(self.scales.of_a, first_row, fragment * MMA_ROWS + half * HALF_ROWS, 1)
            for fragment in range(self.plan.fragments)
            for half in range(HALVES)
        ]
        columns = [
            _row_address(self.scales.of_b, column, distance, SCALED_COLUMNS)
            for distance in range(0, self.plan.b.rows, columns_of_scale(self.plan))
        ]
        return [*rows, *columns]

    def _factors(self, scales: Sequence[Value]) -> list[list[Value]]:
        """Creates the products of the scales of a thread's rows and of columns: by row, then by column."""
        count = self.plan.fragments * HALVES
        type_ = ir.F32Type.get()
        return [
            [value("arith.mulf", type_, of_row, of_columns) for of_columns in scales[count:]]
            for of_row in scales[:count]
        ]


def _row_address(scales: Value, first: Value, distance: int, share: int) -> Value:
    """Creates the address of the first scale of a row or column of C, or of the last one that C has.

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
    plan: PipelinePlan, totals: Sequence[Value], structs: Sequence[Value], factors: list[list[Value]]
) -> list[Value]:
    """Creates the totals plus the sums of a stage times their factors.

    Thread t has rows t / 4 and 8 more of each 16, sums 4 j and 4 j + 1, and the two after these, of group j.
    """
    type_ = ir.F32Type.get()
    shared_groups = columns_of_scale(plan) // GROUP_COLUMNS
    more = []
    for number, total in enumerate(totals):
        fragment, position = divmod(number, plan.sums)
        group, in_group = divmod(position, GROUP_SUMS)
        half = in_group // HALVES
        factor = factors[fragment * HALVES + half][group // shared_groups]
        number_of_sum = word_of(structs[fragment], type_, position)
        more.append(value("llvm.intr.fma", type_, factor, number_of_sum, total))
    return more
