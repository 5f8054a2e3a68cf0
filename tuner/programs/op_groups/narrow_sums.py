"""Lets matmuls of i8 sum in i32 where all sums of i64 are truncated to i32: the same numbers, modulo 2**32.

torch-mlir exports a product of integers with sums of i64, and truncates these to the type of the result.

    %wide = linalg.matmul ins(%a, %b : tensor<8x4xi8>, tensor<4x6xi8>) outs(%zeros : tensor<8x6xi64>)
    %r = linalg.generic ins(%wide)  // arith.trunci
  becomes
    %r = linalg.matmul ins(%a, %b : tensor<8x4xi8>, tensor<4x6xi8>) outs(%zeros : tensor<8x6xi32>)
"""

from tuner.mlir.bindings import Op, ir
from tuner.mlir.rewrite.definitions import attributes_of
from tuner.mlir.rewrite.integer_products import is_unsigned
from tuner.programs.op_groups.broadcast_matmuls import add_body
from tuner.programs.op_groups.generics import zeros
from tuner.programs.op_groups.op_names import (
    GENERIC,
    MATMULS,
    body_of,
    inits_of,
    inputs_of,
    is_identity,
    is_parallel,
    maps_of,
    users,
)
from tuner.programs.op_groups.payload import TensorPayload
from tuner.programs.op_groups.stores import number_of

TYPES, SUM = ["i8", "i8", "i64"], "i32"  # of a product that becomes another one, and of its sums then
TRUNCATED = ["arith.trunci", "linalg.yield"]  # the body of what reads them


def narrow_sums(payload: TensorPayload) -> None:
    """Replaces matmuls of i8 into i64 whose sums are only truncated to i32, in place."""
    for op in payload.ops:
        if op.name in MATMULS and _is_product_of_bytes(op):
            readers = users(op.results[0])
            if readers and all(_truncates(each) for each in readers):
                _replace(op, readers)


def _is_product_of_bytes(op: Op) -> bool:
    kinds = [str(each.type.element_type) for each in op.operands]
    return kinds == TYPES and not is_unsigned(op) and number_of(inits_of(op)[0]) == 0.0


def _truncates(op: Op) -> bool:
    """Returns whether an operation only truncates each element of a tensor to i32."""
    if op.name != GENERIC or len(inputs_of(op)) != 1 or len(op.results) != 1:
        return False
    body = body_of(op)
    return (
        str(op.results[0].type.element_type) == SUM
        and all(is_parallel(op))
        and all(is_identity(each) for each in maps_of(op))
        and [each.name for each in body] == TRUNCATED
        and body[0].operands[0] == op.regions[0].blocks[0].arguments[0]
    )


def _replace(op: Op, readers: list[Op]) -> None:
    """Creates the matmul with sums of i32 in place of what truncates them; the old one is left unused."""
    with ir.InsertionPoint(op), op.location:
        kind = ir.RankedTensorType.get(op.results[0].type.shape, ir.IntegerType.get_signless(32))
        made = ir.Operation.create(
            op.name,
            results=[kind],
            operands=[*inputs_of(op), zeros(kind)],
            attributes=attributes_of(op),
            regions=1,
        )
        add_body(made)
    for reader in readers:
        reader.results[0].replace_all_uses_with(made.results[0])
