"""Makes 1x1 convolutions, and convolutions of single pixels, what schedules compute faster, in place.

Slices of the pixels that are read (``read_pixels_as_slices``), matmuls (``pointwise_as_matmuls``,
``single_pixels_as_matmuls``), convolutions of rows of pixels (``pointwise_as_rows``). Only the order of sums
may change. ``pipeline.form_text`` says in which order the steps run.
"""

from math import prod

import numpy as np

from tuner.core.dtypes import number_type
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions.convolutions import convolution_form
from tuner.mlir.fusions.operations import CONVOLUTIONS, PAD, SLICE, inits_of
from tuner.mlir.ir.building import value
from tuner.mlir.ir.reading import op_of
from tuner.models.fusions.generics import collapse, expand, transposed
from tuner.models.fusions.matmul_forms import add_body, matmul
from tuner.models.fusions.payload import TensorPayload

NCHW = "linalg.conv_2d_nchw_fchw"
NCW = "linalg.conv_1d_ncw_fcw"
# Element types of the operands and the sums that a matmul of a fusion may have.
PRODUCT_TYPES = (("f32",) * 3, ("f64",) * 3, ("bf16",) * 2 + ("f32",), ("i8",) * 2 + ("i32",))
# Of a channel: at 3136 bytes (28x28) convolutions were as fast, by 256 bits of 40 filters 0.8 times as fast;
# at 784 bytes they were faster, at 12544 a third as fast.
LARGE_BYTES = 3136
LANES = 16  # f32 of a register of AVX-512
FILTERS_OF_ONE_TILE = 64  # at most: more registers per pixel leave too few pixels in registers


def read_pixels_as_slices(payload: TensorPayload) -> None:
    """Makes strided 1x1 convolutions of small images read a slice of the pixels that they need, in place.

    The slice is then a row of pixels (``pointwise_as_rows``); copying it takes less time than tiles of every
    second pixel of a few rows:

        %r = linalg.conv_2d_nchw_fchw {strides = dense<2>} ins(%x, %w : tensor<1x1024x14x14xf32>, ...) ...
      becomes
        %s = tensor.extract_slice %x[0, 0, 0, 0] [1, 1024, 7, 7] [1, 1, 2, 2] : ... to tensor<1x1024x7x7xf32>
        %r = linalg.conv_2d_nchw_fchw {strides = dense<1>} ins(%s, %w : tensor<1x1024x7x7xf32>, ...) ...

    Not changed: padded inputs, and images whose result is large.
    """
    for op in payload.ops:
        if op.name != NCHW:
            continue
        x, weights = op.operands[:2]
        steps = convolution_form(op).strides
        is_of_one = list(weights.type.shape[2:]) == [1, 1]
        if steps == (1, 1) or not is_of_one or op_of(x, PAD) is not None:
            continue
        pixels = op.results[0].type.shape[2:]
        if prod(pixels) * number_type(str(x.type.element_type)).bytes >= LARGE_BYTES:
            continue
        with ir.InsertionPoint(op), op.location:
            op.operands[0] = _slice_from_first(x, [*x.type.shape[:2], *pixels], [1, 1, *steps])
        op.attributes["strides"] = ir.DenseElementsAttr.get(np.ones(2, np.int64))


def _slice_from_first(tensor: Value, sizes: list[int], steps: list[int]) -> Value:
    """Creates the slice of a tensor from its first element on; returns its value."""
    result = ir.RankedTensorType.get(sizes, tensor.type.element_type)
    return value(
        SLICE,
        result,
        tensor,
        static_offsets=ir.DenseI64ArrayAttr.get([0] * len(sizes)),
        static_sizes=ir.DenseI64ArrayAttr.get(sizes),
        static_strides=ir.DenseI64ArrayAttr.get(steps),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
    )


def pointwise_as_matmuls(payload: TensorPayload) -> None:
    """Replaces 1x1 convolutions by matmuls, in place, over large images and by filters that fill no tile.

    A schedule of convolutions reads some pixels of each channel, and channels of a large image are about a
    page of memory or more apart; a matmul reads whole rows of a matrix of channels x pixels. And its tiles
    have a divisor of the number of filters, those of a matmul any number:

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
        channel_bytes = height * width * number_type(str(x.type.element_type)).bytes
        is_better = channel_bytes >= LARGE_BYTES or not _fill_tiles(weights.type.shape[0])
        if images != 1 or not is_better or not _is_pointwise(op):
            continue
        pixels = [[0, 1], [2, 3]]
        with ir.InsertionPoint(op), op.location:
            start = collapse(inits_of(op)[0], pixels)
            left = collapse(weights, [[0], [1, 2, 3]])
            right = collapse(x, pixels)
            result = expand(matmul(left, right, start), pixels, op.results[0].type.shape)
        op.results[0].replace_all_uses_with(result)
        op.erase()


def _fill_tiles(filters: int) -> bool:
    """Returns whether ``filters`` filters are few enough for one tile, or fill whole vector registers."""
    return filters <= FILTERS_OF_ONE_TILE or filters % LANES == 0


def pointwise_as_rows(payload: TensorPayload) -> None:
    """Replaces 1x1 convolutions of images by those of rows, each of all pixels of an image, in place.

    A tile of a schedule is pixels of one row, or whole rows: of 7 x 7 pixels too few, or some twice:

        %r = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x512x7x7xf32>, tensor<2048x512x1x1xf32>) ...
      becomes
        %a = tensor.collapse_shape %x [[0], [1], [2, 3]] ... into tensor<1x512x49xf32>
        %b = tensor.collapse_shape %w [[0], [1], [2, 3]] ... into tensor<2048x512x1xf32>
        %c = linalg.conv_1d_ncw_fcw ins(%a, %b) ... -> tensor<1x2048x49xf32>
        %r = tensor.expand_shape %c [[0], [1], [2, 3]] ... into tensor<1x2048x7x7xf32>

    Not changed: strides, padded inputs, single pixels, and the layout NHWC.
    """
    for op in payload.ops:
        if op.name != NCHW or not _is_pointwise(op):
            continue
        x, weights = op.operands[:2]
        if prod(x.type.shape[2:]) <= 1:
            continue
        pixels = [[0], [1], [2, 3]]
        with ir.InsertionPoint(op), op.location:
            start = collapse(inits_of(op)[0], pixels)
            row = _convolution_of_rows(collapse(x, pixels), collapse(weights, pixels), start)
            result = expand(row, pixels, op.results[0].type.shape)
        op.results[0].replace_all_uses_with(result)
        op.erase()


def _convolution_of_rows(x: Value, weights: Value, init: Value) -> Value:
    ones = ir.DenseElementsAttr.get(np.ones(1, np.int64))
    op = ir.Operation.create(
        NCW,
        results=[init.type],
        operands=[x, weights, init],
        attributes={
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 1]),
            "strides": ones,
            "dilations": ones,
        },
        regions=1,
    )
    add_body(op)
    return op.results[0]


def _is_pointwise(op: Op) -> bool:
    """Returns whether a window is one pixel, each pixel is read, and the image is not padded."""
    x, weights = op.operands[:2]
    is_of_one = list(weights.type.shape[2:]) == [1, 1] and convolution_form(op).strides == (1, 1)
    return is_of_one and op_of(x, PAD) is None


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
        if op.name in CONVOLUTIONS and _is_single_pixel(op):
            _as_matmul(op)


def _is_single_pixel(op: Op) -> bool:
    form = convolution_form(op)
    (x, weights, start) = list(op.operands)
    if form.is_depthwise or "g" in form.weights or op_of(x, PAD) is not None:
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
