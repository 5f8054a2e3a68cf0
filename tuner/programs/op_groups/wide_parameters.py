"""Lets elementwise operations read weights of bf16 as f32 where they only extend them.

A weight that is repeated, such as a bias or the scale of a norm, is extended again for each element of the
result; as f32 it is extended once, when the program is loaded. The numbers are the same.

    %r = linalg.generic ins(%x, %bias : tensor<8x4xf32>, tensor<4xbf16>) {
      %wide = arith.extf %b : bf16 to f32
      %sum = arith.addf %a, %wide : f32
  becomes
    %bias32 = linalg.generic ins(%bias : tensor<4xbf16>)  // arith.extf
    %r = linalg.generic ins(%x, %bias32 : tensor<8x4xf32>, tensor<4xf32>) {
      %sum = arith.addf %a, %b : f32
"""

from math import prod

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite.definitions import source_of
from tuner.programs.op_groups.generics import extended
from tuner.programs.op_groups.op_names import GENERIC, VIEWS, inputs_of
from tuner.programs.op_groups.payload import TensorPayload

EXTEND = "arith.extf"
Wide = dict[Value, Value]  # tensor of bf16 -> the same numbers of f32


def widen_parameters(payload: TensorPayload, first_weight: int) -> None:
    """Replaces weights of bf16 that elementwise operations repeat and only extend, in place.

    ``first_weight``: the number of the first argument of the program that is a weight.
    """
    weights = list(payload.block.arguments)[first_weight:]
    wide: Wide = {}
    for op in payload.ops:
        if op.name != GENERIC:
            continue
        for number, tensor in enumerate(inputs_of(op)):
            if _is_repeated_weight(op, tensor, weights) and _is_only_extended(op, number):
                _replace(op, number, wide)


def _is_repeated_weight(op: Op, tensor: Value, weights: list[Value]) -> bool:
    """Returns whether an operand is a weight of bf16 that is smaller than the result."""
    source = source_of(tensor, VIEWS)
    if str(tensor.type.element_type) != "bf16" or not isinstance(source, ir.BlockArgument):
        return False
    return source in weights and prod(tensor.type.shape) < prod(op.results[0].type.shape)


def _is_only_extended(op: Op, number: int) -> bool:
    uses = [use.owner.operation for use in op.regions[0].blocks[0].arguments[number].uses]
    return bool(uses) and all(
        each.name == EXTEND and isinstance(each.results[0].type, ir.F32Type) for each in uses
    )


def _replace(op: Op, number: int, wide: Wide) -> None:
    """Lets a generic read an operand as f32."""
    tensor, argument = op.operands[number], op.regions[0].blocks[0].arguments[number]
    if tensor not in wide:
        wide[tensor] = extended(tensor)
    op.operands[number] = wide[tensor]
    extensions = [use.owner.operation for use in argument.uses]
    argument.set_type(ir.F32Type.get())
    for each in extensions:
        each.results[0].replace_all_uses_with(argument)
        each.erase()
