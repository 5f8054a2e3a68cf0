"""Matmuls and convolutions become others, of narrower or wider numbers; other numbers stay as they are."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tuner
from tests.models.file_check import filled
from tests.models.fusions.host_execution import FusedFunction, formed
from tests.models.lowering.compiled import cpu_function
from tests.texts import text_beside
from tuner.core.fusions import ARGUMENT, CONTRACTION, CONVOLUTION, ELEMENTWISE, TEMPORARY, WEIGHT, Fusion
from tuner.models.fusions.pipeline import FormedProgram
from tuner.models.run.fused_program import FusedFunction as CompiledFunction
from tuner.runtime.cpu.host import describe_machine

pytestmark = pytest.mark.mlir
TURNED = {"shape": "5x6", "turn": text_beside(__file__, "TURN"), "right": "%t"}
PLAIN = {"shape": "6x5", "wide": "i32", "extend": "arith.extsi", "turn": "", "right": "%b_w", "cast": ""}


def drawn_bytes(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


def convolution(images: int = 1, side: int = 32, stride: int = 1, filters: int = 8) -> str:
    parts = {"images": images, "side": side, "stride": stride, "rows": side // stride, "filters": filters}
    return filled(__file__, "CONVOLUTION", **parts)


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def drawn(seed: int, *shape: int) -> Any:
    return normal(*shape, seed=seed).astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("sizes", [(1, 32, 1), (1, 28, 1), (1, 27, 1), (2, 32, 1), (1, 64, 2)])
def test_one_large_image_without_strides_is_a_matmul(sizes: tuple[int, int, int]) -> None:
    (fusion,) = formed(convolution(*sizes)).program.fusions
    assert fusion.kind == (CONTRACTION if sizes in ((1, 32, 1), (1, 28, 1)) else CONVOLUTION)


@pytest.mark.parametrize("images", [1, 2])
def test_a_pixel_of_the_window_makes_one_row_of_the_image_with_what_follows(images: int) -> None:
    text = convolution(images, 7)
    (fusion,) = formed(text).program.fusions
    assert fusion.kind == CONVOLUTION
    assert fusion.ops[0] == "linalg.conv_1d_ncw_fcw"
    x, w = normal(images, 3, 7, 7), normal(8, 3, 1, 1, seed=1)
    (found,) = FusedFunction(formed(text))(x, w)
    np.testing.assert_allclose(found, cpu_function(text)(x, w), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("images", [1, 2])
def test_the_pixels_that_a_strided_window_of_one_reads_are_copied_to_a_row(images: int) -> None:
    text = convolution(images, 14, 2)
    copy, fusion = formed(text).program.fusions
    assert (copy.kind, fusion.kind) == (ELEMENTWISE, CONVOLUTION)
    assert fusion.ops[0] == "linalg.conv_1d_ncw_fcw"
    x, w = normal(images, 3, 14, 14), normal(8, 3, 1, 1, seed=1)
    (found,) = FusedFunction(formed(text))(x, w)
    np.testing.assert_allclose(found, cpu_function(text)(x, w), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("filters", [60, 64, 65, 72, 80])
def test_filters_that_fill_no_tile_are_rows_of_a_matmul(filters: int) -> None:
    text = convolution(side=5, filters=filters)
    (fusion,) = formed(text).program.fusions
    assert fusion.kind == (CONTRACTION if filters in (65, 72) else CONVOLUTION)
    x, w = normal(1, 3, 5, 5), normal(filters, 3, 1, 1, seed=1)
    (found,) = FusedFunction(formed(text))(x, w)
    np.testing.assert_allclose(found, cpu_function(text)(x, w), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("images", [1, 3])
def test_a_convolution_of_the_whole_image_is_a_matmul_of_its_images(images: int) -> None:
    text = convolution(images, 1, 1)
    *transposed, fusion = formed(text).program.fusions  # weights that are constants are transposed once
    kinds = [] if images == 1 else [ELEMENTWISE]  # one row reads them as they are
    assert ([copy.kind for copy in transposed], fusion.kind) == (kinds, CONTRACTION)
    assert fusion.inputs[0].type.shape == (images, 3)
    x, w = normal(images, 3, 1, 1), normal(8, 3, 1, 1, seed=1)
    (found,) = FusedFunction(formed(text))(x, w)
    np.testing.assert_allclose(found, cpu_function(text)(x, w), rtol=1e-5, atol=1e-5)


def test_the_matmul_computes_the_convolution_and_what_follows() -> None:
    x, w = normal(1, 3, 32, 32), normal(8, 3, 1, 1, seed=1)
    (found,) = FusedFunction(formed(convolution()))(x, w)
    assert found.shape == (1, 8, 32, 32)
    np.testing.assert_allclose(found, cpu_function(convolution())(x, w), rtol=1e-5, atol=1e-5)


# Weights of bf16 that elementwise operations only extend: extended when a program is loaded.

BIAS = np.array([1.5, -0.25, 3.0, 0.0078125], np.float32)
EXTENDED = text_beside(__file__, "EXTENDED_BIAS")
DOUBLED = text_beside(__file__, "DOUBLED")


def with_bias(body: str = EXTENDED, *, shape: str = "4", constant: bool = True) -> str:
    kind, numbers = f"tensor<{shape}xbf16>", BIAS.tolist() if shape == "4" else [BIAS.tolist()] * 8
    parts = {"kind": kind, "weight": "(i, j) -> (j)" if shape == "4" else "(i, j) -> (i, j)"}
    parts["read"] = f"%b = arith.constant dense<{numbers}> : {kind}" if constant else ""
    return filled(__file__, "BIAS", body=body, more="" if constant else f", %b: {kind}", **parts)


def elements_read(fusion: Fusion) -> list[str]:
    return [view.type.element for view in fusion.inputs]


def test_a_weight_that_is_repeated_is_read_as_f32_and_an_argument_extended_at_each_call() -> None:
    program, x = formed(with_bias()), normal(8, 4)
    assert [elements_read(fusion) for fusion in program.program.fusions] == [["f32", "f32"]]
    assert "arith.extf" in program.program.init
    np.testing.assert_array_equal(FusedFunction(program)(x)[0], x + BIAS)
    (found,) = FusedFunction(formed(with_bias(constant=False)))(x, BIAS.astype(ml_dtypes.bfloat16))
    np.testing.assert_array_equal(found, x + BIAS)


@pytest.mark.parametrize(
    "text",
    [
        with_bias(constant=False),  # not known when the program is loaded
        with_bias(shape="8x4"),  # as large as the result: more bytes to read
        with_bias(DOUBLED),
    ],
)
def test_others_stay_bf16(text: str) -> None:
    assert [elements_read(fusion) for fusion in formed(text).program.fusions] == [["f32", "bf16"]]


def product(*, b: str = "bf16", scaled: bool = False, sliced: bool = False) -> str:
    """Returns a product of A, extended from bf16, and B, extended too where it is bf16.

    ``scaled``: A is doubled after it was extended. ``sliced``: rows of A are read from a larger matrix.
    """
    rows = 8 if sliced else 4
    doubled = ("%twice = arith.addf %more, %more : f32", "%twice") if scaled else ("", "%more")
    cut = "%part = tensor.extract_slice %wide_a[2, 0] [4, 6] [1, 1] : tensor<8x6xf32> to tensor<4x6xf32>"
    parts = {"rows": rows, "type": b, "left": extended("a", f"{rows}x6", *doubled)}
    parts |= {"of_a": "%part", "cut": cut} if sliced else {"of_a": "%wide_a", "cut": ""}
    of_b, right = ("%wide_b", extended("b", "6x5")) if b == "bf16" else ("%b", "")
    return filled(__file__, "PRODUCT", of_b=of_b, right=right, **parts)


def extended(operand: str, shape: str, extra: str = "", result: str = "%more") -> str:
    return filled(__file__, "EXTENDED", operand=operand, shape=shape, extra=extra, result=result)


def contraction(program: FormedProgram) -> Fusion:
    (found,) = [fusion for fusion in program.program.fusions if fusion.kind == CONTRACTION]
    return found


@pytest.mark.parametrize("sliced", [False, True])
def test_a_matmul_of_extended_bf16_reads_bf16(sliced: bool) -> None:
    program = formed(product(sliced=sliced))
    assert elements_read(contraction(program)) == ["bf16", "bf16"]
    assert len(program.program.fusions) == 1
    a, b = drawn(0, 8 if sliced else 4, 6), drawn(1, 6, 5)
    (found,) = FusedFunction(program)(a, b)
    expected = (a[2:6] if sliced else a).astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("text", [product(b="f32"), product(scaled=True)], ids=["one", "computed"])
def test_other_matmuls_stay_f32(text: str) -> None:
    assert elements_read(contraction(formed(text))) == ["f32", "f32"]


@pytest.mark.parametrize("change", [{}, TURNED], ids=["plain", "transposed"])
def test_a_matmul_of_extended_bytes_reads_bytes(change: dict[str, str]) -> None:
    program = formed(filled(__file__, "BYTES", **PLAIN | change))
    assert elements_read(contraction(program)) == ["i8", "i8"]
    a, b = drawn_bytes(0, 4, 6), drawn_bytes(1, *(5, 6) if change else (6, 5))
    (found,) = FusedFunction(program)(a, b)
    wide = b.astype(np.int32)
    np.testing.assert_array_equal(found, a.astype(np.int32) @ (wide.T if change else wide))


@pytest.mark.parametrize(
    "change",
    [{"wide": "i64"}, {"extend": "arith.extui"}, {"cast": "{cast = #linalg.type_fn<cast_unsigned>}"}],
    ids=["i64", "unsigned operand", "unsigned product"],
)
def test_other_products_of_integers_stay_wide(change: dict[str, str]) -> None:
    options = PLAIN | change
    fusions = formed(filled(__file__, "BYTES", **options)).program.fusions
    (fusion,) = [each for each in fusions if "linalg.matmul" in each.ops]
    assert elements_read(fusion) == [options["wide"]] * 2


SUM = {"lead": "", "type": "i8", "start": "0", "cast": "", "product": "matmul", "dims": "i, j"}
SUM |= {"loops": '"parallel", "parallel"', "returned": "%r", "results": "tensor<4x5xi32>"}
BATCH = {"lead": "3x", "product": "batch_matmul", "dims": "b, i, j", "results": "tensor<3x4x5xi32>"}
BATCH |= {"loops": '"parallel", "parallel", "parallel"'}


@pytest.mark.parametrize("change", [{}, BATCH], ids=["matmul", "batch_matmul"])
def test_truncated_sums_of_bytes_are_of_i32(change: dict[str, str]) -> None:
    program = formed(filled(__file__, "TEXT", **SUM | change))
    (fusion,) = program.program.fusions
    assert fusion.kind == CONTRACTION
    assert "xi64>" not in fusion.text
    lead = (3,) if change else ()
    a, b = drawn_bytes(0, *lead, 4, 6), drawn_bytes(1, *lead, 6, 5)
    (found,) = FusedFunction(program)(a, b)
    np.testing.assert_array_equal(found, a.astype(np.int32) @ b.astype(np.int32))


@pytest.mark.parametrize(
    "change",
    [
        {"type": "i32"},
        {"start": "1"},
        {"cast": "{cast = #linalg.type_fn<cast_unsigned>}"},
        {"returned": "%w, %r", "results": "tensor<4x5xi64>, tensor<4x5xi32>"},
    ],
    ids=["i32", "not zeros", "unsigned", "read as i64"],
)
def test_other_sums_stay_wide(change: dict[str, str]) -> None:
    fusions = formed(filled(__file__, "TEXT", **SUM | change)).program.fusions
    assert any("xi64>" in each.text and "linalg.matmul" in each.ops for each in fusions)


def weights(channels: int, number: int = 0) -> Any:
    return drawn(1 + number, 8, channels, 3, 3)


def payload(
    *, constant: bool = True, joined: bool = False, element: str = "f32", padding: float = 0, count: int = 1
) -> str:
    """Returns convolutions of x, which is padded, with weights of 3 or 6 channels to 8.

    ``constant``: the weights are constants; else an argument. ``joined``: x is two tensors of 3 channels.
    ``element``: of the sums. ``padding``: the number around x. ``count``: convolutions that read x.
    """
    channels = 6 if joined else 3
    of_w = f"tensor<8x{channels}x3x3xbf16>"
    arguments = [f"%{name}: tensor<1x3x5x6xbf16>" for name in (("x0", "x1") if joined else ("x",))]
    numbers = [weights(channels, each).astype(np.float64).tolist() for each in range(count)]
    constants = [f"%w{at} = arith.constant dense<{each}> : {of_w}" for at, each in enumerate(numbers)]
    sizes = {"channels": channels, "element": element}
    parts = {
        "arguments": ", ".join(arguments if constant else [*arguments, f"%w0: {of_w}"]),
        "constants": "\n".join(constants) if constant else "",
        "joined": text_beside(__file__, "JOINED") if joined else "",
        "convolved": "".join(filled(__file__, "CONVOLVED", number=at, **sizes) for at in range(count)),
        "returned": ", ".join(f"%r{at}" for at in range(count)),
        "results": ", ".join([f"tensor<1x8x5x6x{element}>"] * count),
    }
    return filled(__file__, "CONVOLUTIONS", padding=f"{padding:.1f}", **parts, **sizes)


def convolved(x: Any, w: Any, padding: float = 0.0) -> Any:
    wide = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=padding)
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), axis=(2, 3))
    return np.einsum("nchwij,fcij->nfhw", windows, w.astype(np.float64))


def kinds(text: str) -> list[str]:
    return [fusion.kind for fusion in formed(text).program.fusions]


def test_a_convolution_of_bf16_reads_f32_extended_into_padding_concatenation_and_weights() -> None:
    made = formed(payload())
    program, (extension, convolution) = made.program, made.program.fusions
    assert (extension.kind, convolution.kind) == (ELEMENTWISE, CONVOLUTION)
    assert (extension.ops, elements_read(extension)) == (("arith.extf",), ["bf16"])
    assert elements_read(convolution) == ["f32", "f32"]
    (padded,) = (each for each in program.buffers if each.owner == TEMPORARY)
    assert (padded.type.element, padded.type.shape, padded.padding) == ("f32", (3, 7, 8), 0.0)
    assert [each.dtype for each in made.weights] == [ml_dtypes.bfloat16]
    assert "arith.extf" in program.init
    assert [each.type.element for each in program.buffers if each.owner == WEIGHT] == ["f32"]
    program = formed(payload(constant=False)).program
    assert program.init == ""
    assert [each.kind for each in program.fusions] == [ELEMENTWISE, ELEMENTWISE, CONVOLUTION]
    assert [each.type.element for each in program.buffers if each.owner == ARGUMENT] == ["bf16", "bf16"]
    assert kinds(payload(count=2)) == [ELEMENTWISE, CONVOLUTION, CONVOLUTION]  # x is extended once
    assert kinds(payload(element="bf16")) == [ELEMENTWISE, CONVOLUTION]
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
    x, w = drawn(0, 1, 3, 5, 6), weights(3)
    inputs = (x,) if options.get("constant", True) else (x, w)
    (found,) = FusedFunction(formed(payload(**options), multiplies_pairs=multiplies_pairs))(*inputs)
    expected = convolved(x, w, options.get("padding", 0.0))
    rtol = 2**-8 if options.get("element") == "bf16" else 1e-5
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=rtol, atol=1e-5)


def test_convolutions_over_channels_read_bf16_where_pairs_are_multiplied() -> None:
    program = formed(payload(), multiplies_pairs=True).program
    padding, convolution = program.fusions
    assert (padding.kind, padding.ops) == (ELEMENTWISE, ("linalg.copy",))
    assert elements_read(convolution) == ["bf16", "bf16"]
    assert program.init == ""


@pytest.mark.parametrize("name", ["DEPTHWISE", "OF_ONE_NUMBER"])
def test_what_has_no_pairs_is_extended_on_every_processor(name: str) -> None:
    *_, convolution = formed(text_beside(__file__, name), multiplies_pairs=True).program.fusions
    assert convolution.kind == CONVOLUTION
    assert "bf16" not in elements_read(convolution)


@pytest.mark.slow
def test_channels_may_be_last() -> None:
    program = tuner.compile_program(text_beside(__file__, "NHWC"), target="cpu")
    assert isinstance(program, CompiledFunction)
    extended = 0 if describe_machine().multiplies_pairs else 2
    strategies = [each.strategy for each in program.code.fusions]
    assert strategies == [*["elementwise_cpu"] * extended, "convolution_cpu"]
    x, w = drawn(0, 2, 7, 6, 3), drawn(1, 3, 3, 3, 32)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (3, 3), axis=(1, 2))
    expected = np.einsum("nhwcij,ijcf->nhwf", windows, w.astype(np.float64))
    np.testing.assert_allclose(program(x, w).astype(np.float64), expected, rtol=2**-8, atol=1e-4)


def test_paddings_of_0_and_of_minus_0_are_apart() -> None:
    program = tuner.compile_program(text_beside(__file__, "SIGNED_ZEROS"), target="cpu")
    assert isinstance(program, CompiledFunction)
    inverses = program(np.zeros(2, np.float32))
    np.testing.assert_array_equal(inverses, np.array([-np.inf, 1, 1, -np.inf], np.float32))


@pytest.mark.parametrize("number", [2**53 + 1, 2**63 - 1])
def test_a_padding_of_a_large_integer_is_exact(number: int) -> None:
    text = text_beside(__file__, "LARGE_INTEGER").replace("NUMBER", str(number))
    found = tuner.compile_program(text, target="cpu")(np.array([1, 2]))
    np.testing.assert_array_equal(found, np.array([number ^ 1, 3, 2, number ^ 1]))


def test_a_weight_that_only_an_assertion_reads_shifts_no_other() -> None:
    program = tuner.compile_program(text_beside(__file__, "ASSERTED_WEIGHT"), target="cpu")
    np.testing.assert_array_equal(program(np.array([0, 1], np.float32)), [10, 21])
