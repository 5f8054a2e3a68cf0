"""The end of a consumer: stores its sums to C in adjacent pairs, for ``tuner.finish_stores`` to complete.

Thread t of a warpgroup holds, in words 4 j + 2 h + i of a fragment, row 16 (t / 32) + t % 32 / 4 + 8 h and
column 8 j + 2 (t % 4) + i. PTX ISA, "Register Fragments for wgmma.mma_async".
"""

from tuner.mlir.bindings import Type, Value, ir
from tuner.mlir.ops.wgmma.integers import as_index, calculate
from tuner.mlir.ops.wgmma.operand_tile import MMA_ROWS
from tuner.mlir.ops.wgmma.plan import PipelinePlan
from tuner.mlir.rewrite.building import affine, create, plus, symbol, value


def create_stores(
    plan: PipelinePlan,
    sums: list[Value],
    c: Value,
    first: tuple[Value, Value],
    consumer: Value,
    thread: Value,
) -> None:
    """Creates one thread's stores of its sums to C, each a ``vector.store`` of two adjacent elements.

    Args:
        plan: the sizes of the pipeline.
        sums: the thread's accumulators, one LLVM struct per 64 rows of C.
        c: the memref of C.
        first: row and column (index values) of the block's tile in C.
        consumer: the number of the consumer warpgroup, an i32 value.
        thread: the thread's number in its warpgroup, an i32 value.
    """
    warp, lane = calculate("shrui", thread, 5), calculate("andi", thread, 31)
    above = calculate("addi", calculate("muli", consumer, plan.consumer_rows), calculate("muli", warp, 16))
    row = _sum(first[0], calculate("addi", above, calculate("shrui", lane, 2)))
    column = _sum(first[1], calculate("muli", calculate("andi", lane, 3), 2))
    for fragment, structure in enumerate(sums):
        for half in range(2):
            at = plus(row, fragment * MMA_ROWS + 8 * half)
            for group in range(plan.b.rows // 8):
                vector = pair_of(plan, structure, group, half)
                place = affine(symbol(0) + 8 * group, column)  # a form that tuner.finish_stores recognizes
                create("vector.store", [], [vector, c, at, place])


def pair_of(plan: PipelinePlan, sums: Value, group: int, half: int) -> Value:
    """Creates the vector of two adjacent sums that a thread holds in a fragment of 64 rows of C.

    ``sums``: the fragment's LLVM struct; ``group``: the number of the 8 columns that the pair is in;
    ``half``: 0 for the upper row that the thread holds, 1 for the row 8 further down.
    """
    kind = ir.Type.parse(plan.sum_kinds[1])
    pair = [_element(sums, kind, 4 * group + 2 * half + each) for each in range(2)]
    return value("vector.from_elements", ir.VectorType.get([2], kind), *pair)


def _sum(index: Value, number: Value) -> Value:
    return value("arith.addi", index.type, index, as_index(number))


def _element(structure: Value, kind: Type, position: int) -> Value:
    place = ir.DenseI64ArrayAttr.get([position])
    return value("llvm.extractvalue", kind, structure, position=place)
