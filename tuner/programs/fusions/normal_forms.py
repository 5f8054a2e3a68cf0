"""Brings the operations of a program into the few forms that fusions are formed of, in place."""

from math import prod

from tuner.core.dtypes import number_type
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ir.building import create, filled, recreated, value
from tuner.mlir.ir.convolutions import convolution_form
from tuner.mlir.ir.reading import maps_in, op_of, source_of, users_of, walk_where
from tuner.mlir.passes import run_passes
from tuner.mlir.transform import apply_script, parse
from tuner.programs.fusions import operations
from tuner.programs.fusions.generics import (
    collapse,
    converted,
    empty,
    expand,
    extended,
    maps_attribute,
    transposed,
)
from tuner.programs.fusions.matmul_forms import add_body, is_plain, is_transposed, matmul
from tuner.programs.fusions.payload import TensorPayload
from tuner.programs.fusions.views import YIELD, number_of, padding_number

# Elementwise operations, transposes and broadcasts become ``linalg.generic``; matmuls, convolutions and
# pooling stay named. Dimensions of size 1 are folded away. ``linalg-fuse-elementwise-ops`` is not run on the
# whole program: with reshapes it makes generics of matmuls, and computes a layer norm again for each column
# of the matmul that reads it.

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
INLINE_NUMBERS = "builtin.module(func.func(linalg-inline-scalar-operands))"
CLEAN_UP = f"builtin.module({CLEAN})"
# Parts of names of operations that stay: contractions and windows, then what must not or cannot be generic.
WINDOWS_AND_SUMS = ("matmul", "conv", "pooling", "winograd", "mmt4d")
KEPT = (*WINDOWS_AND_SUMS, "fill", "generic", "index", "yield", "softmax", "pack")
NCHW = "linalg.conv_2d_nchw_fchw"
# Element types of the operands and the sums that a matmul of a fusion may have.
PRODUCT_TYPES = (("f32",) * 3, ("f64",) * 3, ("bf16",) * 2 + ("f32",))
PAGE_BYTES = 4096  # of a channel: at 3136 bytes (28x28) convolutions were as fast, at 12544 a third as fast
NARROW = ("bf16", "f16")
PLACED = (
    operations.EXPAND,
    operations.COLLAPSE,
    operations.INSERT,
    operations.CONCAT,
)  # move elements, and read no other numbers than their operands'
Wide = dict[Value, Value]  # tensor of bf16 -> the same numbers of f32
EXTEND = "arith.extf"


def prepare(module: ir.Module) -> None:
    """Converts elementwise operations on tensors to ``linalg.generic``, and removes duplicates, in place."""
    run_passes(module, PREPARE)


def generalize(module: ir.Module) -> None:
    """Makes ``linalg.generic`` of named operations other than contractions and windows, in place.

    Also of fills whose number is not a constant. Fills with a constant stay: each fusion that reads one gets
    its own copy.
    """
    ops = walk_where(module, _is_generalized)
    if not ops:
        return
    for op in ops:
        op.attributes[MARK] = ir.UnitAttr.get()
    apply_script(module, parse(GENERALIZE, "generalize"))
    run_passes(module, INLINE_NUMBERS)
    for op in walk_where(module, lambda op: MARK in op.attributes):
        del op.attributes[MARK]


def _is_generalized(op: Op) -> bool:
    if op.name in operations.MATMULS:
        return not is_plain(op) and not is_transposed(op)  # of broadcast operands
    if op.name == operations.FILL:
        return op_of(op.operands[0], operations.CONSTANT) is None
    if not op.name.startswith("linalg.") or op.name == operations.GENERIC:
        return False
    name = op.name.removeprefix("linalg.")
    return not any(kept in name for kept in KEPT)


def fold_unit_dimensions(module: ir.Module) -> None:
    """Drops loops and dimensions of size 1 of ``linalg.generic``, in place; reshapes connect what remains."""
    run_passes(module, FOLD_UNIT_DIMENSIONS)


def clean_up(module: ir.Module) -> None:
    """Removes pairs of reshapes that cancel, duplicate operations and unused operations, in place."""
    run_passes(module, CLEAN_UP)


def pointwise_as_matmuls(payload: TensorPayload) -> None:
    """Replaces 1x1 convolutions over large images by matmuls, in place.

    A schedule of convolutions reads some pixels of each channel, and channels are a page of memory or more
    apart; a matmul reads whole rows of a matrix of channels x pixels:

        %r = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x256x56x56xf32>, tensor<64x256x1x1xf32>) ...
      becomes
        %a = tensor.collapse_shape %w [[0], [1, 2, 3]] ... into tensor<64x256xf32>
        %b = tensor.collapse_shape %x [[0, 1], [2, 3]] ... into tensor<256x3136xf32>
        %c = linalg.matmul ins(%a, %b) ... -> tensor<64x3136xf32>
        %r = tensor.expand_shape %c [[0, 1], [2, 3]] ... into tensor<1x64x56x56xf32>

    Not changed: strides, several images, padded inputs, and the layout NHWC, whose channels are adjacent.
    """
    for op in payload.ops:
        if op.name != NCHW:
            continue
        x, weights = op.operands[:2]
        images, _, height, width = x.type.shape
        is_pointwise = list(weights.type.shape[2:]) == [1, 1] and convolution_form(op).strides == (1, 1)
        channel_bytes = height * width * number_type(str(x.type.element_type)).bytes
        if (
            not is_pointwise
            or images != 1
            or op_of(x, operations.PAD) is not None
            or channel_bytes < PAGE_BYTES
        ):
            continue
        pixels = [[0, 1], [2, 3]]
        with ir.InsertionPoint(op), op.location:
            start = collapse(operations.inits_of(op)[0], pixels)
            left = collapse(weights, [[0], [1, 2, 3]])
            right = collapse(x, pixels)
            result = expand(matmul(left, right, start), pixels, op.results[0].type.shape)
        op.results[0].replace_all_uses_with(result)
        op.erase()


def single_pixels_as_matmuls(payload: TensorPayload) -> None:
    """Replaces convolutions whose window covers the whole image by matmuls, in place.

    Each image gives one pixel, so an element of the weights is used once per image, and a schedule of
    convolutions, which keeps weights in registers for many pixels, has nothing to keep. The 1x1 convolutions
    of squeeze-and-excitation are of this kind:

        %r = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<2x168x1x1xf32>, tensor<672x168x1x1xf32>) ...
      becomes
        %a = tensor.collapse_shape %x [[0], [1, 2, 3]] ... into tensor<2x168xf32>
        %b = tensor.collapse_shape %w [[0], [1, 2, 3]] ... into tensor<672x168xf32>
        %t = linalg.generic ins(%b)  // transposed: of a weight, once
        %c = linalg.matmul ins(%a, %t) ... -> tensor<2x672xf32>
        %r = tensor.expand_shape %c [[0], [1, 2, 3]] ... into tensor<2x672x1x1xf32>

    Not changed: groups, padded inputs, and types that no schedule of matmuls takes.
    """
    for op in payload.ops:
        if op.name in operations.CONVOLUTIONS and _is_single_pixel(op):
            _as_matmul(op)


def _is_single_pixel(op: Op) -> bool:
    form = convolution_form(op)
    (x, weights, start) = list(op.operands)
    if form.is_depthwise or "g" in form.weights or op_of(x, operations.PAD) is not None:
        return False
    types = tuple(str(operand.type.element_type) for operand in (x, weights, start))
    if types not in PRODUCT_TYPES:
        return False
    image = [size for size, name in zip(x.type.shape, form.input, strict=True) if name in "DHW"]
    window = [size for size, name in zip(weights.type.shape, form.weights, strict=True) if name in "dhw"]
    return image == window and prod(image) > 0


def _as_matmul(op: Op) -> None:
    form = convolution_form(op)
    (x, weights, start) = list(op.operands)
    rank = len(form.weights)
    rows = [[0], [*range(1, rank)]]  # an image or a filter each
    columns = [[*range(rank - 1)], [rank - 1]]
    with ir.InsertionPoint(op), op.location:
        if form.weights[0] == form.filters:
            right = transposed(collapse(weights, rows), [1, 0])
        else:
            right = collapse(weights, columns)
        result = matmul(collapse(x, rows), right, collapse(start, rows))
        whole = expand(result, rows, op.results[0].type.shape)
    op.results[0].replace_all_uses_with(whole)
    op.erase()


def drop_unused_results(payload: TensorPayload) -> None:
    """Rebuilds each ``linalg.generic`` without results that nothing reads, in place.

    A result stays where the body needs it for another result.
    """
    for op in payload.ops:
        if op.name == operations.GENERIC and len(op.results) > 1:
            kept = [number for number, result in enumerate(op.results) if list(result.uses)]
            if 0 < len(kept) < len(op.results) and _can_keep(op, kept):
                _rebuild(op, kept)


def _can_keep(op: Op, kept: list[int]) -> bool:
    """Returns whether the kept results, and what has effects, are computed without the dropped ones."""
    end = operations.body_of(op)[-1]
    inputs = len(op.operands) - len(op.results)
    arguments = op.regions[0].blocks[0].arguments
    dropped = [arguments[inputs + number] for number in range(len(op.results)) if number not in kept]
    effects: list[Value] = []
    for inner in operations.body_of(op)[:-1]:
        if not len(inner.results):
            effects += inner.operands
    needed: set[Value] = set()
    waiting = [*(end.operands[number] for number in kept), *effects]
    while waiting:
        value = waiting.pop()
        if value not in needed:
            needed.add(value)
            producer = operations.defining(value)
            waiting += [] if producer is None else list(producer.operands)
    return not any(value in needed for value in dropped)


def _rebuild(op: Op, kept: list[int]) -> None:
    count = len(op.operands) - len(op.results)
    places = [*range(count), *(count + number for number in kept)]
    with ir.InsertionPoint(op), op.location:
        new = recreated(
            op,
            [op.results[number].type for number in kept],
            [op.operands[number] for number in places],
            indexing_maps=maps_attribute([maps_in(op)[number] for number in places]),
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([count, len(kept)]),
        )
    for number, result in zip(kept, new.results, strict=True):
        op.results[number].replace_all_uses_with(result)
    op.regions[0].blocks[0].append_to(new.regions[0])
    op.erase()
    block = new.regions[0].blocks[0]
    end = operations.body_of(new)[-1]
    values = [end.operands[number] for number in kept]
    end.erase()
    with ir.InsertionPoint(block), ir.Location.unknown():
        create("linalg.yield", [], values)
    # what only the dropped results needed
    for inner in reversed(operations.body_of(new)[:-1]):
        if len(inner.results) and not any(list(result.uses) for result in inner.results):
            inner.erase()
    for number in reversed(range(len(block.arguments) - count)):
        if number not in kept:
            block.erase_argument(count + number)


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
    (given, weights) = list(op.operands)[:2]
    if form.is_depthwise or weights.type.shape[form.weights.index("c")] == 1:
        return False
    sources = [source_of(operand, operations.VIEWS) for operand in (given, weights)]
    elements = {str(source.type.element_type) for source in sources}
    return elements == {"bf16"} and all(op_of(source, *operations.FREE) is None for source in sources)


def _is_narrow(tensor: Value) -> bool:
    return str(tensor.type.element_type) in NARROW


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
        return filled(constant, empty(tensor.type.shape, constant.type))


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
        for number, tensor in enumerate(operations.inputs_of(op)):
            if not _is_repeated_weight(op, tensor, weights):
                continue
            argument = op.regions[0].blocks[0].arguments[number]
            readers = users_of(argument)
            is_extended = [
                reader.name == EXTEND and isinstance(reader.results[0].type, ir.F32Type) for reader in readers
            ]
            if not readers or not all(is_extended):
                continue
            if tensor not in wide:
                wide[tensor] = extended(tensor)
            op.operands[number] = wide[tensor]
            argument.set_type(ir.F32Type.get())
            for reader in readers:
                reader.results[0].replace_all_uses_with(argument)
                reader.erase()


def _is_repeated_weight(op: Op, tensor: Value, weights: list[Value]) -> bool:
    source = source_of(tensor, operations.VIEWS)
    if not _is_narrow(tensor) or not isinstance(source, ir.BlockArgument):
        return False
    return source in weights and prod(tensor.type.shape) < prod(op.results[0].type.shape)
