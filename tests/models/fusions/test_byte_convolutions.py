"""Convolutions of i8 that is extended to i32: with dot products of bytes they read i8, and are exact."""

from typing import Any

import numpy as np
import pytest

import tuner
from tests.models.file_check import filled
from tests.models.fusions.host_execution import formed
from tuner.core.fusions import CONVOLUTION

FIRST = "nchw_fchw"  # channels before pixels
LAST = "nhwc_hwcf"


def text_of(
    layout: str = FIRST, channels: int = 16, stride: int = 1, extend: str = "arith.extsi", number: int = 0
) -> str:
    """Returns a program: 6 x 7 pixels, padded by one pixel of ``number``, a window of 3 x 3, 5 filters."""
    pixels = "6x7" if stride == 1 else "3x4"
    shapes = {
        "image": f"2x{channels}x6x7",
        "around": "0, 0, 1, 1",
        "padded": f"2x{channels}x8x9",
        "window": f"5x{channels}x3x3",
        "result": f"2x5x{pixels}",
    }
    if layout == LAST:
        shapes = {
            "image": f"2x6x7x{channels}",
            "around": "0, 1, 1, 0",
            "padded": f"2x8x9x{channels}",
            "window": f"3x3x{channels}x5",
            "result": f"2x{pixels}x5",
        }
    options = {"layout": layout, "stride": stride, "extend": extend, "number": number}
    return filled(__file__, "CONVOLUTION_OF_BYTES", **options, **shapes)


def sums_of(x: Any, w: Any, layout: str, stride: int) -> Any:
    """Returns the convolution of integers, padded by a pixel of zeros, in the layout of its operands."""
    if layout == LAST:
        x = x.transpose(0, 3, 1, 2)
        w = w.transpose(3, 2, 0, 1)
    padded = np.pad(x.astype(np.int32), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    sums = np.einsum("nchwij,fcij->nfhw", windows[:, :, ::stride, ::stride], w.astype(np.int32))
    if layout == LAST:
        return sums.transpose(0, 2, 3, 1)
    return sums


def elements_read(text: str, *, multiplies_bytes: bool = True) -> list[str]:
    fusions = formed(text, multiplies_bytes=multiplies_bytes).program.fusions
    (fusion,) = [each for each in fusions if each.kind == CONVOLUTION]
    return [buffer.type.element for buffer in fusion.inputs]


@pytest.mark.parametrize(
    ("layout", "stride", "channels"),
    [
        (FIRST, 1, 16),
        (LAST, 1, 3),
        (FIRST, 1, 3),
        (FIRST, 2, 3),
        (FIRST, 2, 16),
        (LAST, 1, 16),
        (LAST, 2, 16),
    ],
)
def test_a_convolution_of_extended_bytes_reads_bytes_and_is_exact(
    layout: str, stride: int, channels: int
) -> None:
    text = text_of(layout, channels, stride)
    is_short = (layout, stride, channels) == (FIRST, 1, 3)  # loops are faster
    assert elements_read(text) == ["i32" if is_short else "i8"] * 2
    image = (2, channels, 6, 7)
    window = (5, channels, 3, 3)
    if layout == LAST:
        image = (2, 6, 7, channels)
        window = (3, 3, channels, 5)
    rng = np.random.default_rng(channels)
    x = rng.integers(-128, 128, image, np.int8)
    w = rng.integers(-128, 128, window, np.int8)
    x[0] = w[:2] = -128  # the largest products, all of one sign
    made = tuner.compile_program(text)(x, w)
    found = made[0] if isinstance(made, tuple) else made
    np.testing.assert_array_equal(found, sums_of(x, w, layout, stride))


@pytest.mark.parametrize(
    "changes", [{"extend": "arith.extui"}, {"number": 1}], ids=["unsigned", "ones around"]
)
def test_other_convolutions_of_integers_stay_wide(changes: dict[str, Any]) -> None:
    assert elements_read(text_of(**changes)) == ["i32"] * 2


def test_without_dot_products_of_bytes_a_convolution_of_bytes_stays_wide() -> None:
    assert elements_read(text_of(), multiplies_bytes=False) == ["i32"] * 2
