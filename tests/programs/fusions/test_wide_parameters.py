"""Weights of bf16 that elementwise operations only extend: extended when a program is loaded."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.programs.fusions.grouped_execution import FusedFunction, formed

pytestmark = pytest.mark.mlir

Array = Any
BIAS = np.array([1.5, -0.25, 3.0, 0.0078125], np.float32)
EXTENDED = """%wide = arith.extf %two : bf16 to f32
      %sum = arith.addf %one, %wide : f32
      linalg.yield %sum : f32"""

DOUBLED = """%twice = arith.addf %two, %two : bf16
      %wide = arith.extf %twice : bf16 to f32
      %sum = arith.addf %one, %wide : f32
      linalg.yield %sum : f32"""


def payload(
    body: str = EXTENDED, *, shape: str = "4", weight: str = "(i, j) -> (j)", constant: bool = True
) -> str:
    """Returns x + bias, where the bias is of bf16, a constant or an argument."""
    kind = f"tensor<{shape}xbf16>"
    numbers = BIAS.tolist() if shape == "4" else [BIAS.tolist()] * 8
    read = f"%b = arith.constant dense<{numbers}> : {kind}" if constant else ""
    return f"""func.func @main(%x: tensor<8x4xf32>{"" if constant else f", %b: {kind}"}) -> tensor<8x4xf32> {{
  {read}
  %e = tensor.empty() : tensor<8x4xf32>
  %r = linalg.generic {{
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<{weight}>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  }} ins(%x, %b : tensor<8x4xf32>, {kind}) outs(%e : tensor<8x4xf32>) {{
    ^bb0(%one: f32, %two: bf16, %before: f32):
      {body}
  }} -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}}"""


def elements(text: str) -> list[list[str]]:
    return [[view.type.element for view in fusion.inputs] for fusion in formed(text).program.fusions]


def test_a_weight_that_is_repeated_is_read_as_f32() -> None:
    assert elements(payload()) == [["f32", "f32"]]
    assert "arith.extf" in formed(payload()).program.init


def test_the_numbers_are_the_same() -> None:
    x = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
    (found,) = FusedFunction(formed(payload()))(x)
    np.testing.assert_array_equal(found, x + BIAS)


@pytest.mark.parametrize(
    "text",
    [
        payload(constant=False),  # not known when the program is loaded
        payload(shape="8x4", weight="(i, j) -> (i, j)"),  # as large as the result: more bytes to read
        payload(DOUBLED),
    ],
)
def test_others_stay_bf16(text: str) -> None:
    assert elements(text) == [["f32", "bf16"]]


def test_an_argument_is_extended_at_each_call() -> None:
    x = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
    (found,) = FusedFunction(formed(payload(constant=False)))(x, BIAS.astype(ml_dtypes.bfloat16))
    np.testing.assert_array_equal(found, x + BIAS)
