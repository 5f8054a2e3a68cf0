"""Duplicates fills of tensors that several operations use, before bufferization.

Two matmuls often start from one fill with zeros. After bufferization the second matmul would start from a
copy of the filled buffer, and nothing would show any more that it starts from zeros. Fills of dynamic shape,
or of a tensor other than ``tensor.empty``, stay shared.

    %f = linalg.fill ins(%z : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %g = linalg.exp ins(%a : tensor<4xf32>) outs(%f : tensor<4xf32>) -> tensor<4xf32>
    %h = linalg.exp ins(%b : tensor<4xf32>) outs(%f : tensor<4xf32>) -> tensor<4xf32>
  becomes
    %f = linalg.fill ins(%z : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %e2 = tensor.empty() : tensor<4xf32>
    %f2 = linalg.fill ins(%z : f32) outs(%e2 : tensor<4xf32>) -> tensor<4xf32>
    %g = linalg.exp ins(%a : tensor<4xf32>) outs(%f2 : tensor<4xf32>) -> tensor<4xf32>
    %h = linalg.exp ins(%b : tensor<4xf32>) outs(%f : tensor<4xf32>) -> tensor<4xf32>
"""

from tuner.mlir.bindings import Op, ir
from tuner.mlir.rewrite.building import create
from tuner.mlir.rewrite.definitions import op_of
from tuner.mlir.rewrite.walking import walk


def copy_shared_fills(function: Op) -> None:
    """Duplicates ``linalg.fill`` operations in place, so that each user has a fill that no other user shares.

    One user keeps the original. Fills of dynamic shape, and of tensors other than ``tensor.empty``, stay
    shared.
    """
    for fill in walk(function, "linalg.fill"):
        if not fill.results or not _is_of_empty(fill):
            continue
        for use in list(fill.results[0].uses)[1:]:
            user, number = use.owner, use.operand_number
            with user.location, ir.InsertionPoint(user):
                empty = create("tensor.empty", [fill.results[0].type])
                copy = fill.clone()
                copy.operands[1] = empty.results[0]
            user.operands[number] = copy.results[0]


def _is_of_empty(fill: Op) -> bool:
    empty = op_of(fill.operands[1], "tensor.empty")
    return empty is not None and bool(ir.RankedTensorType(empty.results[0].type).has_static_shape)
