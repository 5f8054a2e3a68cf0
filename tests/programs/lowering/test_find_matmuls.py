from collections.abc import Iterator
from typing import Any

import pytest

from tuner.core.errors import CandidateError
from tuner.core.problem import Matmul, Problem
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.programs.lowering import matmul_recognition as find_matmuls
from tuner.programs.lowering.read_program import read_program

pytestmark = pytest.mark.mlir


SIZES = {"m": 8, "n": 4, "k": 16}
PAYLOADS: list[Any] = []  # of the test that runs: values do not keep their module alive


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with transform.new_context(), ir.Location.unknown():
        yield
        PAYLOADS.clear()


def matches(body: str, arguments: str) -> list[Any]:
    text = f"func.func @f({arguments}) {{\n  %zero = arith.constant 0.0 : f32\n  {body}\n  return\n}}"
    PAYLOADS.append(read_program(text))
    return list(find_matmuls.find_matmuls(PAYLOADS[-1]))


def memref(letters: str, dtype: str) -> str:
    return f"memref<{'x'.join(str(SIZES[letter]) for letter in letters)}x{dtype}>"


def contraction(a: str = "mk", b: str = "kn", dtype: str = "f32", output: str = "f32") -> list[Any]:
    """Returns the matches of one ``linalg.contract`` whose operands' dimensions are spelled by letters."""
    kinds = memref(a, dtype), memref(b, dtype), memref("mn", output)
    maps = ", ".join(f"affine_map<(m, n, k) -> ({one[0]}, {one[1]})>" for one in (a, b, "mn"))
    ins = f"ins(%a, %b : {kinds[0]}, {kinds[1]})"
    return matches(
        f"linalg.contract indexing_maps = [{maps}] {ins} outs(%c : {kinds[2]})",
        f"%a: {kinds[0]}, %b: {kinds[1]}, %c: {kinds[2]}",
    )


PLAIN = "%a: memref<8x16xf32>, %b: memref<16x4xf32>, %c: memref<8x4xf32>"
MATMUL = "linalg.matmul ins(%a, %b : memref<8x16xf32>, memref<16x4xf32>) outs(%c : memref<8x4xf32>)"
FILL = "linalg.fill ins(%zero : f32) outs(%c : memref<8x4xf32>)"


@pytest.mark.parametrize(
    ("a", "b", "layout"), [("mk", "kn", "nn"), ("mk", "nk", "nt"), ("km", "kn", "tn"), ("km", "nk", "")]
)
def test_layouts_are_reported_by_the_maps_and_factors_may_come_in_either_order(
    a: str, b: str, layout: str
) -> None:
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


def test_a_named_matmul_is_found_inside_of_loops() -> None:
    constants = "%c0 = arith.constant 0 : index %c1 = arith.constant 1 : index"
    body = f"{constants} scf.for %i = %c0 to %n step %c1 {{ {MATMUL} }}"
    assert [match.problem for match in matches(body, f"{PLAIN}, %n: index")] == [Matmul(8, 4, 16)]


def test_sizes_that_are_not_known_are_left_alone() -> None:
    kinds = "memref<?x16xf32>, memref<16x4xf32>"
    body = f"linalg.matmul ins(%a, %b : {kinds}) outs(%c : memref<?x4xf32>)"
    assert matches(body, "%a: memref<?x16xf32>, %b: memref<16x4xf32>, %c: memref<?x4xf32>") == []


def generic(body: str) -> list[Any]:
    maps = "affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>"
    loops = 'iterator_types = ["parallel", "parallel", "reduction"]'
    return matches(
        f"""linalg.generic {{indexing_maps = [{maps}], {loops}}}
      ins(%a, %b : memref<8x16xf32>, memref<16x4xf32>) outs(%c : memref<8x4xf32>) {{
      ^bb0(%x: f32, %y: f32, %sum: f32):
        {body}
      }}""",
        PLAIN,
    )


def test_a_generic_that_adds_products_is_a_matmul() -> None:
    body = "%p = arith.mulf %y, %x : f32 %s = arith.addf %p, %sum : f32 linalg.yield %s : f32"
    assert [match.problem for match in generic(body)] == [Matmul(8, 4, 16)]


@pytest.mark.parametrize(
    "body",
    [
        "%p = arith.mulf %x, %x : f32 %s = arith.addf %sum, %p : f32 linalg.yield %s : f32",
        "%p = arith.addf %x, %y : f32 %s = arith.addf %sum, %p : f32 linalg.yield %s : f32",
        "%p = arith.mulf %x, %y : f32 %s = arith.subf %sum, %p : f32 linalg.yield %s : f32",
        "%p = arith.mulf %x, %y : f32 linalg.yield %p : f32",
        "%s = arith.addf %sum, %sum : f32 linalg.yield %s : f32",
        "linalg.yield %x : f32",
    ],
)
def test_another_sum_is_no_matmul(body: str) -> None:
    assert generic(body) == []


def test_a_fill_with_zeros_before_it_belongs_to_the_matmul() -> None:
    (match,) = matches(f"{FILL}\n{MATMUL}", PLAIN)
    assert match.zero_fill is not None
    assert match.zero_fill.operands[1] == match.c


C = "memref<8x4xf32>"
CORNER = "memref<2x2xf32, strided<[4, 1]>>"
READ = f"{FILL} %old = memref.load %c[%i, %i] : {C} memref.store %old, %d[%i, %i] : {C}"
VIEWED = f"""{FILL} %v = memref.subview %c[0, 0] [2, 2] [1, 1] : {C} to {CORNER}
  linalg.fill ins(%x : f32) outs(%v : {CORNER})"""

CHOSEN = f"%s = arith.select %flag, %c, %d : {C} {FILL} memref.store %x, %s[%i, %i] : {C}"


@pytest.mark.parametrize(
    ("before", "what"),
    [
        ("", "nothing"),
        (f"%one = arith.constant 1.0 : f32 linalg.fill ins(%one : f32) outs(%c : {C})", "ones"),
        (f"{FILL} memref.store %x, %c[%i, %i] : {C}", "a store behind it"),
        (READ, "a read behind it"),
        (VIEWED, "a write of a view"),
        (CHOSEN, "a write of what may be C"),
        (f"scf.if %flag {{ {FILL} }}", "a branch"),
        (f"linalg.fill ins(%zero : f32) outs(%d : {C})", "another buffer"),
    ],
)
def test_a_fill_that_does_not_decide_what_c_holds_is_left_alone(before: str, what: str) -> None:
    arguments = f"{PLAIN}, %d: memref<8x4xf32>, %x: f32, %i: index, %flag: i1"
    (match,) = matches(f"{before}\n{MATMUL}", arguments)
    assert match.zero_fill is None, what


def test_ops_between_that_leave_c_alone_do_not_matter() -> None:
    between = "linalg.fill ins(%x : f32) outs(%d : memref<8x4xf32>)"
    (match,) = matches(f"{FILL}\n{between}\n{MATMUL}", f"{PLAIN}, %d: memref<8x4xf32>, %x: f32")
    assert match.zero_fill is not None


def test_a_matmul_into_its_own_factor_is_refused() -> None:
    square = "memref<8x8xf32>"
    matmul = f"linalg.matmul ins(%a, %b : {square}, {square}) outs(%a : {square})"
    with pytest.raises(CandidateError, match="a matmul writes into its own input: C needs memory of its own"):
        matches(matmul, f"%a: {square}, %b: {square}")
