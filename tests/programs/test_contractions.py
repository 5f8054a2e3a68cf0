from pathlib import Path

import pytest

from tests.texts import text_beside
from tuner.core.errors import UsageError
from tuner.core.problem import BatchMatmul, Matmul
from tuner.programs.lowering.matmul_recognition import contractions_in, model_contractions
from tuner.tuning.campaign import NamedProblem

MODEL = text_beside(__file__, "MODEL")

NHWC, NCHW = "linalg.conv_2d_nhwc_hwcf", "linalg.conv_2d_nchw_fchw"
CUBE = "tensor<4x4x4xf32>"


def maps(loops: str, *operands: str) -> str:
    """Returns the attribute of an operation with other maps: maps("mnk", "km", "kn", "mn")."""
    listed = (f"affine_map<({', '.join(loops)}) -> ({', '.join(each)})>" for each in operands)
    return f"indexing_maps = [{', '.join(listed)}]"


TRANSPOSED_A = maps("mnk", "km", "kn", "mn")
BOTH_TRANSPOSED = maps("mnk", "km", "nk", "mn")
BATCH_LAST = maps("bmnk", "bmk", "kbn", "bmn")


def named(op: str, operands: str, result: str, extra: str = "") -> str:
    """Returns a module of one operation ``op`` on two arguments and an output."""
    left, right = operands.split(", ")
    return f"""func.func @f(%a: {left}, %b: {right}, %c: {result}) -> {result} {{
      %0 = {op} {extra} ins(%a, %b : {left}, {right}) outs(%c : {result}) -> {result}
      return %0 : {result}
    }}"""


def test_every_contraction_is_found_counted_and_named_by_its_function() -> None:
    problems, left_out = contractions_in(MODEL)
    assert problems == (
        NamedProblem(Matmul(128, 768, 768), "attention", 2),
        NamedProblem(Matmul(128, 768, 768, layout="nt"), "attention"),
        NamedProblem(BatchMatmul(8, 64, 64, 32, "bf16"), "heads"),
        NamedProblem(Matmul(512, 64, 32, "bf16"), "heads"),
        NamedProblem(Matmul(1, 64, 32, "f64", "nt"), "vectors"),
        NamedProblem(Matmul(1, 32, 64, "f64"), "vectors"),
        NamedProblem(Matmul(196, 256, 64), "convolution"),
        NamedProblem(Matmul(128, 128, 64, layout="nt"), "projection"),
    )
    assert left_out == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            named("linalg.matmul", "tensor<8x4xf32>, tensor<8x6xf32>", "tensor<4x6xf32>", TRANSPOSED_A),
            Matmul(4, 6, 8, layout="tn"),
        ),
        (
            named("linalg.matmul", "tensor<4x8xi8>, tensor<8x6xi8>", "tensor<4x6xi32>"),
            Matmul(4, 6, 8, "i8"),
        ),
        (
            named("linalg.matmul", "tensor<4x8xf16>, tensor<8x6xf16>", "tensor<4x6xf16>"),
            Matmul(4, 6, 8, "f16", output="f16"),
        ),
        (
            named("linalg.matmul", "tensor<1x8xf32>, tensor<8x6xf32>", "tensor<1x6xf32>"),
            Matmul(1, 6, 8),
        ),
        (
            named("linalg.dot", "tensor<8xf32>, tensor<8xf32>", "tensor<f32>"),
            Matmul(1, 1, 8),
        ),
        (
            named(NCHW, "tensor<1x64x7x7xf32>, tensor<32x64x1x1xf32>", "tensor<1x32x7x7xf32>"),
            Matmul(32, 49, 64),
        ),
        (
            named("linalg.batch_matvec", "tensor<3x4x8xf32>, tensor<3x8xf32>", "tensor<3x4xf32>"),
            BatchMatmul(3, 1, 4, 8, layout="nt"),
        ),
    ],
)  # fmt: skip
def test_variants_are_the_problem_that_does_the_same(text: str, problem: object) -> None:
    problems, left_out = contractions_in(text)
    assert left_out == ()
    assert [each.problem for each in problems] == [problem]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            named("linalg.matmul", "tensor<?x8xf32>, tensor<8x6xf32>", "tensor<?x6xf32>"),
            "f: its sizes are not static",
        ),
        (
            named(NHWC, "tensor<1x9x9x4xf32>, tensor<3x3x4x8xf32>", "tensor<1x7x7x8xf32>"),
            "f: a window of more than one element moves over an operand",
        ),
        (
            named(NCHW, "tensor<2x64x7x7xf32>, tensor<32x64x1x1xf32>", "tensor<2x32x7x7xf32>"),
            "f: rows or columns are apart in an operand: mkmm",
        ),
        (
            named("linalg.contract", f"{CUBE}, {CUBE}", CUBE, BATCH_LAST),
            "f: the batch is not the first dimension",
        ),
        (
            named("linalg.matmul", "tensor<8x4xf32>, tensor<6x8xf32>", "tensor<4x6xf32>", BOTH_TRANSPOSED),
            "f: the layout is none of nn, nt, tn: A km, B nk, C mn",
        ),
        (
            named("linalg.matmul", "tensor<4x8xf32>, tensor<8x6xf64>", "tensor<4x6xf64>"),
            "f: the types f32 and f64 of its inputs are not known together",
        ),
        (
            named("linalg.matmul", "tensor<4x8xi16>, tensor<8x6xi16>", "tensor<4x6xi32>"),
            "f: the types i16 and i16 of its inputs are not known together",
        ),
    ],
)  # fmt: skip
def test_what_no_problem_describes_is_left_out_with_the_reason(text: str, reason: str) -> None:
    problems, left_out = contractions_in(text)
    assert problems == ()
    assert left_out == (reason,)


def test_other_computations_are_not_mentioned() -> None:
    text = named("linalg.add", "tensor<4xf32>, tensor<4xf32>", "tensor<4xf32>")
    assert contractions_in(text) == ((), ())


def test_a_file_is_read_in_a_child_process(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(MODEL)
    problems, left_out = model_contractions(path)
    assert (len(problems), left_out) == (8, ())


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func @f() { return }", r"model\.mlir: has no contraction of static sizes and known types$"),
        (
            named("linalg.matmul", "tensor<?x8xf32>, tensor<8x6xf32>", "tensor<?x6xf32>"),
            r"model\.mlir: has no contraction of static sizes and known types: f: its sizes are not static",
        ),
        ("func.func @f( {", r"model\.mlir"),
    ],
)
def test_a_model_without_a_contraction_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(text)
    with pytest.raises(UsageError, match=message) as raised:
        model_contractions(path)
    assert "\n" not in raised.value.message
