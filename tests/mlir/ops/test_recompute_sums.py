"""``tuner.recompute_sums``: a warp whose sums are not all finite computes them again by multiply-adds."""

import pytest

from tests.mlir.ops.one_op import apply, line_of
from tests.texts import filled

STORE = "vector.store %sums, %c[%i, %j] : memref<64x64xf32>, vector<2xf32>"
NEXT = """%next = arith.addi %i, %c2 : index
vector.store %sums, %c[%next, %j] : memref<64x64xf32>, vector<2xf32>"""
SAME = """%again = affine.apply affine_map<()[s0] -> (s0 + 3)>()[%j]
%more = affine.apply affine_map<()[s0] -> (s0 + 2)>()[%j]
vector.store %sums, %c[%i, %again] : memref<64x64xf32>, vector<2xf32>
vector.store %sums, %c[%i, %more] : memref<64x64xf32>, vector<2xf32>"""


def payload(stores: str = STORE, a: str = "64x32xf32", bounds: str = "") -> str:
    """Returns a launch of 2 x 2 x 2 blocks of a warp, which store to C."""
    bounds_a = f", tuner.bounds = array<i64: {bounds}>" if bounds else ""
    return filled(__file__, "LAUNCH", stores=stores, a=a, bounds_a=bounds_a)


def line(layout: str = "nn", **attributes: int) -> str:
    return line_of("recompute_sums", layout=layout, **attributes)


@pytest.mark.parametrize(
    ("stores", "rows", "columns", "sums"),
    [(STORE, 1, 2, 2), (f"{STORE}\n{NEXT}", 2, 2, 4), (SAME, 1, 3, 4)],
    ids=["one store", "two rows", "columns of two stores that overlap"],
)
def test_a_step_of_k_loads_each_row_and_column_once(stores: str, rows: int, columns: int, sums: int) -> None:
    text = apply(line(), payload(stores))
    assert text.count("memref.load %arg0") == rows
    assert text.count("memref.load %arg1") == columns
    assert text.count("math.fma") == 2 * sums  # of the check and of a step


def test_rows_outside_of_a_read_its_last_one_at_an_address_that_the_loop_computes() -> None:
    text = apply(line(), payload(bounds="50, 30"))
    loop = text.partition("scf.for")[2]
    assert "arith.constant 49" in loop
    assert "arith.minui" in loop
    assert "llvm.inline_asm" in loop
    assert "llvm.inline_asm" not in apply(line(), payload())


def test_a_block_of_a_part_of_k_computes_its_part() -> None:
    text = apply(line(part=24), payload())
    assert "gpu.block_id" in text
    assert text.count("arith.minui") == 1  # the last part ends with K


BRANCH = f"scf.if %flag {{\n {STORE}\n }}\n{STORE}"
OTHER = f"{STORE}\n vector.store %sums, %other[%i, %j] : memref<64x64xf32>, vector<2xf32>"
BECOMES = {"recompute_sums": (line(), payload())}
REFUSED = [
    (line("tt"), payload(), "layout: found 'tt', allowed nn, nt, tn"),
    (
        line(),
        payload().replace('"a"', '"low_a"'),
        "found no arguments with tuner.buffer = 'a' and 'b'",
    ),
    (line(), payload(BRANCH), "found 2 stores to arguments, allowed some in one block, all to one"),
    (line(), payload(OTHER), "found 2 stores to arguments, allowed some in one block, all to one"),
    (line(), payload(""), "found 0 stores to arguments, allowed some in one block, all to one"),
    (line(), payload(a="64x32xf16"), "found matrices of another type, allowed f32"),
]
