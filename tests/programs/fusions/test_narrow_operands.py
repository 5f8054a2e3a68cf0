"""Which matmuls read bf16 or i8 in place of numbers that were extended, and that they compute the same."""

import ml_dtypes
import numpy as np
import pytest

from tests.programs.fusions.grouped_execution import FusedFunction, formed
from tests.texts import text_beside
from tuner.core.fusions import CONTRACTION, Fusion

pytestmark = pytest.mark.mlir


def filled(name: str, /, **parts: str) -> str:
    """Returns a text with its parts, whose names stand there in capitals."""
    text = text_beside(__file__, name)
    for part, value in parts.items():
        text = text.replace(part.upper(), value)
    return text


def payload(*, b: str = "bf16", scaled: bool = False, sliced: bool = False) -> str:
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
    return filled(
        "PRODUCT",
        rows=str(rows),
        type=b,
        left=left,
        right=right,
        cut=cut if sliced else "",
        of_a=of_a,
        of_b=of_b,
    )


def contraction(text: str) -> Fusion:
    (found,) = [fusion for fusion in formed(text).program.fusions if fusion.kind == CONTRACTION]
    return found


@pytest.mark.parametrize("sliced", [False, True])
def test_a_matmul_of_extended_bf16_reads_bf16(sliced: bool) -> None:
    text = payload(sliced=sliced)
    assert [view.type.element for view in contraction(text).inputs] == ["bf16", "bf16"]
    assert len(formed(text).program.fusions) == 1
    rng = np.random.default_rng(0)
    a, b = (
        rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((8 if sliced else 4, 6), (6, 5))
    )
    (found,) = FusedFunction(formed(text))(a, b)
    expected = (a[2:6] if sliced else a).astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("text", [payload(b="f32"), payload(scaled=True)], ids=["one", "computed"])
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
