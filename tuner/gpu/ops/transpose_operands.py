"""The transform op ``tuner.transpose_operands``."""

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.dialect import InPlaceOp
from tuner.mlir.ir.building import create, value
from tuner.mlir.ir.reading import maps_in, walk

K = 2  # the dimension (m, n, k) that is summed over


class TransposeOperandsOp(InPlaceOp, name="transpose_operands"):
    """``tuner.transpose_operands``: each matmul reads transposes of the operands whose rows run along K.

    Takes a function. The transposes are ops of their own, which a script fuses into the copies to shared
    memory. Upstream's ``transform.structured.transpose_matmul`` refuses a matmul with maps, such as that of a
    transposed B.

        %product = linalg.matmul ins(%a, %b : tensor<64x32xf32>, tensor<32x16xf32>) outs(%c : ...) -> ...
      becomes
        %empty = tensor.empty() : tensor<32x64xf32>
        %columns = linalg.transpose ins(%a : tensor<64x32xf32>) outs(%empty : ...) permutation = [1, 0]
        %product = linalg.matmul indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0)>, ...

    The handle (a func.func) and handles to matmuls stay valid. Never fails.
    """

    def change(self, function: Op) -> Refusal | None:
        for matmul in walk(function, "linalg.matmul"):
            maps = maps_in(matmul)
            for number in range(2):
                rows, columns = maps[number].results
                if ir.AffineDimExpr(columns).position != K:
                    continue
                maps[number] = ir.AffineMap.get(maps[number].n_dims, 0, [columns, rows])
                with matmul.location, ir.InsertionPoint(matmul):
                    matmul.operands[number] = _transposed(matmul.operands[number])
            matmul.attributes["indexing_maps"] = ir.ArrayAttr.get(list(map(ir.AffineMapAttr.get, maps)))
        return None


def _transposed(matrix: Value) -> Value:
    type_ = ir.RankedTensorType(matrix.type)
    turned = ir.RankedTensorType.get(list(reversed(type_.shape)), type_.element_type)
    op = ir.Operation.create(
        "linalg.transpose",
        results=[turned],
        operands=[matrix, value("tensor.empty", turned)],
        attributes={"permutation": ir.DenseI64ArrayAttr.get([1, 0])},
        regions=1,
    )
    block = op.regions[0].blocks.append(type_.element_type, type_.element_type)
    with ir.InsertionPoint(block):
        create("linalg.yield", [], [block.arguments[0]])
    return op.results[0]
