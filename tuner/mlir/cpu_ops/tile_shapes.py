"""``tuner.drop_unit_batch`` and ``tuner.overlap_tiles``, which give tiles simpler shapes."""

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.dialect import InPlaceOp
from tuner.mlir.ir.building import create, index, integers, value
from tuner.mlir.ir.reading import constant_of, op_of, set_operands, uses_of, walk

INHERENT = ("operandSegmentSizes", "indexing_maps")  # attributes that belong to the op itself
MATMUL = """func.func @f(%a: {a}, %b: {b}, %c: {c}) -> {c} {{
  %0 = linalg.matmul ins(%a, %b : {a}, {b}) outs(%c : {c}) -> {c}
  return %0 : {c}
}}"""
MINIMUM = "affine.min"


class DropUnitBatchOp(InPlaceOp, name="drop_unit_batch"):
    """``tuner.drop_unit_batch``: a ``linalg.batch_matmul`` of batch 1 becomes a ``linalg.matmul``.

    Takes a function on tensors of static sizes, tiled so that each batch_matmul has one pair of matrices.
    Upstream folds all unit dimensions alike, so that a matrix of one row would become a vector. Attributes
    of the op are kept.

        %empty = tensor.empty() : tensor<1x8x32xf32>
        %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x8x32xf32>) -> tensor<1x8x32xf32>
        %c = linalg.batch_matmul ins(%a, %b : ...) outs(%zeros : tensor<1x8x32xf32>) -> tensor<1x8x32xf32>
      becomes
        %a2 = tensor.extract_slice %a[0, 0, 0] [1, 8, 64] [1, 1, 1] : tensor<1x8x64xf32> to tensor<8x64xf32>
        %b2 = tensor.extract_slice %b[0, 0, 0] [1, 64, 32] [1, 1, 1] : ... to tensor<64x32xf32>
        %empty2 = tensor.empty() : tensor<8x32xf32>
        %zeros2 = linalg.fill ins(%zero : f32) outs(%empty2 : tensor<8x32xf32>) -> tensor<8x32xf32>
        %c2 = linalg.matmul ins(%a2, %b2 : ...) outs(%zeros2 : tensor<8x32xf32>) -> tensor<8x32xf32>
        %c = tensor.expand_shape %c2 [[0, 1], [2]] output_shape [1, 8, 32] : ...

    The handle (a func.func) stays valid. Silenceable failure: a batch_matmul of more pairs, or of dynamic
    sizes.
    """

    def change(self, function: Op) -> Refusal | None:
        for op in walk(function, "linalg.batch_matmul"):
            types = [ir.RankedTensorType(operand.type) for operand in op.operands]
            if not all(type_.has_static_shape and type_.shape[0] == 1 for type_ in types):
                return Refusal(
                    f"found linalg.batch_matmul into {types[-1]}, allowed a batch of 1 and static sizes"
                )
            _replace(op)
        return None


def _replace(op: Op) -> None:
    with ir.InsertionPoint(op), op.location:
        a = _matrix(op.operands[0])
        b = _matrix(op.operands[1])
        start = _start(op.operands[2])
        # parsed from text, which gives the op its body, then cloned to here
        holder = ir.Module.parse(MATMUL.format(a=a.type, b=b.type, c=start.type))
        copied = holder.body.operations[0].regions[0].blocks[0].operations[0].operation.clone()
        for operand_index, operand in enumerate((a, b, start)):
            copied.operands[operand_index] = operand
        for name in op.attributes:
            if name not in INHERENT:
                copied.attributes[name] = op.attributes[name]
        type_ = op.results[0].type
        whole = value(
            "tensor.expand_shape",
            type_,
            copied.results[0],
            reassociation=ir.ArrayAttr.get([integers([0, 1]), integers([2])]),
            static_output_shape=ir.DenseI64ArrayAttr.get(list(type_.shape)),
        )
    op.results[0].replace_all_uses_with(whole)


def _matrix(batch: Value) -> Value:
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
    fill = op_of(sums, "linalg.fill")
    if fill is None:
        return _matrix(sums)
    type_ = ir.RankedTensorType.get(list(sums.type.shape)[1:], sums.type.element_type)
    empty = create("tensor.empty", [type_]).results[0]
    copied = fill.clone()
    copied.operands[1] = empty
    copied.results[0].set_type(type_)
    return copied.results[0]


class OverlapTilesOp(InPlaceOp, name="overlap_tiles"):
    """``tuner.overlap_tiles``: the last tile of a loop begins earlier, so that all tiles have one size.

    Takes a function on tensors, tiled by sizes that do not divide the extents: a last tile that would be
    smaller computes some elements once more, to the same numbers. No tile has a dynamic size then, and
    nothing is peeled. Only for parallel dimensions whose results are written as a whole. Not changed: loops
    that are shorter than one tile or do not begin at 0, and loops with bounds that are not constant.

        %all = scf.for %i = %c0 to %c55 step %c14 ... {
          %size = affine.min affine_map<(d0) -> (-d0 + 55, 14)>(%i)
          %tile = tensor.extract_slice %x[%i] [%size] [1] : tensor<55xf32> to tensor<?xf32>
      becomes, after canonicalization
        %all = scf.for %i = %c0 to %c55 step %c14 ... {
          %first = affine.min affine_map<(d0) -> (41, d0)>(%i)
          %tile = tensor.extract_slice %x[%first] [14] [1] : tensor<55xf32> to tensor<14xf32>

    The handle (a func.func) stays valid. Never fails.
    """

    def change(self, function: Op) -> Refusal | None:
        for loop in walk(function, "scf.for"):
            first, end, step = map(constant_of, list(loop.operands)[:3])
            if first != 0 or end is None or step is None or end < step or end % step == 0:
                continue
            _overlap(loop, end, step)
        return None


def _overlap(loop: Op, end: int, step: int) -> None:
    block = loop.regions[0].blocks[0]
    number = block.arguments[0]
    uses = uses_of(number)
    sizes = [op for op, _ in uses if op.name == MINIMUM and _is_rest(op, end, step)]
    if not sizes:  # the loop is not tiled by its step
        return
    d0 = ir.AffineDimExpr.get(0)
    with ir.InsertionPoint.at_block_begin(block), loop.location:
        mapping = ir.AffineMapAttr.get(ir.AffineMap.get(1, 0, [ir.AffineConstantExpr.get(end - step), d0]))
        first = value(MINIMUM, ir.IndexType.get(), number, map=mapping)
        whole = index(step)
    set_operands(uses, first)
    for op in sizes:
        op.results[0].replace_all_uses_with(whole)
        op.erase()


def _is_rest(op: Op, end: int, step: int) -> bool:
    """Returns whether an ``affine.min`` is the size of a tile: ``step``, or what is left before ``end``."""
    d0 = ir.AffineDimExpr.get(0)
    rest = end - d0
    whole = ir.AffineConstantExpr.get(step)
    mapping = ir.AffineMapAttr(op.attributes["map"]).value
    return len(op.operands) == 1 and set(map(str, mapping.results)) == {str(rest), str(whole)}
