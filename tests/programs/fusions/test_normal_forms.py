"""Which matmuls and convolutions become others, of narrower numbers or as products, and compute the same."""

import ml_dtypes
import numpy as np
import pytest

from tests.programs.fusions.grouped_execution import FusedFunction, formed, host_function
from tests.texts import text_beside
from tuner.core.fusions import CONTRACTION, CONVOLUTION, Fusion

pytestmark = pytest.mark.mlir


def filled(name: str, /, **parts: str) -> str:
    """Returns a text with its parts, whose names stand there in capitals."""
    text = text_beside(__file__, name)
    for part, value in parts.items():
        text = text.replace(part.upper(), value)
    return text


def convolution(images: int = 1, side: int = 32, stride: int = 1) -> str:
    sizes = {"images": images, "side": side, "stride": stride, "rows": side // stride}
    return filled("CONVOLUTION", **{name: str(size) for name, size in sizes.items()})


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
    (fusion,) = formed(convolution(*sizes)).program.fusions
    assert fusion.kind == kind


def test_the_matmul_computes_the_convolution_and_what_follows() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 3, 32, 32)).astype(np.float32)
    w = rng.standard_normal((8, 3, 1, 1)).astype(np.float32)
    (found,) = FusedFunction(formed(convolution()))(x, w)
    assert found.shape == (1, 8, 32, 32)
    np.testing.assert_allclose(found, host_function(convolution())(x, w), rtol=1e-5, atol=1e-5)


# Weights of bf16 that elementwise operations only extend: extended when a program is loaded.

BIAS = np.array([1.5, -0.25, 3.0, 0.0078125], np.float32)
EXTENDED = text_beside(__file__, "EXTENDED_BIAS")
DOUBLED = text_beside(__file__, "DOUBLED")


def with_bias(
    body: str = EXTENDED, *, shape: str = "4", weight: str = "(i, j) -> (j)", constant: bool = True
) -> str:
    kind = f"tensor<{shape}xbf16>"
    numbers = BIAS.tolist() if shape == "4" else [BIAS.tolist()] * 8
    read = f"%b = arith.constant dense<{numbers}> : {kind}" if constant else ""
    more = "" if constant else f", %b: {kind}"
    text = filled("BIAS", read=read, body=body, more=more)
    return text.replace("KIND", kind).replace("WEIGHT", weight)


def elements(text: str) -> list[list[str]]:
    return [[view.type.element for view in fusion.inputs] for fusion in formed(text).program.fusions]


def test_a_weight_that_is_repeated_is_read_as_f32() -> None:
    program = formed(with_bias())
    assert elements(with_bias()) == [["f32", "f32"]]
    assert "arith.extf" in program.program.init
    x = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
    np.testing.assert_array_equal(FusedFunction(program)(x)[0], x + BIAS)


@pytest.mark.parametrize(
    "text",
    [
        with_bias(constant=False),  # not known when the program is loaded
        with_bias(shape="8x4", weight="(i, j) -> (i, j)"),  # as large as the result: more bytes to read
        with_bias(DOUBLED),
    ],
)
def test_others_stay_bf16(text: str) -> None:
    assert elements(text) == [["f32", "bf16"]]


def test_an_argument_is_extended_at_each_call() -> None:
    x = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
    (found,) = FusedFunction(formed(with_bias(constant=False)))(x, BIAS.astype(ml_dtypes.bfloat16))
    np.testing.assert_array_equal(found, x + BIAS)


def product(*, b: str = "bf16", scaled: bool = False, sliced: bool = False) -> str:
    """Returns a product of A, extended from bf16, and B, extended too where it is bf16.

    ``scaled``: A is doubled after it was extended. ``sliced``: rows of A are read from a larger matrix.
    """
    rows = 8 if sliced else 4
    extra = "%twice = arith.addf %more, %more : f32" if scaled else ""
    result = "%twice" if scaled else "%more"
    left = filled("EXTENDED", name="a", shape=f"{rows}x6", extra=extra, result=result)
    right = filled("EXTENDED", name="b", shape="6x5", extra="", result="%more") if b == "bf16" else ""
    cut = "%part = tensor.extract_slice %a_wide[2, 0] [4, 6] [1, 1] : tensor<8x6xf32> to tensor<4x6xf32>"
    of_a, of_b = "%part" if sliced else "%a_wide", "%b_wide" if b == "bf16" else "%b"
    parts = {"rows": str(rows), "type": b, "left": left, "right": right, "of_a": of_a, "of_b": of_b}
    return filled("PRODUCT", **parts, cut=cut if sliced else "")


def contraction(text: str) -> Fusion:
    (found,) = [fusion for fusion in formed(text).program.fusions if fusion.kind == CONTRACTION]
    return found


@pytest.mark.parametrize("sliced", [False, True])
def test_a_matmul_of_extended_bf16_reads_bf16(sliced: bool) -> None:
    text = product(sliced=sliced)
    assert [view.type.element for view in contraction(text).inputs] == ["bf16", "bf16"]
    assert len(formed(text).program.fusions) == 1
    rng = np.random.default_rng(0)
    a, b = (
        rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((8 if sliced else 4, 6), (6, 5))
    )
    (found,) = FusedFunction(formed(text))(a, b)
    expected = (a[2:6] if sliced else a).astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("text", [product(b="f32"), product(scaled=True)], ids=["one", "computed"])
def test_other_matmuls_stay_f32(text: str) -> None:
    assert {view.type.element for view in contraction(text).inputs} == {"f32"}


TURN = text_beside(__file__, "TURN")
PLAIN = {"shape": "6x5", "wide": "i32", "extend": "arith.extsi", "turn": "", "right": "%b_w", "cast": ""}


@pytest.mark.parametrize(
    "change", [{}, {"shape": "5x6", "turn": TURN, "right": "%t"}], ids=["plain", "transposed"]
)
def test_a_matmul_of_extended_bytes_reads_bytes(change: dict[str, str]) -> None:
    program = formed(filled("BYTES", **PLAIN | change))
    (fusion,) = [each for each in program.program.fusions if each.kind == CONTRACTION]
    assert {view.type.element for view in fusion.inputs} == {"i8"}
    rng = np.random.default_rng(0)
    a = rng.integers(-128, 128, (4, 6)).astype(np.int8)
    b = rng.integers(-128, 128, (5, 6) if change else (6, 5)).astype(np.int8)
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
    fusions = formed(filled("BYTES", **options)).program.fusions
    (fusion,) = [each for each in fusions if "linalg.matmul" in each.ops]
    assert {view.type.element for view in fusion.inputs} == {options["wide"]}


SUM = {"lead": "", "type": "i8", "start": "0", "cast": "", "name": "matmul", "dims": "i, j"}
SUM |= {"loops": '"parallel", "parallel"', "returned": "%r", "result": "tensor<4x5xi32>"}
BATCH = {"lead": "3x", "name": "batch_matmul", "dims": "b, i, j", "result": "tensor<3x4x5xi32>"}
BATCH |= {"loops": '"parallel", "parallel", "parallel"'}


@pytest.mark.parametrize("change", [{}, BATCH], ids=["matmul", "batch_matmul"])
def test_truncated_sums_of_bytes_are_of_i32(change: dict[str, str]) -> None:
    program = formed(filled("TEXT", **SUM | change))
    (fusion,) = program.program.fusions
    assert fusion.kind == CONTRACTION
    assert "xi64>" not in fusion.text
    lead = (3,) if change else ()
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, (*lead, *shape)).astype(np.int8) for shape in ((4, 6), (6, 5)))
    (found,) = FusedFunction(program)(a, b)
    np.testing.assert_array_equal(found, a.astype(np.int32) @ b.astype(np.int32))


@pytest.mark.parametrize(
    "change",
    [
        {"type": "i32"},
        {"start": "1"},
        {"cast": "{cast = #linalg.type_fn<cast_unsigned>}"},
        {"returned": "%w, %r", "result": "(tensor<4x5xi64>, tensor<4x5xi32>)"},
    ],
    ids=["i32", "not zeros", "unsigned", "read as i64"],
)
def test_other_sums_stay_wide(change: dict[str, str]) -> None:
    text = (
        filled("TEXT", **SUM | change).replace("%r : (tensor", "%r : tensor").replace("i32>)\n}", "i32>\n}")
    )
    fusions = formed(text).program.fusions
    assert any("xi64>" in each.text and "linalg.matmul" in each.ops for each in fusions)
