"""A fusion's facts, its canonical text, and the form that schedules take."""

from dataclasses import replace
from typing import Any

import pytest

from tests import byte_fusion_texts as byte_texts
from tests import fusion_texts as texts
from tests.default_suite import ALL
from tests.fusion_runs import as_problem
from tests.mlir.attention_texts import Attention
from tests.mlir.kernels import changed
from tests.targets.evaluation import fails
from tuner.core.errors import Stage, UsageError
from tuner.core.fusion_facts import FusionFacts
from tuner.core.fusions import LOOPS, Fusion
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.problem_classes import FusedProblem, PackedProblem, problem_of_values
from tuner.mlir.bindings import ir
from tuner.mlir.fusions.facts import annotate_facts, facts_of, fusion_problem
from tuner.mlir.fusions.function import parse_fusion, prepare
from tuner.runtime.cpu.host import describe_machine
from tuner.space.scripts.choice import default_script
from tuner.targets.cpu.compiler import CpuCompiler


def annotated(text: str) -> str:
    return changed(annotate_facts, text)[1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (texts.product(8, 16, 4, "bias"), ((8, 16), 1, 1, 0, 0)),
        (texts.product(8, 16, 4, "silu", pairs=True), ((8, 16), 2, 2, 0, 0)),
        (texts.product(8, 16, 4), ((8, 16), 1, 1, 0, 0)),  # its root becomes a copy
        (texts.product(8, 16, 4, batch=3), ((3, 8, 16), 1, 0, 0, 0)),
        (texts.softmax(5, 7), ((5, 7), 0, 0, 0, 0)),
        (texts.row_sums(5, 7), ((5, 7), 0, 0, 0, 0)),
        (texts.transpose((3, 4, 5), (0, 2, 1)), ((3, 5, 4), 0, 0, 2, 1)),
        (texts.transpose((3, 4, 5), (1, 0, 2)), ((4, 3, 5), 0, 0, 0, 1)),
        (texts.elementwise((6, 7)), ((6, 7), 0, 0, 0, 0)),
    ],
)
def test_facts_of_a_fusion(text: str, expected: tuple[Any, ...]) -> None:
    found = facts_of(annotated(text))
    assert (found.loops, found.contractions, found.weights, found.transposed, found.copy) == expected


READ = """
func.func @fusion(%m: memref<4x5xf32> {tuner.visible = array<i64: -3, 0>}, %c: memref<4xbf16>)
    attributes {tuner.bytes = 128 : i64, tuner.contractions = 2 : i64, tuner.loops = array<i64: 4, 16, 8>,
                tuner.reduced = 1 : i64, tuner.rows = array<i64: 16, 64, 8>, tuner.strided = 1 : i64} {
  return
}
"""
CONVOLVED = """
func.func @fusion(%x: tensor<1x9x9x3xf32>, %w: tensor<2x2x3x4xf32>, %c: tensor<1x4x4x4xf32>)
    -> tensor<1x4x4x4xf32> attributes {tuner.dimensions = "nHWf"} {
  %y = linalg.conv_2d_nhwc_hwcf {contraction, dilations = dense<1> : tensor<2xi64>,
      strides = dense<STRIDES> : tensor<2xi64>}
      ins(%x, %w : tensor<1x9x9x3xf32>, tensor<2x2x3x4xf32>) outs(%c : tensor<1x4x4x4xf32>)
      -> tensor<1x4x4x4xf32>
  return %y : tensor<1x4x4x4xf32>
}
"""


def test_facts_are_read_from_attributes_and_types_and_are_zeros_without_attributes() -> None:
    read = FusionFacts((4, 16, 8), 2, bytes=128, strided=1, reduced=1, rows=(16, 64, 8), visible=(-3, 0))
    assert facts_of(READ) == replace(read, elements=("bf16", "f32"))
    assert facts_of("func.func @fusion() { return }") == FusionFacts()


@pytest.mark.parametrize(("strides", "stride"), [("[2, 2]", 2), ("2", 2), ("[1, 2]", 2)])
def test_the_stride_of_a_convolution_is_the_last_of_its_strides(strides: str, stride: int) -> None:
    text = CONVOLVED.replace("STRIDES", strides)
    if strides == "[1, 2]":
        text = text.replace("1x4x4x4xf32", "1x8x4x4xf32")
    assert (facts_of(text).dimensions, facts_of(text).stride) == ("nHWf", stride)


PACKED = (
    Matmul(4, 8, 64, weights="i4", group_size=32, zero_points=True),
    Matmul(4, 8, 128, "bf16", output="bf16", weights="i8", activations="i8"),
    Matmul(4, 8, 64, "bf16", "nt", "bias_relu", weights="constant"),
    Matmul(4, 8, 64, "i8", weights="constant"),
    Matmul(4, 8, 64, "f64", epilogue="bias_gelu", weights="constant"),
)


@pytest.mark.parametrize("problem", PACKED, ids=lambda problem: problem.key)
def test_facts_of_packed_weights_are_those_of_their_text(problem: Problem) -> None:
    assert isinstance(problem, PackedProblem)
    assert facts_of(problem.text) == problem.facts


def test_bytes_are_those_of_all_arguments_and_a_canonical_text_stays_as_it_is() -> None:
    assert facts_of(annotated(texts.product(8, 16, 4, "bias"))).bytes == 4 * (8 * 4 + 4 * 16 + 16 + 8 * 16)
    once = annotated(texts.softmax(5, 7))
    assert annotated(once) == once
    assert annotated(texts.softmax(5, 7).replace("%most", "%renamed")) == once


def test_an_epilogue_becomes_one_operation_and_a_copy_where_there_is_none() -> None:
    text = changed(prepare, texts.softmax(5, 7))[1]
    assert text.count("attrs =  {root}") == 1
    assert "outs(%0 : tensor<5x7xf32>) attrs =  {root}" in text  # the output's memory
    text = changed(prepare, texts.product(8, 16, 4))[1]
    assert "linalg.matmul {contraction}" in text
    assert text.count("attrs =  {root}") == 1


@pytest.mark.parametrize("text", ["func.func @other() { return }", "func.func @fusion("])
def test_what_is_no_fusion_is_refused(text: str) -> None:
    message = "^fusion: found no function @fusion" if "other" in text else "^fusion:1:"
    with ir.Context(), ir.Location.unknown(), fails(Stage.BIND, message):
        parse_fusion(text)


# A fusion as a problem: sizes, key, and which fusions are refused.
@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("kind", "text", "shape", "flop"),
    [
        ("contraction", texts.product(8, 16, 4, "bias"), "8x16x4", 2 * 8 * 16 * 4),
        ("contraction", texts.product(8, 16, 4, pairs=True), "8x16x4", 4 * 8 * 16 * 4),
        ("contraction", texts.product(8, 16, 4, batch=3), "3x8x16x4", 2 * 3 * 8 * 16 * 4),
        ("attention", Attention((8, 16, 4, 5)).text(), "8x16x4", 2 * 8 * 16 * (4 + 5)),
        ("attention", Attention((8, 16, 4, 5), batch=3).text(), "3x8x16x4", 3 * 2 * 8 * 16 * (4 + 5)),
        ("rows", texts.softmax(5, 7), "5x7x1", 70),
        ("rows", texts.row_sums(5, 7), "5x7x1", 70),
        ("elementwise", texts.transpose((3, 4, 5), (2, 0, 1)), "15x4x1", 120),
        ("elementwise", texts.elementwise((7,)), "1x7x1", 14),
    ],
)
def test_sizes_of_a_fusion(kind: str, text: str, shape: str, flop: int) -> None:
    problem = as_problem(kind, text)
    assert (problem.operation, problem.shape, problem.flop) == (kind, shape, flop)
    assert problem.key.startswith(f"{kind} {shape} f32 ")


def test_fusions_that_differ_have_different_keys() -> None:
    keys = {as_problem("contraction", texts.product(8, 16, 4, each)).key for each in texts.EPILOGUES}
    assert len(keys) == len(texts.EPILOGUES)


def test_the_first_configuration_compiles_and_says_how_weights_are_packed() -> None:
    problem = as_problem("contraction", texts.product(24, 100, 64, "bias_relu"))
    script = default_script(problem, describe_machine())
    assert script is not None
    once, again = (CpuCompiler().compile(problem, script) for _ in range(2))
    assert once.code.text.startswith("// packings: - ")
    assert "llvm.func @fusion(" in once.code.text
    assert again.sha256 == once.sha256


UNSIGNED = "{cast = #linalg.type_fn<cast_unsigned>, contraction"


@pytest.mark.parametrize("form", [{}, {"batch": 3}, {"pairs": True}], ids=str)
def test_the_type_of_a_product_of_bytes_is_that_of_its_operands(form: Any) -> None:
    problem = as_problem("contraction", byte_texts.product(8, 16, 4, "scale", **form))
    assert problem.dtype == "i8"
    assert (problem.accumulator, problem.sizes) == ("i32", (8, 16, 4))


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("xi32>", "xi64>", "found a product of i8 and i8 into i64, allowed i8 and i8 into i32"),
        ("4x16xi8", "4x16xi32", "found a product of i8 and i32 into i32, allowed i8 and i8"),
        ("{contraction", UNSIGNED, "found a product of unsigned i8, allowed signed i8"),
    ],
)
def test_other_products_of_integers_are_refused(before: str, after: str, reason: str) -> None:
    text = byte_texts.product(8, 16, 4).replace(before, after)
    if after == "xi64>":
        text = text.replace("0 : i32", "0 : i64").replace("%z : i32", "%z : i64")
    with pytest.raises(UsageError, match=f"fusion: {reason}"):
        as_problem("contraction", text)


def test_what_is_no_problem_is_refused_with_its_reason() -> None:
    with pytest.raises(UsageError, match=r"size k: found 131072, allowed 1\.\.131071 for i8"):  # may overflow
        as_problem("contraction", byte_texts.product(1, 1, 2**17))
    fusion = Fusion(LOOPS, texts.elementwise((4,)), (), (), (), reason="a gather")
    with pytest.raises(UsageError, match=r"found kind loops, allowed contraction, .*: a gather"):
        fusion_problem(fusion)
    with pytest.raises(UsageError, match="fusion: found no function @fusion"):
        as_problem("rows", "func.func @f() { return }")
    with pytest.raises(UsageError, match="operation: found"):
        FusedProblem("matmul", (4, 4, 1), "f32", text="func.func @fusion() {}")
    with pytest.raises(UsageError, match=r"^fusion: is missing$"):
        FusedProblem("rows", (4, 4, 1), "f32")
    with pytest.raises(UsageError, match=r"^facts of a fusion: are missing$"):
        problem_of_values("rows", (4, 4, 1), {"dtype": "f32"}, text="func.func @fusion() {}")
