"""Makes matmuls of convolutions with a window of one element over large images.

A schedule of convolutions reads some pixels of one channel after the other, and channels of large images are
a page of memory or more apart. As a matmul, the image is a matrix of channels x pixels, of which whole rows
are read:

    %r = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x256x56x56xf32>, tensor<64x256x1x1xf32>) ...
  becomes
    %a = tensor.collapse_shape %w [[0], [1, 2, 3]] ... into tensor<64x256xf32>
    %b = tensor.collapse_shape %x [[0, 1], [2, 3]] ... into tensor<256x3136xf32>
    %c = linalg.matmul ins(%a, %b) ... -> tensor<64x3136xf32>
    %r = tensor.expand_shape %c [[0, 1], [2, 3]] ... into tensor<1x64x56x56xf32>

Not changed: strides, several images, padded inputs, and the layout NHWC, whose pixels have their channels
adjacent in memory.
"""

from tuner.core.element_types import number_type
from tuner.mlir.bindings import Op, ir
from tuner.mlir.rewrite.convolution_forms import convolution_form
from tuner.programs.op_groups.broadcast_matmuls import matmul
from tuner.programs.op_groups.generics import collapse, expand
from tuner.programs.op_groups.op_names import PAD, defining, inits_of
from tuner.programs.op_groups.payload import TensorPayload

NCHW = "linalg.conv_2d_nchw_fchw"
PAGE_BYTES = 4096  # of a channel: at 3136 bytes (28x28) convolutions were as fast, at 12544 a third as fast


def pointwise_as_matmuls(payload: TensorPayload) -> None:
    """Replaces convolutions of one pixel over large images by matmuls, in place."""
    for op in payload.ops:
        if op.name == NCHW and _is_pointwise(op) and _is_large(op):
            _replace(op)


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


def _replace(op: Op) -> None:
    x, weights = op.operands[:2]
    pixels = [[0, 1], [2, 3]]
    with ir.InsertionPoint(op), op.location:
        start = collapse(inits_of(op)[0], pixels)
        left, right = collapse(weights, [[0], [1, 2, 3]]), collapse(x, pixels)
        product = matmul(left, right, start)
        result = expand(product, pixels, op.results[0].type.shape)
    op.results[0].replace_all_uses_with(result)
    op.erase()
