"""Joins the groups of an attention: scores of queries and keys, their softmax, the product with the values.

Three groups write and read all scores three times, from the cache that holds them. One group computes them
for some rows of queries at a time, which stay in the second level of cache:

    %s = linalg.batch_matmul ins(%q, %k)    // with scale and mask
    %p = ...                                // rows: the softmax of %s
    %r = linalg.batch_matmul ins(%p, %v)    // with its epilogue

Joined are those of which decision 79 has measured that one group is faster.
"""

from collections.abc import Collection, Mapping, Sequence
from math import prod

from tuner.core.grouped_program import ATTENTION, CONTRACTION, ROWS
from tuner.mlir.bindings import Op, Value
from tuner.programs.op_groups.forming import Members
from tuner.programs.op_groups.op_names import MATMULS, defining, is_tensor, read_by, users

LEAST_KEYS = 128  # in a row of scores
LEAST_SCORES = 2**19  # in all rows: two megabytes of f32
ELEMENTS = ("f32", "f64")  # of scores, of what is multiplied and of the result


def join_attention(groups: Sequence[Members], ops: Collection[Op]) -> list[Members]:
    """Returns the groups in their order, the three of each attention as one in the place of the last one.

    Args:
        groups: the groups of a program, each contraction with its epilogue.
        ops: all operations of the program in order.
    """
    order = {op: number for number, op in enumerate(ops)}
    by_root = {members.root: members for members in groups}
    joined: dict[Op, Members] = {}
    parts: set[Op] = set()
    for last in groups:
        found = _before(last, by_root)
        if found is not None:
            parts |= {each.root for each in found}
            members = [op for each in (*found, last) for op in each.ops]
            joined[last.root] = Members(ATTENTION, tuple(sorted(members, key=lambda op: order[op])))
    return [joined.get(members.root, members) for members in groups if members.root not in parts]


def _before(last: Members, by_root: Mapping[Op, Members]) -> tuple[Members, Members] | None:
    """Returns the scores and the rows that only a product reads as its A; None where there are none."""
    product = _product(last)
    if product is None:
        return None
    weights = product.operands[0]
    rows = _group_of(weights, by_root)
    if rows is None or rows.kind != ROWS or users(weights) != [product] or not _is_worth(weights):
        return None
    for value in dict.fromkeys(value for op in rows.ops for value in read_by(op)):
        scores = _group_of(value, by_root)
        if scores is not None and _is_scores(value, scores, rows, weights):
            return scores, rows
    return None


def _is_scores(value: Value, scores: Members, rows: Members, weights: Value) -> bool:
    """Returns whether a value is a product of the shape of the weights that only the rows read."""
    is_read_by_rows = all(user in rows.ops for user in users(value))
    return value.type == weights.type and is_read_by_rows and _product(scores) is not None


def _product(members: Members) -> Op | None:
    """Returns the only matmul of a contraction of floats that the strategy takes."""
    products = [op for op in members.ops if op.name in MATMULS]
    if members.kind != CONTRACTION or len(products) != 1 or len(members.root.results) != 1:
        return None
    (product,) = products
    elements = {str(each.type.element_type) for each in (*product.operands, *members.root.results)}
    return product if len(elements) == 1 and elements <= set(ELEMENTS) else None


def _group_of(value: Value, by_root: Mapping[Op, Members]) -> Members | None:
    op = defining(value)
    return None if op is None or not is_tensor(value) else by_root.get(op)


def _is_worth(weights: Value) -> bool:
    """Returns whether one group is faster than three, by the number of scores."""
    shape = weights.type.shape
    return bool(shape[-1] >= LEAST_KEYS and prod(shape) >= LEAST_SCORES)
