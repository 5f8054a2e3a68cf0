"""Which convolutions become matmuls, and that they compute the same."""

import ml_dtypes
import numpy as np
import pytest

from tests.programs.fusions.grouped_execution import FusedFunction, formed, host_function
from tests.texts import text_beside
from tuner.core.fusions import CONTRACTION, CONVOLUTION

pytestmark = pytest.mark.mlir


def payload(images: int = 1, side: int = 32, stride: int = 1) -> str:
    """Returns a convolution of one pixel of 3 channels to 8, its weights an argument, and what follows it."""
    text = text_beside(__file__, "CONVOLUTION").replace("IMAGES", str(images)).replace("SIDE", str(side))
    return text.replace("STRIDE", str(stride)).replace("ROWS", str(side // stride))


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


# Weights of bf16 that elementwise operations only extend: extended when a program is loaded.

BIAS = np.array([1.5, -0.25, 3.0, 0.0078125], np.float32)
EXTENDED = text_beside(__file__, "EXTENDED")
DOUBLED = text_beside(__file__, "DOUBLED")


def wide_parameters_payload(
    body: str = EXTENDED, *, shape: str = "4", weight: str = "(i, j) -> (j)", constant: bool = True
) -> str:
    """Returns x + bias, where the bias is of bf16, a constant or an argument."""
    kind = f"tensor<{shape}xbf16>"
    numbers = BIAS.tolist() if shape == "4" else [BIAS.tolist()] * 8
    read = f"%b = arith.constant dense<{numbers}> : {kind}" if constant else ""
    text = text_beside(__file__, "BIAS").replace("READ", read).replace("BODY", body)
    text = text.replace("MORE", "" if constant else f", %b: {kind}")
    return text.replace("KIND", kind).replace("WEIGHT", weight)


def elements(text: str) -> list[list[str]]:
    return [[view.type.element for view in fusion.inputs] for fusion in formed(text).program.fusions]


def test_a_weight_that_is_repeated_is_read_as_f32() -> None:
    assert elements(wide_parameters_payload()) == [["f32", "f32"]]
    assert "arith.extf" in formed(wide_parameters_payload()).program.init


def test_the_numbers_are_the_same() -> None:
    x = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
    (found,) = FusedFunction(formed(wide_parameters_payload()))(x)
    np.testing.assert_array_equal(found, x + BIAS)


@pytest.mark.parametrize(
    "text",
    [
        wide_parameters_payload(constant=False),  # not known when the program is loaded
        wide_parameters_payload(
            shape="8x4", weight="(i, j) -> (i, j)"
        ),  # as large as the result: more bytes to read
        wide_parameters_payload(DOUBLED),
    ],
)
def test_others_stay_bf16(text: str) -> None:
    assert elements(text) == [["f32", "bf16"]]


def test_an_argument_is_extended_at_each_call() -> None:
    x = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
    (found,) = FusedFunction(formed(wide_parameters_payload(constant=False)))(
        x, BIAS.astype(ml_dtypes.bfloat16)
    )
    np.testing.assert_array_equal(found, x + BIAS)
