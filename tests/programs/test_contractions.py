from pathlib import Path

import pytest

from tests.texts import text_beside
from tuner.core.errors import UsageError
from tuner.core.problem import BatchMatmul, Matmul
from tuner.programs.lowering.matmul_recognition import contractions_in, model_contractions
from tuner.tuning.campaign import NamedProblem

MODEL = text_beside(__file__, "MODEL")

NHWC, NCHW = "linalg.conv_2d_nhwc_hwcf", "linalg.conv_2d_nchw_fchw"
CUBE = "4x4x4xf32"


def maps(loops: str, *operands: str) -> str:
    """Returns the attribute of an operation with other maps: maps("mnk", "km", "kn", "mn")."""
    listed = (f"affine_map<({', '.join(loops)}) -> ({', '.join(each)})>" for each in operands)
    return f"indexing_maps = [{', '.join(listed)}]"


TRANSPOSED_A = maps("mnk", "km", "kn", "mn")
BOTH_TRANSPOSED = maps("mnk", "km", "nk", "mn")
BATCH_LAST = maps("bmnk", "bmk", "kbn", "bmn")


def named(op: str, operands: str, result: str, extra: str = "") -> str:
    left, right, result = (f"tensor<{each}>" for each in (*operands.split(", "), result))
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


MATMUL, CUBES = "linalg.matmul", f"{CUBE}, {CUBE}"


@pytest.mark.parametrize(
    ("op", "operands", "result", "extra", "problem"),
    [
        (MATMUL, "8x4xf32, 8x6xf32", "4x6xf32", TRANSPOSED_A, Matmul(4, 6, 8, layout="tn")),
        (MATMUL, "4x8xi8, 8x6xi8", "4x6xi32", "", Matmul(4, 6, 8, "i8")),
        (MATMUL, "4x8xf16, 8x6xf16", "4x6xf16", "", Matmul(4, 6, 8, "f16", output="f16")),
        (MATMUL, "1x8xf32, 8x6xf32", "1x6xf32", "", Matmul(1, 6, 8)),
        ("linalg.dot", "8xf32, 8xf32", "f32", "", Matmul(1, 1, 8)),
        (NCHW, "1x64x7x7xf32, 32x64x1x1xf32", "1x32x7x7xf32", "", Matmul(32, 49, 64)),
        ("linalg.batch_matvec", "3x4x8xf32, 3x8xf32", "3x4xf32", "", BatchMatmul(3, 1, 4, 8, layout="nt")),
    ],
)
def test_variants_are_the_problem_that_does_the_same(
    op: str, operands: str, result: str, extra: str, problem: object
) -> None:
    problems, left_out = contractions_in(named(op, operands, result, extra))
    assert left_out == ()
    assert [each.problem for each in problems] == [problem]


@pytest.mark.parametrize(
    ("op", "operands", "result", "extra", "reason"),
    [
        (MATMUL, "?x8xf32, 8x6xf32", "?x6xf32", "", "its sizes are not static"),
        (
            *(NHWC, "1x9x9x4xf32, 3x3x4x8xf32", "1x7x7x8xf32", ""),
            "a window of more than one element moves over an operand",
        ),
        (
            *(NCHW, "2x64x7x7xf32, 32x64x1x1xf32", "2x32x7x7xf32", ""),
            "rows or columns are apart in an operand: mkmm",
        ),
        ("linalg.contract", CUBES, CUBE, BATCH_LAST, "the batch is not the first dimension"),
        (
            *(MATMUL, "8x4xf32, 6x8xf32", "4x6xf32", BOTH_TRANSPOSED),
            "the layout is none of nn, nt, tn: A km, B nk, C mn",
        ),
        (
            *(MATMUL, "4x8xf32, 8x6xf64", "4x6xf64", ""),
            "the types f32 and f64 of its inputs are not known together",
        ),
        (
            *(MATMUL, "4x8xi16, 8x6xi16", "4x6xi32", ""),
            "the types i16 and i16 of its inputs are not known together",
        ),
    ],
)
def test_what_no_problem_describes_is_left_out_with_the_reason(
    op: str, operands: str, result: str, extra: str, reason: str
) -> None:
    assert contractions_in(named(op, operands, result, extra)) == ((), (f"f: {reason}",))


def test_other_computations_are_not_mentioned() -> None:
    text = named("linalg.add", "4xf32, 4xf32", "4xf32")
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
            named(MATMUL, "?x8xf32, 8x6xf32", "?x6xf32"),
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
