"""Convolutions of bf16 read what was extended to f32: where that is, how often, and what they compute.

For processors with dot products of bf16, those that sum over channels stay as they are.
"""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tuner
from tests.programs.fusions.grouped_execution import FusedFunction, formed
from tests.texts import text_beside
from tuner.core.fusions import ARGUMENT, CONVOLUTION, ELEMENTWISE, TEMPORARY, WEIGHT, Fusion
from tuner.programs.run.fused_program import FusedFunction as CompiledFunction
from tuner.runtime.cpu.host import describe_machine

pytestmark = pytest.mark.mlir

Array = Any
X, W = "tensor<1x3x5x6xbf16>", "tensor<8x{channels}x3x3xbf16>"
JOINED = f"%x = tensor.concat dim(1) %x0, %x1 : ({X}, {X}) -> tensor<1x6x5x6xbf16>"
PAD = """%p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {{
    ^bb0(%i: index, %j: index, %k: index, %l: index):
      tensor.yield %padding : bf16
  }} : tensor<1x{channels}x5x6xbf16> to tensor<1x{channels}x7x8xbf16>"""
CONVOLVED = """%r{number} = linalg.conv_2d_nchw_fchw {{
    dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}}
    ins(%p, %w{number} : tensor<1x{channels}x7x8xbf16>, {w}) outs(%zeros : {y}) -> {y}"""


def drawn(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(ml_dtypes.bfloat16)


def weights(channels: int, number: int = 0) -> Array:
    return drawn(1 + number, 8, channels, 3, 3)


def payload(
    *, constant: bool = True, joined: bool = False, element: str = "f32", padding: float = 0, count: int = 1
) -> str:
    """Returns convolutions of x, which is padded, with weights of 3 or 6 channels to 8.

    ``constant``: the weights are constants; else an argument. ``joined``: x is two tensors of 3 channels.
    ``element``: of the sums. ``padding``: the number around x. ``count``: convolutions that read x.
    """
    channels = 6 if joined else 3
    w, y = W.format(channels=channels), f"tensor<1x8x5x6x{element}>"
    images = [f"%x0: {X}", f"%x1: {X}"] if joined else [f"%x: {X}"]
    numbers = [weights(channels, each).astype(np.float64).tolist() for each in range(count)]
    constants = [f"%w{each} = arith.constant dense<{numbers[each]}> : {w}" for each in range(count)]
    lines = [
        *(constants if constant else []),
        JOINED if joined else "",
        f"%padding = arith.constant {padding:.1f} : bf16",
        f"%zero = arith.constant 0.0 : {element}",
        PAD.format(channels=channels),
        f"%e = tensor.empty() : {y}",
        f"%zeros = linalg.fill ins(%zero : {element}) outs(%e : {y}) -> {y}",
        *(CONVOLVED.format(number=each, channels=channels, w=w, y=y) for each in range(count)),
        f"return {', '.join(f'%r{each}' for each in range(count))} : {', '.join([y] * count)}",
    ]
    arguments = ", ".join([*images, *([] if constant else [f"%w0: {w}"])])
    return f"func.func @main({arguments}) -> ({', '.join([y] * count)}) {{\n" + "\n".join(lines) + "\n}"


def convolved(x: Array, w: Array, padding: float = 0.0) -> Array:
    wide = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=padding)
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), axis=(2, 3))
    return np.einsum("nchwij,fcij->nfhw", windows, w.astype(np.float64))


def kinds(text: str) -> list[str]:
    return [fusion.kind for fusion in formed(text).program.fusions]


def elements_read(fusion: Fusion) -> list[str]:
    return [view.type.element for view in fusion.inputs]


def test_a_convolution_of_bf16_reads_f32_and_its_input_is_extended_into_the_padding() -> None:
    program = formed(payload()).program
    extension, convolution = program.fusions
    assert (extension.kind, convolution.kind) == (ELEMENTWISE, CONVOLUTION)
    assert extension.ops == ("arith.extf",)
    assert elements_read(extension) == ["bf16"]
    assert elements_read(convolution) == ["f32", "f32"]
    (padded,) = (each for each in program.buffers if each.owner == TEMPORARY)
    assert (padded.type.element, padded.type.shape, padded.padding) == ("f32", (3, 7, 8), 0.0)


def test_constant_weights_are_extended_when_a_program_is_loaded_and_arguments_at_each_call() -> None:
    found = formed(payload())
    assert [each.dtype for each in found.weights] == [ml_dtypes.bfloat16]
    assert "arith.extf" in found.program.init
    (weight,) = (each for each in found.program.buffers if each.owner == WEIGHT)
    assert weight.type.element == "f32"
    program = formed(payload(constant=False)).program
    assert program.init == ""
    assert kinds(payload(constant=False)) == [ELEMENTWISE, ELEMENTWISE, CONVOLUTION]
    assert [each.type.element for each in program.buffers if each.owner == ARGUMENT] == ["bf16", "bf16"]
    assert kinds(payload(count=2)) == [ELEMENTWISE, CONVOLUTION, CONVOLUTION]  # x is extended once
    assert kinds(payload(element="bf16")) == [ELEMENTWISE, CONVOLUTION]


def test_parts_of_a_concatenation_are_extended_into_their_places() -> None:
    fusions = formed(payload(joined=True)).program.fusions
    assert [fusion.ops for fusion in fusions[:-1]] == [("arith.extf",), ("arith.extf",)]
    assert len({fusion.outputs[0].buffer for fusion in fusions[:-1]}) == 1
    x, y = drawn(0, 1, 3, 5, 6), drawn(2, 1, 3, 5, 6)
    (found,) = FusedFunction(formed(payload(joined=True)))(x, y)
    expected = convolved(np.concatenate([x, y], 1), weights(6))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "multiplies_pairs"),
    [
        ({"padding": -2}, False),
        ({"padding": -2, "constant": False}, False),
        ({"element": "bf16"}, False),  # rounded once
        ({}, True),
        ({"element": "bf16"}, True),
    ],
)
def test_the_results_are_those_of_the_convolution(options: dict[str, Any], multiplies_pairs: bool) -> None:
    x, w, is_narrow = drawn(0, 1, 3, 5, 6), weights(3), options.get("element") == "bf16"
    inputs = (x,) if options.get("constant", True) else (x, w)
    (found,) = FusedFunction(formed(payload(**options), multiplies_pairs=multiplies_pairs))(*inputs)
    expected = convolved(x, w, options.get("padding", 0.0))
    np.testing.assert_allclose(
        found.astype(np.float64), expected, rtol=2**-8 if is_narrow else 1e-5, atol=1e-5
    )


def test_convolutions_over_channels_read_bf16_where_pairs_are_multiplied() -> None:
    program = formed(payload(), multiplies_pairs=True).program
    padding, convolution = program.fusions
    assert (padding.kind, padding.ops) == (ELEMENTWISE, ("linalg.copy",))
    assert elements_read(convolution) == ["bf16", "bf16"]
    assert program.init == ""


DEPTHWISE = text_beside(__file__, "DEPTHWISE")
OF_ONE_NUMBER = text_beside(__file__, "OF_ONE_NUMBER")


@pytest.mark.parametrize("text", [DEPTHWISE, OF_ONE_NUMBER])
def test_what_has_no_pairs_is_extended_on_every_processor(text: str) -> None:
    *_, convolution = formed(text, multiplies_pairs=True).program.fusions
    assert convolution.kind == CONVOLUTION
    assert "bf16" not in elements_read(convolution)


NHWC = text_beside(__file__, "NHWC")


@pytest.mark.slow
def test_channels_may_be_last() -> None:
    program = tuner.compile_program(NHWC, target="cpu")
    assert isinstance(program, CompiledFunction)
    extended = 0 if describe_machine().multiplies_pairs else 2
    assert [each.strategy for each in program.code.fusions] == [
        *["elementwise_cpu"] * extended,
        "convolution_cpu",
    ]
    x, w = drawn(0, 2, 7, 6, 3), drawn(1, 3, 3, 3, 32)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (3, 3), axis=(1, 2))
    expected = np.einsum("nhwcij,ijcf->nhwf", windows, w.astype(np.float64))
    np.testing.assert_allclose(program(x, w).astype(np.float64), expected, rtol=2**-8, atol=1e-4)
