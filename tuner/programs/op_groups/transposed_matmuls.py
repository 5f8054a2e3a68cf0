"""Gives each matmul its operands as k x n matrices lie: a transposed operand is transposed by an operation.

A weight is then transposed once, when the program is loaded:

    %r = linalg.matmul indexing_maps = [(m, k), (n, k), (m, n)] ins(%a, %b)
  becomes
    %t = linalg.generic ins(%b)  // transposed
    %r = linalg.matmul ins(%a, %t)
"""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite.building import create
from tuner.programs.op_groups.generics import empty, maps_attribute, parallel_loops, selecting
from tuner.programs.op_groups.op_names import MATMULS, dimensions, maps_of
from tuner.programs.op_groups.payload import TensorPayload

Loops = tuple[int, ...]
PLAIN: dict[str, tuple[Loops, Loops, Loops]] = {  # loops that A, B and C are indexed by
    "linalg.matmul": ((0, 2), (2, 1), (0, 1)),
    "linalg.batch_matmul": ((0, 1, 3), (0, 3, 2), (0, 1, 2)),
}


def transpose_operands(payload: TensorPayload) -> None:
    """Replaces matmuls of transposed operands by transposes and plain matmuls, in place."""
    for op in payload.ops:
        if op.name in MATMULS and not is_plain(op) and is_transposed(op):
            _transpose(op)


def is_plain(op: Op) -> bool:
    """Returns whether a matmul's operands are m x k, k x n and m x n, each with the batch before."""
    return [dimensions(each) for each in maps_of(op)] == list(PLAIN[op.name])


def is_transposed(op: Op) -> bool:
    """Returns whether the operands of a matmul that is not plain are transposed, and not broadcast."""
    found = [dimensions(each) for each in maps_of(op)]
    plain = PLAIN[op.name]
    pairs = zip(found[:2], plain[:2], strict=True)
    return found[2] == plain[2] and all(one is not None and sorted(one) == sorted(two) for one, two in pairs)


def _transpose(op: Op) -> None:
    plain = PLAIN[op.name]
    with ir.InsertionPoint(op), op.location:
        for number, (mapping, wanted) in enumerate(zip(maps_of(op)[:2], plain, strict=False)):
            loops = dimensions(mapping)
            assert loops is not None
            if loops != wanted:
                order = [loops.index(each) for each in wanted]
                op.operands[number] = transposed(op.operands[number], order)
    count = maps_of(op)[0].n_dims
    op.attributes["indexing_maps"] = maps_attribute([selecting(count, loops) for loops in plain])


def transposed(tensor: Value, order: list[int]) -> Value:
    """Creates the transpose whose dimension i is dimension ``order[i]`` of a tensor."""
    kind, rank = tensor.type, len(order)
    element = kind.element_type
    target = empty([kind.shape[each] for each in order], element)
    op = ir.Operation.create(
        "linalg.generic",
        results=[target.type],
        operands=[tensor, target],
        attributes={
            "indexing_maps": maps_attribute(
                [selecting(rank, [order.index(each) for each in range(rank)]), selecting(rank, range(rank))]
            ),
            "iterator_types": parallel_loops(rank),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1]),
        },
        regions=1,
    )
    block = op.regions[0].blocks.append(element, element)
    with ir.InsertionPoint(block):
        create("linalg.yield", [], [block.arguments[0]])
    return op.results[0]
