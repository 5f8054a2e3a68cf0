"""Matmuls of a program that is lowered, and all contractions of a model."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.models.file_check import cases
from tests.texts import text_beside
from tuner.core.errors import CandidateError, UsageError
from tuner.core.matmul import BatchMatmul, Matmul
from tuner.core.problem import NamedProblem, Problem
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.programs.matmuls import find_matmuls
from tuner.models.lowering.model_contractions import contractions_in, model_contractions
from tuner.models.lowering.read_program import read_program

SIZES = {"m": 8, "n": 4, "k": 16}
PAYLOADS: list[Any] = []  # of the test that runs: values do not keep their module alive
PLAIN = "%a: memref<8x16xf32>, %b: memref<16x4xf32>, %c: memref<8x4xf32>"
MATMUL = "linalg.matmul ins(%a, %b : memref<8x16xf32>, memref<16x4xf32>) outs(%c : memref<8x4xf32>)"
FILL = "linalg.fill ins(%zero : f32) outs(%c : memref<8x4xf32>)"
NHWC, NCHW = "linalg.conv_2d_nhwc_hwcf", "linalg.conv_2d_nchw_fchw"
NAMED = "linalg.matmul"
NONE = r"model\.mlir: has no contraction of static sizes and known types"
WINDOW = "a window of more than one element moves over an operand"


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with transform.new_context(), ir.Location.unknown():
        yield
        PAYLOADS.clear()


def matches(body: str, arguments: str) -> list[Any]:
    text = f"func.func @f({arguments}) {{\n  %zero = arith.constant 0.0 : f32\n  {body}\n  return\n}}"
    PAYLOADS.append(read_program(text))
    return list(find_matmuls(PAYLOADS[-1]))


def memref(letters: str, dtype: str) -> str:
    return f"memref<{'x'.join(str(SIZES[letter]) for letter in letters)}x{dtype}>"


def maps(loops: str, *operands: str) -> str:
    """Returns the attribute of an operation with other maps: maps("mnk", "km", "kn", "mn")."""
    listed = (f"affine_map<({', '.join(loops)}) -> ({', '.join(each)})>" for each in operands)
    return f"indexing_maps = [{', '.join(listed)}]"


def contraction(a: str = "mk", b: str = "kn", dtype: str = "f32", output: str = "f32") -> list[Any]:
    """Returns the matches of one ``linalg.contract`` whose operands' dimensions are spelled by letters."""
    of_a, of_b, of_c = memref(a, dtype), memref(b, dtype), memref("mn", output)
    text = f"linalg.contract {maps('mnk', a, b, 'mn')} ins(%a, %b : {of_a}, {of_b}) outs(%c : {of_c})"
    return matches(text, f"%a: {of_a}, %b: {of_b}, %c: {of_c}")


@pytest.mark.parametrize("spelled", ["mk kn nn", "mk nk nt", "km kn tn", "km nk "])
def test_layouts_are_those_of_the_maps_in_either_order_of_factors(spelled: str) -> None:
    a, b, layout = spelled.split(" ")
    expected = [Matmul(8, 4, 16, layout=layout)] if layout else []  # both transposed is none of ours
    assert [match.problem for match in contraction(a, b)] == expected
    swapped = contraction(b, a)
    assert [match.problem for match in swapped] == expected
    assert all((match.a.arg_number, match.b.arg_number) == (1, 0) for match in swapped)


@pytest.mark.parametrize(
    ("dtype", "output", "problems"),
    [
        ("f16", "f32", [Matmul(8, 4, 16, "f16")]),
        ("f16", "f16", [Matmul(8, 4, 16, "f16", output="f16")]),
        ("bf16", "bf16", [Matmul(8, 4, 16, "bf16", output="bf16")]),
        ("f64", "f64", [Matmul(8, 4, 16, "f64")]),
        ("f32", "f64", []),  # without a strategy
    ],
)
def test_element_types_are_reported_by_the_operands(dtype: str, output: str, problems: list[Problem]) -> None:
    assert [match.problem for match in contraction(dtype=dtype, output=output)] == problems


def test_a_matmul_is_found_inside_of_loops_sizes_that_are_not_known_and_its_own_factor_not() -> None:
    constants = "%c0 = arith.constant 0 : index %c1 = arith.constant 1 : index"
    body = f"{constants} scf.for %i = %c0 to %n step %c1 {{ {MATMUL} }}"
    assert [match.problem for match in matches(body, f"{PLAIN}, %n: index")] == [Matmul(8, 4, 16)]
    kinds = "memref<?x16xf32>, memref<16x4xf32>"
    body = f"linalg.matmul ins(%a, %b : {kinds}) outs(%c : memref<?x4xf32>)"
    assert matches(body, "%a: memref<?x16xf32>, %b: memref<16x4xf32>, %c: memref<?x4xf32>") == []
    square = "memref<8x8xf32>"
    matmul = f"linalg.matmul ins(%a, %b : {square}, {square}) outs(%a : {square})"
    with pytest.raises(CandidateError, match="a matmul writes into its own input: C needs memory of its own"):
        matches(matmul, f"%a: {square}, %b: {square}")


@pytest.mark.parametrize(("options", "body"), cases(text_beside(__file__, "GENERICS")))
def test_a_generic_that_adds_products_is_a_matmul_and_another_sum_is_none(
    options: dict[str, str], body: str
) -> None:
    loops = f"{maps('mnk', 'mk', 'kn', 'mn')}, " + 'iterator_types = ["parallel", "parallel", "reduction"]'
    head = MATMUL.replace("linalg.matmul", f"linalg.generic {{{loops}}}")
    found = matches(f"{head} {{\n^bb0(%x: f32, %y: f32, %sum: f32):\n{body} }}", PLAIN)
    assert [match.problem for match in found] == [Matmul(8, 4, 16)] * int(options["matmuls"])


@pytest.mark.parametrize("between", ["", "linalg.fill ins(%x : f32) outs(%d : memref<8x4xf32>)"])
def test_a_fill_with_zeros_before_it_belongs_to_the_matmul_whatever_leaves_c_alone(between: str) -> None:
    (match,) = matches(f"{FILL}\n{between}\n{MATMUL}", f"{PLAIN}, %d: memref<8x4xf32>, %x: f32")
    assert match.zero_fill is not None
    assert match.zero_fill.operands[1] == match.c


@pytest.mark.parametrize(("options", "before"), cases(text_beside(__file__, "OTHER_FILLS")))
def test_a_fill_that_does_not_decide_what_c_holds_is_left_alone(options: dict[str, str], before: str) -> None:
    arguments = f"{PLAIN}, %d: memref<8x4xf32>, %x: f32, %i: index, %flag: i1"
    (match,) = matches(f"{before}\n{MATMUL}", arguments)
    assert match.zero_fill is None, options["what"]


TRANSPOSED_A = "linalg.matmul " + maps("mnk", "km", "kn", "mn")
BOTH_TRANSPOSED = "linalg.matmul " + maps("mnk", "km", "nk", "mn")
BATCH_LAST = "linalg.contract " + maps("bmnk", "bmk", "kbn", "bmn")


def named(op: str, kinds: str) -> str:
    """Returns a function that computes ``op`` of tensors of the first two kinds into one of the third."""
    left, right, result = (f"tensor<{each}>" for each in kinds.split(", "))
    return f"""func.func @f(%a: {left}, %b: {right}, %c: {result}) -> {result} {{
      %0 = {op} ins(%a, %b : {left}, {right}) outs(%c : {result}) -> {result}
      return %0 : {result}
    }}"""


def test_every_contraction_is_found_counted_and_named_by_its_function_and_nothing_else() -> None:
    problems, left_out = contractions_in(text_beside(__file__, "MODEL"))
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
    assert contractions_in(named("linalg.add", "4xf32, 4xf32, 4xf32")) == ((), ())


@pytest.mark.parametrize(
    ("op", "kinds", "problem"),
    [
        (TRANSPOSED_A, "8x4xf32, 8x6xf32, 4x6xf32", Matmul(4, 6, 8, layout="tn")),
        (NAMED, "4x8xi8, 8x6xi8, 4x6xi32", Matmul(4, 6, 8, "i8")),
        (NAMED, "4x8xf16, 8x6xf16, 4x6xf16", Matmul(4, 6, 8, "f16", output="f16")),
        (NAMED, "1x8xf32, 8x6xf32, 1x6xf32", Matmul(1, 6, 8)),
        ("linalg.dot", "8xf32, 8xf32, f32", Matmul(1, 1, 8)),
        (NCHW, "1x64x7x7xf32, 32x64x1x1xf32, 1x32x7x7xf32", Matmul(32, 49, 64)),
        ("linalg.batch_matvec", "3x4x8xf32, 3x8xf32, 3x4xf32", BatchMatmul(3, 1, 4, 8, layout="nt")),
    ],
)
def test_variants_are_the_problem_that_does_the_same(op: str, kinds: str, problem: object) -> None:
    problems, left_out = contractions_in(named(op, kinds))
    assert left_out == ()
    assert [each.problem for each in problems] == [problem]


@pytest.mark.parametrize(
    ("op", "kinds", "reason"),
    [
        (NAMED, "?x8xf32, 8x6xf32, ?x6xf32", "its sizes are not static"),
        (NHWC, "1x9x9x4xf32, 3x3x4x8xf32, 1x7x7x8xf32", WINDOW),
        (NCHW, "2x64x7x7xf32, 32x64x1x1xf32, 2x32x7x7xf32", "rows or columns are apart in an operand: mkmm"),
        (BATCH_LAST, "4x4x4xf32, 4x4x4xf32, 4x4x4xf32", "the batch is not the first dimension"),
        (BOTH_TRANSPOSED, "8x4xf32, 6x8xf32, 4x6xf32", "the layout is not nn, nt or tn: A km, B nk, C mn"),
        (NAMED, "4x8xf32, 8x6xf64, 4x6xf64", "the types f32 and f64 of its inputs are not known together"),
        (NAMED, "4x8xi16, 8x6xi16, 4x6xi32", "the types i16 and i16 of its inputs are not known together"),
    ],
)
def test_what_no_problem_describes_is_left_out_with_the_reason(op: str, kinds: str, reason: str) -> None:
    assert contractions_in(named(op, kinds)) == ((), (f"f: {reason}",))


def test_a_file_is_read_in_a_child_process(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(text_beside(__file__, "MODEL"))
    problems, left_out = model_contractions(path)
    assert (len(problems), left_out) == (8, ())


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func @f() { return }", NONE + "$"),
        (named(NAMED, "?x8xf32, 8x6xf32, ?x6xf32"), NONE + ": f: its sizes are not static"),
        ("func.func @f( {", r"model\.mlir"),
    ],
)
def test_a_model_without_a_contraction_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(text)
    with pytest.raises(UsageError, match=message) as raised:
        model_contractions(path)
    assert "\n" not in raised.value.message
