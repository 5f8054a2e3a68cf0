"""``tuner.pad_views``: which sizes become larger, which bounds are kept, and what is refused."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.mlir.ops.conftest import Apply
from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.core.problem import Matmul, Problem
from tuner.payload.gpu import EpilogueOperand, Scratch, gpu_payload_mlir, matmul_with_epilogue_mlir

pytestmark = pytest.mark.mlir

LINE = '"tuner.pad_views"(%func) {{sizes = array<i64: {0}>}} : (!transform.any_op) -> ()'
SHOWN = LINE.format("64, 48, 96")
BIAS = Matmul(15, 31, 7, "f16", epilogue="bias_relu")
WINDOW = text_beside(__file__, "WINDOW")
PART_AND_PAD = text_beside(__file__, "PART_AND_PAD")


def payload(dtype: str, sizes: tuple[int, int, int], layout: str = "nn") -> str:
    """Returns a matmul of true sizes (m, n, k)."""
    return gpu_payload_mlir(Matmul(*sizes, dtype, layout), Scratch()).replace("@matmul", "@f")


def function(name: str, scratch: Scratch, problem: Problem = BIAS) -> str:
    """Returns a payload whose function ``name`` is @f."""
    return gpu_payload_mlir(problem, scratch).replace(f"@{name}(", "@f(")


def with_epilogue() -> str:
    """Returns a matmul whose epilogue reads a matrix, a row and a column."""
    operands = tuple(
        EpilogueOperand(f"other{at}", dimensions, "f32") for at, dimensions in enumerate([(0, 1), (1,), (0,)])
    )
    text = matmul_with_epilogue_mlir(replace(BIAS, epilogue="none"), operands, "f16")
    return text.replace("@matmul", "@f")


@pytest.mark.parametrize(
    ("name", "sizes", "text"),
    [
        ("matmul", "64, 48, 96", payload("f32", (50, 40, 60))),
        ("equal_sizes", "16, 32, 64", payload("f16", (8, 8, 8), "tn")),
        ("rows_only", "64, 40, 60", payload("f32", (50, 40, 60), "nt")),
        ("bias", "16, 32, 64", function("matmul", Scratch())),
        ("epilogue", "16, 32, 64", with_epilogue()),
        ("packed", "16, 32, 64", function("matmul", Scratch((4, 16, 32), ("a", "b")))),
        ("pack", "16, 64", function("pack_a", Scratch(packed=("a",)))),
        ("reduce", "4, 16, 32", function("reduce", Scratch((4, 16, 32)))),
    ],
)
def test_sizes_are_those_of_the_loops(
    name: str, sizes: str, text: str, apply: Apply, golden: Callable[[str, str], None]
) -> None:
    golden(f"pad_views_{name}.mlir", apply(LINE.format(sizes), text))


def test_true_sizes_change_nothing(apply: Apply) -> None:
    text = payload("f32", (50, 40, 60))
    nothing = 'transform.annotate %func "tuner.seen" : !transform.any_op'
    padded = apply(f"{LINE.format('50, 40, 60')}\n    {nothing}", text)
    assert padded == apply(nothing, text)


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ("64, 48", r"sizes: expected 3, one for each loop of linalg\.matmul, got 2"),
        ("49, 48, 96", r"sizes\[0\]: expected 50\.\.2147483647, got 49"),
        ("64, 48, 59", r"sizes\[2\]: expected 60\.\.2147483647, got 59"),
        ("64, 99999999999, 96", r"sizes\[1\]: expected 40\.\.2147483647, got 99999999999"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(sizes: str, reason: str, apply: Apply) -> None:
    with pytest.raises(CandidateError, match=reason):
        apply(LINE.format(sizes), payload("f32", (50, 40, 60)))


def test_no_sizes_are_refused(apply: Apply) -> None:
    with pytest.raises(CandidateError, match="sizes: expected 3, one for each loop"):
        apply('"tuner.pad_views"(%func) : (!transform.any_op) -> ()', payload("f32", (50, 40, 60)))


def test_a_tensor_of_two_sizes_is_refused(apply: Apply) -> None:
    text = payload("f32", (8, 8, 8)).replace("ins(%A, %B", "ins(%A, %A")
    with pytest.raises(
        CandidateError, match=r"tensor<8x8xf32>: expected one padded size, got \[16, 64\] and"
    ):
        apply(LINE.format("16, 32, 64"), text)


def test_dynamic_sizes_are_refused(apply: Apply) -> None:
    text = payload("f32", (50, 40, 60)).replace("50x60", "?x60").replace("50x40", "?x40")
    with pytest.raises(CandidateError, match=r"expected static sizes, got tensor<\?x60xf32>"):
        apply(SHOWN, text)


def test_indices_that_are_no_loops_are_refused(apply: Apply) -> None:
    with pytest.raises(CandidateError, match=r"expected loops as indices, got \(d0, d1\) -> \(d0 \+ d1\)"):
        apply(LINE.format("8, 8"), WINDOW)


def test_a_function_without_products_is_refused(apply: Apply) -> None:
    with pytest.raises(
        CandidateError, match=r"expected a linalg op on tensors other than linalg\.fill, got none"
    ):
        apply(SHOWN, "func.func @f(%a: memref<4xf32>) {\n  return\n}")


def test_a_function_that_is_padded_is_refused(apply: Apply) -> None:
    with pytest.raises(CandidateError, match=r"expected true sizes, got tuner\.bounds of argument"):
        apply(f"{SHOWN}\n    {SHOWN}", payload("f32", (50, 40, 60)))


def test_a_part_has_the_bounds_of_its_argument_and_a_pad_goes(apply: Apply) -> None:
    text = apply(LINE.format("8, 8, 8"), PART_AND_PAD)
    assert "memref<8x8xf32, strided<[6, 1]>> {tuner.bounds = array<i64: 6, 6>}" in text
    assert "memref<8x8xf32, strided<[4, 1]>> {tuner.bounds = array<i64: 5, 4>}" in text
    assert "memref.subview" not in text
    assert "tensor.pad" not in text


RETURN, PRODUCT = "  return\n", "  %product = linalg.matmul"
COPY = "linalg.copy ins(%D : tensor<4x4xf32>) outs(%D : tensor<4x4xf32>) -> tensor<4x4xf32>"
APART = f"  %D = tensor.empty() : tensor<4x4xf32>\n  %d = {COPY}\n"
TRANSPOSED = (
    "linalg.transpose ins(%product : tensor<4x4xf32>) outs(%product : tensor<4x4xf32>) permutation = [1, 0]"
)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"%a[0, 0]": "%a[1, 0]", "strided<[6, 1]>": "strided<[6, 1], offset: 6>"},
            "expected tensors of arguments or of their first elements, got other memory",
        ),
        (
            {"[4, 6] [1, 1]": "[3, 6] [2, 1]", "4x6xf32": "3x6xf32", "[6, 1]>>": "[12, 1]>>"}
            | {"4x4xf32": "3x4xf32"},
            "expected tensors of arguments or of their first elements, got other memory",
        ),
        ({"low[0, 0] high[1, 0]": "low[1, 0] high[0, 0]"}, r"expected a tensor\.pad of an argument by zeros"),
        ({"yield %zero": "yield %one"}, r"expected a tensor\.pad of an argument by zeros at its ends"),
        (
            {"%b: memref<5x4xf32>": "%b: memref<5x4xf32, strided<[9, 1]>>"}
            | {" : memref<5x4xf32> to": " : memref<5x4xf32, strided<[9, 1]>> to"},
            "argument 1: expected rows without gaps, got memref<5x4xf32, strided<",
        ),
        (
            {PRODUCT: f"  %cast = tensor.cast %B : tensor<5x4xf32> to tensor<?x?xf32>\n{PRODUCT}"},
            r"expected linalg ops on tensors of arguments, got tensor\.cast",
        ),
        ({RETURN: APART + RETURN}, r"expected linalg ops on one another's tensors, got linalg\.copy apart"),
        (
            {RETURN: f"  %T = {TRANSPOSED}\n{RETURN}"},
            r"expected linalg ops with indexing maps, got linalg\.transpose",
        ),
    ],
)
def test_what_cannot_be_padded_is_refused(changes: dict[str, str], reason: str, apply: Apply) -> None:
    text = PART_AND_PAD
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    with pytest.raises(CandidateError, match=reason):
        apply(LINE.format("8, 8, 8"), text)
