"""Brings the operations of a program into the few forms that fusions are formed of.

``prepare`` and ``clean_up`` run upstream's passes; each other function replaces one form, in place.
"""

from collections.abc import Iterable
from math import prod

from tuner.core.fusions import number_type
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ir.building import create, value
from tuner.mlir.ir.linalg import convolution_form
from tuner.mlir.ir.reading import attributes_of, op_of, source_of, walk_where
from tuner.mlir.passes import run_passes
from tuner.mlir.transform import apply_script, parse
from tuner.programs.fusions.generics import collapse, converted, empty, expand, extended, maps_attribute
from tuner.programs.fusions.matmul_forms import is_plain, is_transposed, matmul
from tuner.programs.fusions.operations import (
    COLLAPSE,
    CONCAT,
    CONVOLUTIONS,
    EMPTY,
    EXPAND,
    FILL,
    FREE,
    GENERIC,
    INSERT,
    MATMULS,
    PAD,
    VIEWS,
    body_of,
    defining,
    inits_of,
    inputs_of,
    is_tensor,
    maps_of,
)
from tuner.programs.fusions.payload import TensorPayload, filled
from tuner.programs.fusions.views import YIELD, number_of, padding_of

# ------------------------------------------------------------------------------
# Brings the operations of a program into the few forms that fusions are formed of.
#
# Elementwise operations, transposes and broadcasts become ``linalg.generic``; matmuls, convolutions and
# pooling stay named. Dimensions of size 1 are folded away. ``linalg-fuse-elementwise-ops`` is not run: with
# reshapes it makes generics of matmuls, and computes a layer norm again for each column of the matmul that
# reads it.


OP = "!transform.any_op"
MARK = "generalized"  # attribute of operations, while they are made generic
GENERALIZE = f"""module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @__transform_main(%root: {OP}) {{
    %named = transform.structured.match attributes{{{MARK}}} in %root : ({OP}) -> {OP}
    %generic = transform.structured.generalize %named : ({OP}) -> {OP}
    transform.yield
  }}
}}"""
CLEAN = "canonicalize,cse"
PREPARE = f"builtin.module(func.func(convert-elementwise-to-linalg),{CLEAN})"
FOLD_UNIT_DIMENSIONS = f"builtin.module(func.func(linalg-fold-unit-extent-dims,{CLEAN}))"
CLEAN_UP = f"builtin.module({CLEAN})"
# Named operations that stay: contractions, convolutions, pooling, and what has no loops of its own.
KEPT = (
    "matmul",
    "conv",
    "pooling",
    "fill",
    "generic",
    "index",
    "yield",
    "softmax",
    "pack",
    "winograd",
    "mmt4d",
)


def prepare(module: ir.Module) -> None:
    """Makes linalg operations of elementwise operations on tensors, and removes duplicates, in place."""
    run_passes(module, PREPARE)


def generalize(module: ir.Module) -> None:
    """Makes ``linalg.generic`` of named operations other than contractions and windows, in place."""
    ops = walk_where(module, _is_generalized)
    if not ops:
        return
    for op in ops:
        op.attributes[MARK] = ir.UnitAttr.get()
    apply_script(module, parse(GENERALIZE, "generalize"))
    for op in walk_where(module, lambda op: MARK in op.attributes):
        del op.attributes[MARK]


def _is_generalized(op: Op) -> bool:
    if op.name in MATMULS:
        return not is_plain(op) and not is_transposed(op)  # of broadcast operands
    if not op.name.startswith("linalg.") or op.name in (GENERIC, FILL):
        return False
    name = op.name.removeprefix("linalg.")
    return not any(kept in name for kept in KEPT)


def fold_unit_dimensions(module: ir.Module) -> None:
    """Drops loops and dimensions of size 1 of ``linalg.generic``, in place; reshapes connect what remains."""
    run_passes(module, FOLD_UNIT_DIMENSIONS)


def clean_up(module: ir.Module) -> None:
    """Removes reshapes that undo each other, duplicates and what nobody uses, in place."""
    run_passes(module, CLEAN_UP)


NCHW = "linalg.conv_2d_nchw_fchw"
PAGE_BYTES = 4096  # of a channel: at 3136 bytes (28x28) convolutions were as fast, at 12544 a third as fast


def pointwise_as_matmuls(payload: TensorPayload) -> None:
    """Replaces convolutions of one pixel over large images by matmuls, in place.

    A schedule of convolutions reads some pixels of one channel after the other, and channels of large images
    are a page of memory or more apart. As a matmul, the image is a matrix of channels x pixels, of which
    whole rows are read:

        %r = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x256x56x56xf32>, tensor<64x256x1x1xf32>) ...
      becomes
        %a = tensor.collapse_shape %w [[0], [1, 2, 3]] ... into tensor<64x256xf32>
        %b = tensor.collapse_shape %x [[0, 1], [2, 3]] ... into tensor<256x3136xf32>
        %c = linalg.matmul ins(%a, %b) ... -> tensor<64x3136xf32>
        %r = tensor.expand_shape %c [[0, 1], [2, 3]] ... into tensor<1x64x56x56xf32>

    Not changed: strides, several images, padded inputs, and the layout NHWC, whose pixels have their
    channels adjacent in memory.
    """
    for op in payload.ops:
        if op.name == NCHW and _is_pointwise(op) and _is_large(op):
            _replace_pointwise(op)


def _is_pointwise(op: Op) -> bool:
    x, weights = op.operands[:2]
    producer = defining(x)
    is_padded = producer is not None and producer.name == PAD
    is_plain = x.type.shape[0] == 1 and list(weights.type.shape[2:]) == [1, 1]
    return is_plain and not is_padded and convolution_form(op).strides == (1, 1)


def _is_large(op: Op) -> bool:
    *_, height, width = op.operands[0].type.shape
    element = number_type(str(op.operands[0].type.element_type))
    return bool(height * width * element.bytes >= PAGE_BYTES)


def _replace_pointwise(op: Op) -> None:
    x, weights = op.operands[:2]
    pixels = [[0, 1], [2, 3]]
    with ir.InsertionPoint(op), op.location:
        start = collapse(inits_of(op)[0], pixels)
        left, right = collapse(weights, [[0], [1, 2, 3]]), collapse(x, pixels)
        product = matmul(left, right, start)
        result = expand(product, pixels, op.results[0].type.shape)
    op.results[0].replace_all_uses_with(result)
    op.erase()


# ------------------------------------------------------------------------------
# Drops results of ``linalg.generic`` that nobody uses, such as the indices of torch's maximum.


def drop_unused_results(payload: TensorPayload) -> None:
    """Rebuilds generics without the results that nobody uses, where the others do not need them; in place."""
    for op in payload.ops:
        if op.name == GENERIC and len(op.results) > 1:
            kept = [number for number, each in enumerate(op.results) if list(each.uses)]
            if 0 < len(kept) < len(op.results) and _can_keep(op, kept):
                _rebuild(op, kept)


def _can_keep(op: Op, kept: list[int]) -> bool:
    """Returns whether the kept results, and what has effects, are computed without the dropped ones."""
    end, inputs = body_of(op)[-1], len(op.operands) - len(op.results)
    arguments = op.regions[0].blocks[0].arguments
    dropped = [arguments[inputs + number] for number in range(len(op.results)) if number not in kept]
    effects = [value for each in body_of(op)[:-1] if not len(each.results) for value in each.operands]
    needed = _needed([*(end.operands[number] for number in kept), *effects])
    return not any(value in needed for value in dropped)


def _needed(values: Iterable[Value]) -> set[Value]:
    found: set[Value] = set()
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if value in found:
            continue
        found.add(value)
        op = defining(value)
        waiting += [] if op is None else list(op.operands)
    return found


def _rebuild(op: Op, kept: list[int]) -> None:
    count = len(op.operands) - len(op.results)
    places = [*range(count), *(count + number for number in kept)]
    attributes = attributes_of(op)
    attributes["indexing_maps"] = maps_attribute([maps_of(op)[number] for number in places])
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([count, len(kept)])
    with ir.InsertionPoint(op), op.location:
        new = ir.Operation.create(
            GENERIC,
            results=[op.results[number].type for number in kept],
            operands=[op.operands[number] for number in places],
            attributes=attributes,
            regions=1,
        )
    block = op.regions[0].blocks[0]
    for number, result in zip(kept, new.results, strict=True):
        op.results[number].replace_all_uses_with(result)
    block.append_to(new.regions[0])
    op.erase()
    _cut_body(new, count, kept)


def _cut_body(new: Op, inputs: int, kept: list[int]) -> None:
    block = new.regions[0].blocks[0]
    end = body_of(new)[-1]
    values = [end.operands[number] for number in kept]
    end.erase()
    with ir.InsertionPoint(block), ir.Location.unknown():
        create("linalg.yield", [], values)
    for each in reversed(body_of(new)[:-1]):
        if len(each.results) and not any(list(result.uses) for result in each.results):
            each.erase()
    for number in reversed(range(len(block.arguments) - inputs)):
        if number not in kept:
            block.erase_argument(inputs + number)


NARROW = "bf16"
PLACED = (EXPAND, COLLAPSE, INSERT, CONCAT)  # move elements, and read no other numbers than their operands'
Wide = dict[Value, Value]  # tensor of bf16 -> the same numbers of f32


def widen_convolutions(payload: TensorPayload, *, keeps_pairs: bool = False) -> None:
    """Replaces convolutions of bf16 by those of the extended operands, in place.

    The schedules of these convolutions are then those of f32. The product of two bf16 numbers is exact in
    f32, and sums are of f32 either way, so nothing is rounded differently. The input is extended where it is
    padded or concatenated, so that the operation that computes it can write it so; weights are extended
    once, when the program is loaded.

        %p = tensor.pad %x ... : tensor<1x8x12x12xbf16> to tensor<1x8x14x14xbf16>
        %r = linalg.conv_2d_nchw_fchw ins(%p, %w : tensor<1x8x14x14xbf16>, tensor<16x8x3x3xbf16>) ...
      becomes
        %x32 = linalg.generic ins(%x)  // arith.extf
        %p32 = tensor.pad %x32 ... : tensor<1x8x12x12xf32> to tensor<1x8x14x14xf32>
        %w32 = linalg.generic ins(%w)  // arith.extf
        %r = linalg.conv_2d_nchw_fchw ins(%p32, %w32 : tensor<1x8x14x14xf32>, ...) outs(%zeros ...)

    A convolution whose result is bf16 sums in f32 too, and is rounded once.

    ``keeps_pairs``: the processor has dot products of bf16, and convolutions that sum over channels keep
    operands of bf16: their schedule pairs channels. Depthwise ones, those of one channel and those of a
    tensor of one number are of f32 there too.
    """
    wide: Wide = {}
    for op in payload.ops:
        if op.name in CONVOLUTIONS and any(_is_narrow(each) for each in op.operands):
            _replace_convolution(op, wide, keeps=keeps_pairs and _has_pairs(op))


def _has_pairs(op: Op) -> bool:
    """Returns whether a convolution sums over channels of bf16 that lie in memory."""
    form, (given, weights) = convolution_form(op), list(op.operands)[:2]
    if form.is_depthwise or weights.type.shape[form.weights.index("c")] == 1:
        return False
    sources = [source_of(each, VIEWS) for each in (given, weights)]
    return all(_is_narrow(each) and op_of(each, *FREE) is None for each in sources)


def _is_narrow(tensor: Value) -> bool:
    return str(tensor.type.element_type) == NARROW


def _replace_convolution(op: Op, wide: Wide, *, keeps: bool) -> None:
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


EXTEND = "arith.extf"


def widen_parameters(payload: TensorPayload, first_weight: int) -> None:
    """Replaces weights of bf16 that elementwise operations repeat and only extend, in place.

    A weight that is repeated, such as a bias or the scale of a norm, is extended again for each element of
    the result; as f32 it is extended once, when the program is loaded. The numbers are the same.
    ``first_weight``: the number of the first argument of the program that is a weight.

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
        if op.name != GENERIC:
            continue
        for number, tensor in enumerate(inputs_of(op)):
            if _is_repeated_weight(op, tensor, weights) and _is_only_extended(op, number):
                _replace_parameter(op, number, wide)


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


def _replace_parameter(op: Op, number: int, wide: Wide) -> None:
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
