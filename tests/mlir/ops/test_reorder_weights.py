"""``tuner.reorder_weights``: what a convolution becomes, how weights are taken, and what it refuses."""

import numpy as np
import pytest

from tests.mlir.kernels import counts, parsed
from tests.mlir.ops import block_runs
from tests.mlir.ops.one_op import apply
from tests.texts import filled
from tuner.mlir.bindings import ir
from tuner.mlir.ir.building import create
from tuner.models.ops.convolutions.channel_k_groups import channel_k_groups

LINE = '"tuner.reorder_weights"(%func) : (!transform.any_op) -> ()'
SHAPES = {  # name of a convolution -> input, weights, output; windows of 3, 8 filters
    "conv_1d_ncw_fcw": ("1x3x6", "8x3x3", "1x8x4"),
    "conv_2d_nchw_fchw": ("1x3x6x6", "8x3x3x3", "1x8x4x4"),
    "conv_2d_nhwc_hwcf": ("1x6x6x3", "3x3x3x8", "1x4x4x8"),
    "conv_2d_nhwc_fhwc": ("1x6x6x3", "8x3x3x3", "1x4x4x8"),
    "conv_2d_ngchw_gfchw": ("1x2x3x6x6", "2x8x3x3x3", "1x2x8x4x4"),
    "conv_3d_ncdhw_fcdhw": ("1x3x6x6x6", "8x3x3x3x3", "1x8x4x4x4"),
    "depthwise_conv_2d_nchw_chw": ("1x3x6x6", "3x3x3", "1x3x4x4"),
}


WEIGHT, MARK = " {tuner.weight}", "contraction, "


def payload(name: str = "conv_2d_nchw_fchw", weight: str = WEIGHT, mark: str = MARK, more: str = "") -> str:
    """Returns f(input, weights, output) with one convolution, of strides and dilations of 1."""
    x, w, y = SHAPES[name]
    ones = f"dense<1> : tensor<{int(name.split('conv_')[1][0])}xi64>"
    parts = {"x": x, "w": w, "weight": weight, "y": y, "more": more}
    return filled(__file__, "CONVOLUTION", **parts, name=name, mark=mark, ones=ones)


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("conv_1d_ncw_fcw", "2, 1, 0"),
        ("conv_2d_nhwc_fhwc", "1, 2, 3, 0"),
        ("conv_2d_ngchw_gfchw", "0, 3, 4, 2, 1"),
        ("conv_3d_ncdhw_fcdhw", "2, 3, 4, 1, 0"),
        ("conv_2d_nhwc_hwcf", ""),  # has this order
        ("depthwise_conv_2d_nchw_chw", ""),
    ],
)
def test_the_order_depends_on_the_layout(name: str, order: str) -> None:
    text = apply(LINE, payload(name))
    assert "linalg.generic" in text
    assert f"linalg.{name}" not in text
    assert (f"tuner.order = array<i64: {order}>" in text) if order else ("tuner.order" not in text)


def test_planes_between_planes_of_zeros_are_those_of_the_sums() -> None:
    text = payload("conv_3d_ncdhw_fcdhw")
    marked = text.replace("1x3x6x6x6xf32>", "1x3x6x6x6xf32> {tuner.zero_planes = array<i64: 1, 2>}", 1)
    assert "planes = array<i64: 2, 1, 4>" in apply(LINE, marked)
    assert " planes = " not in apply(LINE, text)


def narrow(text: str) -> str:
    head, call = text.split("linalg.", 1)
    operands, rest = call.split(" outs", 1)
    arguments, body = head.split("%y: ", 1)
    result, reads = body.split("%start = ", 1)
    arguments, operands = (each.replace("xf32", "xbf16") for each in (arguments, operands))
    inputs = result.replace("xf32", "xbf16").replace("xbf16>)", "xf32>)", 1)
    return f"{arguments}%y: {inputs}%start = {reads}linalg.{operands} outs{rest}"


@pytest.mark.parametrize("name", [each for each in SHAPES if "depthwise" not in each])
def test_weights_of_bf16_that_are_computed_become_k_groups_in_the_function(name: str) -> None:
    text = apply(LINE, narrow(payload(name, weight="")))
    assert "tuner." not in text.replace("tuner.weight", "")
    assert counts(text, "memref.alloc", "linalg.generic") == [2, 1]


@pytest.mark.parametrize("channels", [1, 30, 31, 32, 33, 62, 63, 64])
def test_the_last_pair_of_a_row_has_no_channel_of_the_next_pixel(channels: int) -> None:
    pairs = (channels + 1) // 2
    with parsed(filled(__file__, "ROWS", channels=channels, pairs=pairs)) as module:
        block = module.body.operations[0].regions[0].blocks[0]
        with ir.InsertionPoint(block.operations[0]), ir.Location.unknown():
            create("memref.copy", [], [channel_k_groups(block.arguments[0], 3), block.arguments[1]])
        text = str(module)
    bits = np.full((2, 1, 2, channels), 0x7FC0, np.uint16)  # NaN
    bits[:, :, 0] = np.arange(1, channels + 1)
    k_groups = np.full((2, 1, 2, pairs), 7, np.int32)
    block_runs.call(text, bits, k_groups)
    expected = np.zeros((2, 1, 2, 2 * pairs), np.uint16)
    expected[..., :channels] = bits
    np.testing.assert_array_equal(k_groups.view(np.uint16), expected)


def test_weights_that_are_computed_are_transposed_and_steps_are_part_of_the_index() -> None:
    """Strides and dilations."""
    text = apply(LINE, payload(weight=""))
    assert "memref<8x3x3x3xf32>" in text
    assert counts(text, "tuner.order", "linalg.generic") == [0, 2]
    text = payload().replace("strides = dense<1>", "strides = dense<[2, 3]>")
    text = text.replace("1x3x6x6", "1x3x9x14").replace("dilations = dense<1>", "dilations = dense<[1, 2]>")
    assert "(d0, d6, d2 * 2 + d4, d3 * 3 + d5 * 2)" in apply(LINE, text)


BECOMES = {"reorder_weights": (LINE, payload()), "reorder_weights_words": (LINE, narrow(payload()))}
SLICE = "%again = tensor.extract_slice %weights[0, 0, 0, 0] [1, 1, 1, 1] [1, 1, 1, 1]"
AGAIN = f"{SLICE} : tensor<8x3x3x3xf32> to tensor<1x1x1x1xf32>"
EMPTY = "%empty = tensor.empty() : tensor<1x3x6x6xbf16>"
DYNAMIC = payload().replace("1x8x4x4", "?x8x4x4").replace("1x3x6x6", "?x3x6x6")
OF_K_GROUPS = "allowed bf16 x bf16 x f32 or i8 x i8 x i32 that sums over"
ONE_USE = "found weights with a second use, allowed one"
DEPTHWISE = "depthwise_conv_2d_nchw_chw"
OF_BF16_SUMS = payload().replace("xf32", "xbf16")
COMPUTED = narrow(payload(more=EMPTY)).replace("ins(%input", "ins(%empty")
REFUSED = [
    (LINE, payload(mark=""), "found no convolution marked contraction, allowed conv_1d_ncw_fcw, "),
    (LINE, payload(more=AGAIN), ONE_USE),
    (LINE, DYNAMIC, "found linalg.conv_2d_nchw_fchw of dynamic sizes, allowed static sizes"),
    (LINE, narrow(payload(DEPTHWISE)), f"found bf16 x bf16 x f32 x {DEPTHWISE}, {OF_K_GROUPS}"),
    (LINE, OF_BF16_SUMS, f"found bf16 x bf16 x bf16 x conv_2d_nchw_fchw, {OF_K_GROUPS} channels"),
    (LINE, COMPUTED, "found bf16 that is computed in the fusion, allowed arguments"),
    (LINE, narrow(payload(more=AGAIN.replace("xf32", "xbf16"))), ONE_USE),
]
