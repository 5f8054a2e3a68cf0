"""``tuner.drop_unit_batch``: a ``linalg.batch_matmul`` of one pair of matrices becomes a ``linalg.matmul``.

Takes a function on tensors of static sizes, tiled so that each batch_matmul has one pair of matrices.
Upstream folds all unit dimensions alike, so that a matrix of one row would become a vector. Attributes of the
op are kept.

    %empty = tensor.empty() : tensor<1x8x32xf32>
    %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x8x32xf32>) -> tensor<1x8x32xf32>
    %c = linalg.batch_matmul ins(%a, %b : ...) outs(%zeros : tensor<1x8x32xf32>) -> tensor<1x8x32xf32>
  becomes
    %a2 = tensor.extract_slice %a[0, 0, 0] [1, 8, 64] [1, 1, 1] : tensor<1x8x64xf32> to tensor<8x64xf32>
    %b2 = tensor.extract_slice %b[0, 0, 0] [1, 64, 32] [1, 1, 1] : tensor<1x64x32xf32> to tensor<64x32xf32>
    %empty2 = tensor.empty() : tensor<8x32xf32>
    %zeros2 = linalg.fill ins(%zero : f32) outs(%empty2 : tensor<8x32xf32>) -> tensor<8x32xf32>
    %c2 = linalg.matmul ins(%a2, %b2 : ...) outs(%zeros2 : tensor<8x32xf32>) -> tensor<8x32xf32>
    %c = tensor.expand_shape %c2 [[0, 1], [2]] output_shape [1, 8, 32] : ...
"""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ops.dialect import InPlaceOp
from tuner.mlir.rewrite.building import create, integers, value
from tuner.mlir.rewrite.definitions import op_of
from tuner.mlir.rewrite.walking import walk

INHERENT = ("operandSegmentSizes", "indexing_maps")  # attributes that belong to the op itself
MATMUL = """func.func @f(%a: {a}, %b: {b}, %c: {c}) -> {c} {{
  %0 = linalg.matmul ins(%a, %b : {a}, {b}) outs(%c : {c}) -> {c}
  return %0 : {c}
}}"""


class DropUnitBatchOp(InPlaceOp, name="drop_unit_batch"):
    """The transform op ``tuner.drop_unit_batch``: each batch_matmul of one pair of matrices becomes a matmul.

    The handle (a func.func) stays valid. Silenceable failure: a batch_matmul of more pairs, or of dynamic
    sizes.
    """

    def change(self, function: Op) -> str | None:
        """Changes the batch_matmuls of one function, in place; returns None, or why one is refused."""
        for op in walk(function, "linalg.batch_matmul"):
            kinds = [ir.RankedTensorType(operand.type) for operand in op.operands]
            if not all(kind.has_static_shape and kind.shape[0] == 1 for kind in kinds):
                return f"found linalg.batch_matmul into {kinds[-1]}, allowed a batch of 1 and static sizes"
            _replace(op)
        return None


def _replace(op: Op) -> None:
    with ir.InsertionPoint(op), op.location:
        a, b, start = _matrix(op.operands[0]), _matrix(op.operands[1]), _start(op.operands[2])
        holder = ir.Module.parse(MATMUL.format(a=a.type, b=b.type, c=start.type))
        made = holder.body.operations[0].regions[0].blocks[0].operations[0].operation.clone()
        for number, operand in enumerate((a, b, start)):
            made.operands[number] = operand
        for name in op.attributes:
            if name not in INHERENT:
                made.attributes[name] = op.attributes[name]
        kind = op.results[0].type
        whole = value(
            "tensor.expand_shape",
            kind,
            made.results[0],
            reassociation=ir.ArrayAttr.get([integers([0, 1]), integers([2])]),
            static_output_shape=ir.DenseI64ArrayAttr.get(list(kind.shape)),
        )
    op.results[0].replace_all_uses_with(whole)


def _matrix(batch: Value) -> Value:
    """Creates the slice of the only matrix of a batch."""
    shape = list(batch.type.shape)
    return value(
        "tensor.extract_slice",
        ir.RankedTensorType.get(shape[1:], batch.type.element_type),
        batch,
        static_offsets=ir.DenseI64ArrayAttr.get([0, 0, 0]),
        static_sizes=ir.DenseI64ArrayAttr.get(shape),
        static_strides=ir.DenseI64ArrayAttr.get([1, 1, 1]),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
    )


def _start(sums: Value) -> Value:
    """Creates the initial value of the sums: a matrix filled alike, or the slice of another value."""
    fill = op_of(sums, "linalg.fill")
    if fill is None:
        return _matrix(sums)
    kind = ir.RankedTensorType.get(list(sums.type.shape)[1:], sums.type.element_type)
    empty = create("tensor.empty", [kind]).results[0]
    made = fill.clone()
    made.operands[1] = empty
    made.results[0].set_type(kind)
    return made.results[0]
