"""The stores of a product of swapped operands, C^T = B^T A^T: columns of C are rows of the fragments.

A lane has two sums of one column of C, in adjacent rows; the lane 4 further has those of the next column. The
two lanes exchange one sum each by a shuffle, so that each has two neighbours in a row of C and stores both at
once. Four such lanes store 8 adjacent columns, of f32 a whole sector of 32 bytes:

    lane 4 g      (g even)   row r: column g  |  row r + 1: column g           row r:     columns g, g + 1
    lane 4 g + 4             row r: column g + 1  |  row r + 1: column g + 1   row r + 1: columns g, g + 1
"""

from dataclasses import dataclass

from tuner.core.gpu import WARP_THREADS
from tuner.gpu.ir.warps import shuffled, word
from tuner.gpu.wgmma.integers import calculate, compare, i32_as_index
from tuner.gpu.wgmma.plan import MMA_ROWS, PipelinePlan
from tuner.gpu.wgmma.warpgroups import word_of
from tuner.mlir.bindings import Value, ir
from tuner.mlir.ir.building import create, plus, value

FRAGMENT_COLUMNS = 8  # rows of C per group of four words
HALF_ROWS = 8  # columns of C from the first half of a fragment's words to the second
WARP_ROWS = 16  # columns of C per warp
NEXT_COLUMN = 4  # lanes to the lane with the next column of C


@dataclass(frozen=True)
class ColumnLane:
    """A lane's position by values: whether its column of C is odd, and its first row and column of C."""

    is_odd: Value  # i1
    row: Value  # index; of the pair that the lane stores in the first group
    column: Value  # index; of the first element of that pair


def create_transposed_stores(
    plan: PipelinePlan,
    sums: list[Value],
    c: Value,
    corner: tuple[Value, Value],
    columns_before: Value,
    thread: Value,
) -> None:
    """Creates one thread's stores of its sums to C, each a ``vector.store`` of two neighbours in a row.

    ``sums``: one LLVM struct per 64 columns of C; ``corner``: row and column of the block's tile of C;
    ``columns_before`` and ``thread``, i32 values: columns of the tile before those of the warpgroup, and the
    thread's number in the warpgroup. All lanes of a warp must run the code.
    """
    lane = _lane_of(corner, columns_before, thread)
    type_ = ir.Type.parse(plan.accumulator_kinds[1])
    for fragment, structure in enumerate(sums):
        for group in range(plan.b.rows // FRAGMENT_COLUMNS):
            for half in range(2):
                first = 4 * group + 2 * half
                upper = word_of(structure, type_, first)
                lower = word_of(structure, type_, first + 1)
                row = plus(lane.row, group * FRAGMENT_COLUMNS)
                column = plus(lane.column, fragment * MMA_ROWS + half * HALF_ROWS)
                create("vector.store", [], [_exchanged(upper, lower, lane.is_odd), c, row, column])


def _lane_of(corner: tuple[Value, Value], columns_before: Value, thread: Value) -> ColumnLane:
    lane = calculate("andi", thread, WARP_THREADS - 1)
    number = calculate("shrui", lane, 2)
    odd = calculate("andi", number, 1)
    row = calculate("addi", calculate("muli", calculate("andi", lane, 3), 2), odd)
    of_warp = calculate("muli", calculate("shrui", thread, 5), WARP_ROWS)
    even = calculate("subi", number, odd)
    column = calculate("addi", calculate("addi", columns_before, of_warp), even)
    return ColumnLane(compare("ne", odd, 0), _after(corner[0], row), _after(corner[1], column))


def _after(start: Value, number: Value) -> Value:
    return value("arith.addi", start.type, start, i32_as_index(number))


def _exchanged(upper: Value, lower: Value, is_odd: Value) -> Value:
    """Creates the exchange with the lane of the other column; returns the vector of two neighbours."""
    sent = value("arith.select", upper.type, is_odd, upper, lower)
    received = shuffled("xor", sent, word(NEXT_COLUMN))
    first = value("arith.select", upper.type, is_odd, received, upper)
    second = value("arith.select", upper.type, is_odd, lower, received)
    return value("vector.from_elements", ir.VectorType.get([2], upper.type), first, second)
