"""What the letters of a convolution's dimensions say."""

import pytest

from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.ir.linalg import ConvolutionForm, convolution_form
from tuner.mlir.ir.reading import walk

pytestmark = pytest.mark.mlir

TEXT = """func.func @f(%x: tensor<1x3x9xf32>, %w: tensor<8x3x2xf32>, %y: tensor<1x8x3xf32>) {
  %r = linalg.conv_1d_ncw_fcw {strides = dense<2> : tensor<1xi64>, dilations = dense<4> : tensor<1xi64>}
    ins(%x, %w : tensor<1x3x9xf32>, tensor<8x3x2xf32>) outs(%y : tensor<1x8x3xf32>) -> tensor<1x8x3xf32>
  return
}"""


def test_a_form_has_the_dimensions_and_steps_of_its_op() -> None:
    with transform.new_context(), ir.Location.unknown():
        module = transform.parse(TEXT, "payload")
        (op,) = walk(module, "linalg.conv_1d_ncw_fcw")
        assert convolution_form(op) == ConvolutionForm("ncW", "fcw", "nfW", (2,), (4,))


def test_a_depthwise_convolution_sums_over_its_window_only() -> None:
    usual = ConvolutionForm("ncHW", "fchw", "nfHW", (1, 1), (1, 1))
    depthwise = ConvolutionForm("nHWc", "hwc", "nHWc", (1, 1), (1, 1))
    assert (usual.is_depthwise, usual.reduced, usual.filters) == (False, "hwc", "f")
    assert (depthwise.is_depthwise, depthwise.reduced, depthwise.filters) == (True, "hw", "c")
