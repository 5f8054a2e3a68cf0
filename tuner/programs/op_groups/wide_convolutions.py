"""Lets convolutions of bf16 read f32, so that their schedules are those of f32: operands are extended before.

The product of two bf16 numbers is exact in f32, and sums are of f32 either way, so nothing is rounded
differently. The input is extended where it is padded or concatenated, so that the operation that computes it
can write it so; weights are extended once, when the program is loaded.

    %p = tensor.pad %x ... : tensor<1x8x12x12xbf16> to tensor<1x8x14x14xbf16>
    %r = linalg.conv_2d_nchw_fchw ins(%p, %w : tensor<1x8x14x14xbf16>, tensor<16x8x3x3xbf16>) outs(%zeros ...)
  becomes
    %x32 = linalg.generic ins(%x)  // arith.extf
    %p32 = tensor.pad %x32 ... : tensor<1x8x12x12xf32> to tensor<1x8x14x14xf32>
    %w32 = linalg.generic ins(%w)  // arith.extf
    %r = linalg.conv_2d_nchw_fchw ins(%p32, %w32 : tensor<1x8x14x14xf32>, ...) outs(%zeros ...)

A convolution whose result is bf16 sums in f32 too, and is rounded once.

Where the processor has dot products of bf16, convolutions that sum over channels read bf16: their schedule
pairs channels. Depthwise ones, those of one channel and those of a tensor of one number are of f32 there too.
"""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite.building import create, value
from tuner.mlir.rewrite.convolution_forms import convolution_form
from tuner.mlir.rewrite.definitions import attributes_of, op_of, source_of
from tuner.programs.op_groups.generics import converted, empty, extended
from tuner.programs.op_groups.op_names import (
    COLLAPSE,
    CONCAT,
    CONVOLUTIONS,
    EMPTY,
    EXPAND,
    FILL,
    FREE,
    INSERT,
    PAD,
    VIEWS,
    defining,
    is_tensor,
)
from tuner.programs.op_groups.payload import TensorPayload
from tuner.programs.op_groups.stores import YIELD, number_of, padding_of
from tuner.programs.op_groups.weights import filled

NARROW = "bf16"
PLACED = (EXPAND, COLLAPSE, INSERT, CONCAT)  # move elements, and read no other numbers than their operands'
Wide = dict[Value, Value]  # tensor of bf16 -> the same numbers of f32


def widen_convolutions(payload: TensorPayload, *, keeps_pairs: bool = False) -> None:
    """Replaces convolutions of bf16 by those of the extended operands, in place.

    ``keeps_pairs``: those that a dot product of pairs of channels can compute keep their operands.
    """
    wide: Wide = {}
    for op in payload.ops:
        if op.name in CONVOLUTIONS and any(_is_narrow(each) for each in op.operands):
            _replace(op, wide, keeps=keeps_pairs and _has_pairs(op))


def _has_pairs(op: Op) -> bool:
    """Returns whether a convolution sums over channels of bf16 that lie in memory."""
    form, (given, weights) = convolution_form(op), list(op.operands)[:2]
    if form.is_depthwise or weights.type.shape[form.weights.index("c")] == 1:
        return False
    sources = [source_of(each, VIEWS) for each in (given, weights)]
    return all(_is_narrow(each) and op_of(each, *FREE) is None for each in sources)


def _is_narrow(tensor: Value) -> bool:
    return str(tensor.type.element_type) == NARROW


def _replace(op: Op, wide: Wide, *, keeps: bool) -> None:
    """Replaces a convolution; rounds its result where that was bf16. ``keeps``: it still multiplies bf16."""
    *read, start = op.operands
    operands = [*(read if keeps else (_widened(each, wide) for each in read)), _widened(start, wide)]
    if operands == list(op.operands):
        return
    with ir.InsertionPoint(op), op.location:
        result = _convolution(op, operands)
        if _is_narrow(op.results[0]):
            result = converted(result, ir.BF16Type.get())
    op.results[0].replace_all_uses_with(result)
    op.erase()


def _convolution(op: Op, operands: list[Value]) -> Value:
    """Creates the convolution of other operands, into f32; returns its result."""
    element = ir.F32Type.get()
    made = ir.Operation.create(
        op.name,
        results=[operands[-1].type],
        operands=operands,
        attributes=attributes_of(op),
        regions=1,
    )
    block = made.regions[0].blocks.append(*(each.type.element_type for each in operands))
    with ir.InsertionPoint(block):
        *read, before = block.arguments
        left, right = (each if each.type == element else value("arith.extf", element, each) for each in read)
        product = value("arith.mulf", element, left, right)
        create("linalg.yield", [], [value("arith.addf", element, before, product)])
    return made.results[0]


def _widened(tensor: Value, wide: Wide) -> Value:
    """Returns a tensor of bf16 as one of f32, created next to it; a tensor that is not bf16 as it is."""
    if not _is_narrow(tensor):
        return tensor
    if tensor not in wide:
        wide[tensor] = _extended(tensor, wide)
    return wide[tensor]


def _extended(tensor: Value, wide: Wide) -> Value:
    op = defining(tensor)
    if op is None:
        return extended(tensor)
    if op.name in PLACED or (op.name == PAD and padding_of(op) is not None):
        operands = [_widened(each, wide) if is_tensor(each) else each for each in op.operands]
        with ir.InsertionPoint(op), op.location:
            return _placed(op, operands)
    number = number_of(tensor) if op.name == FILL else None
    if op.name != EMPTY and number is None:
        return extended(tensor)
    with ir.InsertionPoint.after(op), op.location:
        return empty(tensor.type.shape, ir.F32Type.get()) if number is None else _filled(tensor, number)


def _filled(tensor: Value, number: float) -> Value:
    element = ir.F32Type.get()
    constant = value("arith.constant", element, value=ir.FloatAttr.get(element, number))
    return filled(constant, empty(tensor.type.shape, element))


def _placed(op: Op, operands: list[Value]) -> Value:
    """Creates a reshape, a concatenation, an insertion or a padding of other operands, all of f32."""
    kind = ir.RankedTensorType.get(op.results[0].type.shape, ir.F32Type.get())
    made = ir.Operation.create(
        op.name, results=[kind], operands=operands, attributes=attributes_of(op), regions=len(op.regions)
    )
    if op.name == PAD:
        _yield_padding(made, padding_of(op) or 0.0)
    return made.results[0]


def _yield_padding(pad: Op, padding: float) -> None:
    """Gives ``tensor.pad`` its body: the constant for each index."""
    element, index = ir.F32Type.get(), ir.IndexType.get()
    rank = len(pad.attributes["static_low"])
    with ir.InsertionPoint(pad):
        constant = value("arith.constant", element, value=ir.FloatAttr.get(element, padding))
    block = pad.regions[0].blocks.append(*[index] * rank)
    with ir.InsertionPoint(block):
        create(YIELD, [], [constant])
