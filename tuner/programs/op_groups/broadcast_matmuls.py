"""Makes one matmul of a batch of matmuls that all have the same B, such as a linear layer's weights.

  %b = linalg.generic ... ins(%w : tensor<64x96xf32>) ... -> tensor<2x64x96xf32>  // a broadcast
  %r = linalg.batch_matmul ins(%a, %b : tensor<2x32x64xf32>, tensor<2x64x96xf32>) ... -> tensor<2x32x96xf32>
becomes
  %c = tensor.collapse_shape %a [[0, 1], [2]] : tensor<2x32x64xf32> into tensor<64x64xf32>
  %m = linalg.matmul ins(%c, %w : tensor<64x64xf32>, tensor<64x96xf32>) ... -> tensor<64x96xf32>
  %r = tensor.expand_shape %m [[0, 1], [2]] ... : tensor<64x96xf32> into tensor<2x32x96xf32>
"""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite.building import create, value
from tuner.mlir.rewrite.integer_products import is_unsigned
from tuner.programs.op_groups.broadcasts import is_broadcast
from tuner.programs.op_groups.generics import collapse, expand, zeros
from tuner.programs.op_groups.op_names import defining, dimensions, maps_of
from tuner.programs.op_groups.payload import TensorPayload

BATCHED, PLAIN = "linalg.batch_matmul", "linalg.matmul"
ROWS = [[0, 1], [2]]  # dimensions of A and C: batch and rows become rows


def merge_batches(payload: TensorPayload) -> None:
    """Replaces batches of matmuls with one B by a matmul, in place; their results must begin with zeros."""
    for op in payload.ops:
        if op.name == BATCHED and not is_unsigned(op):  # the matmul that is made extends by sign
            shared = _shared(op.operands[1])
            if shared is not None:
                _merge(op, shared)


def _shared(batch: Value) -> Value | None:
    """Returns the matrix that a batch consists of; None for a batch of several matrices."""
    op = defining(batch)
    if op is None or not is_broadcast(op) or dimensions(maps_of(op)[0]) != (1, 2):
        return None
    return op.operands[0]


def _merge(op: Op, shared: Value) -> None:
    result = op.results[0]
    batch, rows, columns = result.type.shape
    kind = ir.RankedTensorType.get([batch * rows, columns], result.type.element_type)
    with ir.InsertionPoint(op), op.location:
        product = matmul(collapse(op.operands[0], ROWS), shared, zeros(kind))
        result.replace_all_uses_with(expand(product, ROWS, [batch, rows, columns]))
    op.erase()


def matmul(left: Value, right: Value, init: Value) -> Value:
    """Creates ``linalg.matmul`` at the current insertion point; returns its result."""
    loops = [ir.AffineDimExpr.get(number) for number in range(3)]
    maps = [ir.AffineMap.get(3, 0, [loops[a], loops[b]]) for a, b in ((0, 2), (2, 1), (0, 1))]
    op = ir.Operation.create(
        PLAIN,
        results=[init.type],
        operands=[left, right, init],
        attributes={
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 1]),
            "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(each) for each in maps]),
        },
        regions=1,
    )
    add_body(op)
    return op.results[0]


def add_body(op: Op) -> None:
    """Creates the body of a matmul: a sum of products, whose factors are widened by their signs."""
    kinds = [each.type.element_type for each in op.operands]
    element = kinds[-1]
    block = op.regions[0].blocks.append(*kinds)
    with ir.InsertionPoint(block):
        first, second, total = (_widened(each, element) for each in block.arguments)
        is_integer = isinstance(element, ir.IntegerType)
        times, plus = ("arith.muli", "arith.addi") if is_integer else ("arith.mulf", "arith.addf")
        product = value(times, element, first, second)
        create("linalg.yield", [], [value(plus, element, total, product)])


def _widened(number: Value, element: ir.Type) -> Value:
    """Creates the conversion of a narrower number to the type that is summed."""
    if number.type == element:
        return number
    is_integer = isinstance(element, ir.IntegerType)
    return value("arith.extsi" if is_integer else "arith.extf", element, number)
