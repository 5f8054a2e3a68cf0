"""Builder of ``linalg.generic`` on tensors at the current insertion point."""

from collections.abc import Callable, Sequence

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite.building import create

Body = Callable[..., Value]  # creates the scalar ops from one element of each operand; returns the result
PARALLEL, REDUCTION = "parallel", "reduction"


def dimensions(count: int) -> list[ir.AffineExpr]:
    """Returns the affine expressions d0, d1, ... of ``count`` dimensions."""
    return [ir.AffineDimExpr.get(number) for number in range(count)]


def generic(
    inputs: Sequence[Value],
    start: Value,
    maps: Sequence[Sequence[ir.AffineExpr]],
    iterators: Sequence[str],
    body: Body,
) -> Op:
    """Creates a ``linalg.generic`` on tensors with one result; returns the op.

    ``start``: the tensor whose elements are the output's before the first iteration. ``maps``: the indices
    of each input and of the output, in dimensions d0, d1, ... of ``iterators`` (PARALLEL or REDUCTION).
    ``body``: creates the scalar ops, given one element of each input and of the output.
    """
    operands = [*inputs, start]
    iterator_types = [ir.Attribute.parse(f"#linalg.iterator_type<{each}>") for each in iterators]
    affine_maps = [ir.AffineMapAttr.get(ir.AffineMap.get(len(iterators), 0, list(each))) for each in maps]
    op = ir.Operation.create(
        "linalg.generic",
        results=[start.type],
        operands=operands,
        attributes={
            "indexing_maps": ir.ArrayAttr.get(affine_maps),
            "iterator_types": ir.ArrayAttr.get(iterator_types),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), 1]),
        },
        regions=1,
    )
    block = op.regions[0].blocks.append(*(each.type.element_type for each in operands))
    with ir.InsertionPoint(block):
        create("linalg.yield", [], [body(*block.arguments)])
    return op
