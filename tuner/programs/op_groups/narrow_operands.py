"""Lets matmuls read bf16 or i8 where they would read such numbers extended to f32 or i32.

torch-mlir exports a linear layer of bf16 with both operands extended to f32. The product of two bf16 numbers
is exact in f32, and sums stay f32, so nothing is rounded differently. Processors multiply pairs of bf16, and
weights and activations take half of the memory. A product of i8 in PyTorch is one of both operands extended
to i32, which is exact as well: sums wrap around alike.

    %a32 = linalg.generic ins(%a)  // arith.extf
    %b32 = linalg.generic ins(%b)  // arith.extf
    %r = linalg.matmul ins(%a32, %b32 : tensor<8x4xf32>, tensor<4x6xf32>) outs(%zeros : tensor<8x6xf32>)
  becomes
    %r = linalg.matmul ins(%a, %b : tensor<8x4xbf16>, tensor<4x6xbf16>) outs(%zeros : tensor<8x6xf32>)
"""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite.building import value
from tuner.mlir.rewrite.definitions import attributes_of
from tuner.mlir.rewrite.integer_products import is_unsigned
from tuner.programs.op_groups.op_names import (
    COLLAPSE,
    EXPAND,
    GENERIC,
    MATMULS,
    SLICE,
    body_of,
    defining,
    dimensions,
    inputs_of,
    is_identity,
    is_parallel,
    maps_of,
)
from tuner.programs.op_groups.payload import TensorPayload
from tuner.programs.op_groups.transposed_matmuls import transposed

EXTENSIONS = {("bf16", "f32"): "arith.extf", ("i8", "i32"): "arith.extsi"}  # (narrow, wide) -> operation
RESHAPES = (COLLAPSE, EXPAND, SLICE)


def narrow_operands(payload: TensorPayload) -> None:
    """Replaces both operands of matmuls of extended bf16 or i8 by the narrow tensors, in place."""
    for op in payload.ops:
        if op.name not in MATMULS or is_unsigned(op):
            continue
        if all(_is_narrow(operand) for operand in inputs_of(op)):
            for number, operand in enumerate(inputs_of(op)):
                _replace(op, number, _narrowed(operand))


def _replace(op: Op, number: int, tensor: Value) -> None:
    """Makes a matmul read another tensor, whose elements its body extends."""
    body = op.regions[0].blocks[0]
    element = body.arguments[number]
    wide = element.type
    uses = [(use.owner.operation, use.operand_number) for use in element.uses]
    op.operands[number] = tensor
    element.set_type(tensor.type.element_type)
    with ir.InsertionPoint.at_block_begin(body), op.location:
        extended = value(EXTENSIONS[str(element.type), str(wide)], wide, element)
    for user, place in uses:
        user.operands[place] = extended


def _is_narrow(tensor: Value) -> bool:
    """Returns whether a tensor was extended from a narrower type, and perhaps only moved after that."""
    op = defining(tensor)
    if op is None:
        return False
    is_moved = op.name in RESHAPES or bool(_transposition(op))
    return _is_narrow(op.operands[0]) if is_moved else is_extension(op)


def _narrowed(tensor: Value) -> Value:
    """Returns the tensor that was extended; creates its reshapes and transposes anew."""
    op = defining(tensor)
    assert op is not None
    order = _transposition(op)
    if order:
        source = _narrowed(op.operands[0])
        with ir.InsertionPoint(op), op.location:
            return transposed(source, order)
    if op.name not in RESHAPES:
        return op.operands[0]
    source = _narrowed(op.operands[0])
    kind = ir.RankedTensorType.get(tensor.type.shape, source.type.element_type)
    with ir.InsertionPoint(op), op.location:
        made = ir.Operation.create(
            op.name,
            results=[kind],
            operands=[source, *list(op.operands)[1:]],
            attributes=attributes_of(op),
        )
    return made.results[0]


def _transposition(op: Op) -> list[int]:
    """Returns a transpose's order: the operand's dimensions as the result has them; [] for another op."""
    if op.name != GENERIC or len(inputs_of(op)) != 1 or len(op.results) != 1 or not all(is_parallel(op)):
        return []
    source, target = maps_of(op)
    (last, *others), loops = body_of(op)[::-1], dimensions(source)
    is_copy = not others and last.operands[0] == op.regions[0].blocks[0].arguments[0]
    if not is_copy or not is_identity(target) or loops is None or len(loops) != target.n_dims:
        return []
    return [loops.index(each) for each in range(len(loops))]


def is_extension(op: Op) -> bool:
    """Returns whether an operation only extends each element of a tensor: bf16 to f32, or i8 to i32."""
    if op.name != GENERIC or len(inputs_of(op)) != 1 or len(op.results) != 1:
        return False
    body = body_of(op)
    narrow, wide = (str(each.type.element_type) for each in (op.operands[0], op.results[0]))
    return (
        (narrow, wide) in EXTENSIONS
        and all(is_parallel(op))
        and all(is_identity(each) for each in maps_of(op))
        and [each.name for each in body] == [EXTENSIONS[narrow, wide], "linalg.yield"]
        and body[0].operands[0] == op.regions[0].blocks[0].arguments[0]
        and body[1].operands[0] == body[0].results[0]
    )
