"""Which products of a program are independent of each other, so that a device can compute them at a time."""

from collections.abc import Collection

from tuner.mlir.bindings import Op
from tuner.programs.op_groups.op_names import CONTRACTIONS, MATMULS, defining, read_by


def joins_independent_products(producer: Op, ops: Collection[Op]) -> bool:
    """Returns whether operations read two products, that of ``producer`` and one independent of it.

    Computed with the operations, the product of ``producer`` would wait for the other one. Two matmuls of one
    A do not count: they read the same rows.

        %p = linalg.matmul ins(%a, %b), %q = linalg.matmul ins(%c, %d), %s = add(%p, %q)

    Args:
        producer: a contraction or a convolution.
        ops: operations that read its result, directly or not.
    """
    needed = _needed(ops, {producer})
    before = _needed([producer], set())
    return any(
        op.name in CONTRACTIONS
        and op != producer
        and op not in before
        and producer not in _needed([op], set())
        and not _share_operand(op, producer)
        for op in needed
    )


def _needed(ops: Collection[Op], left_out: Collection[Op]) -> set[Op]:
    """Returns operations and all that they read the results of, directly or not, but for ``left_out``."""
    found: set[Op] = set()
    waiting = list(ops)
    while waiting:
        op = waiting.pop()
        if op in found or op in left_out:
            continue
        found.add(op)
        waiting += [producer for value in read_by(op) if (producer := defining(value)) is not None]
    return found


def _share_operand(one: Op, other: Op) -> bool:
    return one.name in MATMULS and other.name in MATMULS and one.operands[0] == other.operands[0]
