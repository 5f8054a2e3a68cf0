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
    """Creates the stores of a thread; ``first``: row and column (indices) of the block's tile in C."""
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
    """Creates a thread's two adjacent sums as a vector.

    ``group``: 8 columns of the fragment; ``half``: its upper (0) or lower (1) rows.
    """
    kind = ir.Type.parse(plan.sum_kinds[1])
    pair = [_element(sums, kind, 4 * group + 2 * half + each) for each in range(2)]
    return value("vector.from_elements", ir.VectorType.get([2], kind), *pair)


def _sum(index: Value, number: Value) -> Value:
    return value("arith.addi", index.type, index, as_index(number))


def _element(structure: Value, kind: Type, position: int) -> Value:
    place = ir.DenseI64ArrayAttr.get([position])
    return value("llvm.extractvalue", kind, structure, position=place)
