"""Which convolutions become matmuls, and that they compute the same."""

import numpy as np
import pytest

from tests.programs.fusions.grouped_execution import FusedFunction, formed, host_function
from tuner.core.fusions import CONTRACTION, CONVOLUTION

pytestmark = pytest.mark.mlir

WEIGHTS = "tensor<8x3x1x1xf32>"


def payload(images: int = 1, side: int = 32, stride: int = 1) -> str:
    """Returns a convolution of one pixel of 3 channels to 8, its weights an argument, and what follows it."""
    x, y = (
        f"tensor<{images}x3x{side}x{side}xf32>",
        f"tensor<{images}x8x{side // stride}x{side // stride}xf32>",
    )
    return f"""func.func @main(%x: {x}, %w: {WEIGHTS}) -> {y} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {y}
  %zeros = linalg.fill ins(%zero : f32) outs(%e : {y}) -> {y}
  %c = linalg.conv_2d_nchw_fchw {{
    dilations = dense<1> : tensor<2xi64>, strides = dense<{stride}> : tensor<2xi64>}}
    ins(%x, %w : {x}, {WEIGHTS}) outs(%zeros : {y}) -> {y}
  %r = linalg.generic {{
    indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel"]
  }} ins(%c : {y}) outs(%e : {y}) {{
    ^bb0(%one: f32, %before: f32):
      %most = arith.maximumf %one, %zero : f32
      linalg.yield %most : f32
  }} -> {y}
  return %r : {y}
}}"""


@pytest.mark.parametrize(
    ("sizes", "kind"),
    [
        ((1, 32, 1), CONTRACTION),
        ((1, 28, 1), CONVOLUTION),  # rows of channels are less than a page
        ((2, 32, 1), CONVOLUTION),
        ((1, 64, 2), CONVOLUTION),
    ],
)
def test_one_large_image_without_strides_is_a_matmul(sizes: tuple[int, int, int], kind: str) -> None:
    (fusion,) = formed(payload(*sizes)).program.fusions
    assert fusion.kind == kind


def test_the_matmul_computes_the_convolution_and_what_follows() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 3, 32, 32)).astype(np.float32)
    w = rng.standard_normal((8, 3, 1, 1)).astype(np.float32)
    (found,) = FusedFunction(formed(payload()))(x, w)
    assert found.shape == (1, 8, 32, 32)
    np.testing.assert_allclose(found, host_function(payload())(x, w), rtol=1e-5, atol=1e-5)
