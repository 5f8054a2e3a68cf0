"""Extends bf16 and f16 to f32 where schedules are for f32: operands of convolutions, broadcast weights."""

from math import prod

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions import operations
from tuner.mlir.fusions.convolutions import convolution_form
from tuner.mlir.ir.building import create, filled_tensor, recreated, value
from tuner.mlir.ir.reading import op_of, source_of, users_of
from tuner.models.fusions.generics import converted, empty, extended
from tuner.models.fusions.matmul_forms import add_body
from tuner.models.fusions.payload import TensorPayload
from tuner.models.fusions.views import YIELD, number_of, padding_number

NARROW = ("bf16", "f16")
PLACED = (
    operations.EXPAND,
    operations.COLLAPSE,
    operations.INSERT,
    operations.CONCAT,
)  # move elements, and read no other numbers than their operands'
Wide = dict[Value, Value]  # tensor of bf16 or f16 -> the same numbers of f32
EXTEND = "arith.extf"


def widen_convolutions(payload: TensorPayload, *, keeps_pairs: bool = False) -> None:
    """Replaces convolutions of bf16 and f16 by convolutions of f32, in place: schedules are for f32.

    Products of two such numbers are exact in f32, and sums are of f32 either way; a narrow result is rounded
    once. The input is extended before padding, so that its producer can write f32 into the padded buffer;
    weights are extended at compile time (``hoist``). ``keeps_pairs``: the processor has dot products of bf16,
    and convolutions that sum over several channels keep operands of bf16, since their schedule pairs
    channels.

        %p = tensor.pad %x ... : tensor<1x8x12x12xbf16> to tensor<1x8x14x14xbf16>
        %r = linalg.conv_2d_nchw_fchw ins(%p, %w : tensor<1x8x14x14xbf16>, tensor<16x8x3x3xbf16>) ...
      becomes
        %x32 = linalg.generic ins(%x)  // arith.extf
        %p32 = tensor.pad %x32 ... : tensor<1x8x12x12xf32> to tensor<1x8x14x14xf32>
        %w32 = linalg.generic ins(%w)  // arith.extf
        %r = linalg.conv_2d_nchw_fchw ins(%p32, %w32 : tensor<1x8x14x14xf32>, ...) outs(%zeros ...)
    """
    wide: Wide = {}
    for op in payload.ops:
        if op.name in operations.CONVOLUTIONS and any(map(_is_narrow, op.operands)):
            _replace_convolution(op, wide, keeps=keeps_pairs and _has_pairs(op))


def _has_pairs(op: Op) -> bool:
    form = convolution_form(op)
    (image, weights) = list(op.operands)[:2]
    if form.is_depthwise or weights.type.shape[form.weights.index("c")] == 1:
        return False
    sources = [source_of(operand, operations.VIEWS) for operand in (image, weights)]
    elements = {str(source.type.element_type) for source in sources}
    return elements == {"bf16"} and all(op_of(source, *operations.FREE) is None for source in sources)


def _is_narrow(value: Value) -> bool:
    """Returns whether a value is a tensor of narrow floats; a number, as a fill has, is not."""
    return isinstance(value.type, ir.RankedTensorType) and str(value.type.element_type) in NARROW


def _replace_convolution(op: Op, wide: Wide, *, keeps: bool) -> None:
    """Replaces a convolution; rounds a narrow result. ``keeps``: input and weights stay bf16."""
    *read, start = op.operands
    operands = [*(read if keeps else (_widened(operand, wide) for operand in read)), _widened(start, wide)]
    if operands == list(op.operands):
        return
    with ir.InsertionPoint(op), op.location:
        wide_op = recreated(op, [operands[-1].type], operands)
        add_body(wide_op)
        result = wide_op.results[0]
        if _is_narrow(op.results[0]):
            result = converted(result, op.results[0].type.element_type)
    op.results[0].replace_all_uses_with(result)
    op.erase()


def _widened(tensor: Value, wide: Wide) -> Value:
    if not _is_narrow(tensor):
        return tensor
    if tensor not in wide:
        wide[tensor] = _extended(tensor, wide)
    return wide[tensor]


def _extended(tensor: Value, wide: Wide) -> Value:
    op = operations.defining(tensor)
    if op is None:
        return extended(tensor)
    if op.name in PLACED or (op.name == operations.PAD and padding_number(op) is not None):
        operands = [
            _widened(operand, wide) if operations.is_tensor(operand) else operand for operand in op.operands
        ]
        with ir.InsertionPoint(op), op.location:
            return _placed(op, operands)
    number = number_of(tensor)
    if op.name != operations.EMPTY and number is None:
        return extended(tensor)
    with ir.InsertionPoint.after(op), op.location:
        if number is None:
            return empty(tensor.type.shape, ir.F32Type.get())
        constant = _constant(number)
        return filled_tensor(constant, empty(tensor.type.shape, constant.type))


def _placed(op: Op, operands: list[Value]) -> Value:
    copy = recreated(op, [ir.RankedTensorType.get(op.results[0].type.shape, ir.F32Type.get())], operands)
    if op.name == operations.PAD:
        with ir.InsertionPoint(copy):
            constant = _constant(padding_number(op) or 0.0)
        block = copy.regions[0].blocks.append(*[ir.IndexType.get()] * len(copy.attributes["static_low"]))
        with ir.InsertionPoint(block):
            create(YIELD, [], [constant])
    return copy.results[0]


def _constant(number: float) -> Value:
    element = ir.F32Type.get()
    return value("arith.constant", element, value=ir.FloatAttr.get(element, number))


def widen_parameters(payload: TensorPayload, first_weight: int) -> None:
    """Extends narrow weights that are broadcast and only read in f32, in place; ``hoist`` moves this out.

    ``first_weight``: number of the first argument that is a weight. Otherwise a bias, or the scale of a norm,
    is extended again for each element of the result.
        %r = linalg.generic ins(%x, %bias : tensor<8x4xf32>, tensor<4xbf16>) {
          %wide = arith.extf %b : bf16 to f32
          %sum = arith.addf %a, %wide : f32
      becomes
        %bias32 = linalg.generic ins(%bias : tensor<4xbf16>)  // arith.extf
        %r = linalg.generic ins(%x, %bias32 : tensor<8x4xf32>, tensor<4xf32>) {
          %sum = arith.addf %a, %b : f32
    """
    weights = list(payload.block.arguments)[first_weight:]
    wide: Wide = {}
    for op in payload.ops:
        if op.name != operations.GENERIC or operations.is_quantized(op):
            continue
        for index, tensor in enumerate(operations.inputs_of(op)):
            if not _is_repeated_weight(op, tensor, weights):
                continue
            argument = op.regions[0].blocks[0].arguments[index]
            readers = users_of(argument)
            is_extended = [
                reader.name == EXTEND and isinstance(reader.results[0].type, ir.F32Type) for reader in readers
            ]
            if not readers or not all(is_extended):
                continue
            if tensor not in wide:
                wide[tensor] = extended(tensor)
            op.operands[index] = wide[tensor]
            argument.set_type(ir.F32Type.get())
            for reader in readers:
                reader.results[0].replace_all_uses_with(argument)
                reader.erase()


def _is_repeated_weight(op: Op, tensor: Value, weights: list[Value]) -> bool:
    source = source_of(tensor, operations.VIEWS)
    if not _is_narrow(tensor) or not isinstance(source, ir.BlockArgument):
        return False
    return source in weights and prod(tensor.type.shape) < prod(op.results[0].type.shape)
