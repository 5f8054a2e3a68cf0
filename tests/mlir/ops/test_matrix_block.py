"""``tuner.matrix_block`` of bytes and bf16: the code is right, and what is refused."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.mlir.ops import block_runs
from tests.mlir.ops.block_runs import Sizes, payload, require_product
from tests.mlir.ops.one_op import line_of
from tests.mlir.ops.test_vnni_block import drawn
from tuner.runtime.cpu.host import describe_machine

HERE = describe_machine()
EMULATES = HERE.isa != "neon"
DRAWS = {"i8": drawn, "bf16": block_runs.small_numbers(ml_dtypes.bfloat16)}
RUNS = {"i8": EMULATES or HERE.has_i8mm, "bf16": EMULATES or HERE.has_arm_bf16}
SIZES = [(1, 3, 1), (9, 20, 16), (17, 49, 35), (10, 33, 67)]


def line(tile_m: int = 8, tile_n: int = 8, **more: int) -> str:
    return line_of("matrix_block", tile_m=tile_m, tile_n=tile_n, **more)


def require(dtype: str, script: str, sizes: Sizes, **more: Any) -> None:
    if not RUNS[dtype]:
        pytest.skip("this processor has no products of small matrices")
    require_product(script, sizes, DRAWS[dtype], emulates=EMULATES, **more)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("panels_first", [0, 1])
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("dtype", ["i8", "bf16"])
def test_small_matrices_multiply(dtype: str, sizes: Sizes, layout: str, panels_first: int) -> None:
    require(dtype, line(4, 8, unroll=4, panels_first=panels_first), sizes, layout=layout)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["i8", "bf16"])
@pytest.mark.parametrize(("knobs", "unroll"), [((2, 4), 1), ((8, 12), 2), ((6, 16), 3)], ids=str)
def test_any_tile_adds_to_c_without_a_fill(knobs: tuple[int, int], unroll: int, dtype: str) -> None:
    require(dtype, line(*knobs, unroll=unroll), (13, 30, 50), fill="")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["i8", "bf16"])
@pytest.mark.parametrize(("n", "block"), [(70, 64), (5, 16)])
def test_blocks_of_two_widths_share_their_code(n: int, block: int, dtype: str) -> None:
    script = line(4, 8, columns=block, last_columns=n % block)
    require(dtype, script, (9, n, 37), block=block)


def test_a_row_that_is_not_there_does_not_make_others_nan() -> None:
    a = DRAWS["bf16"]((3, 8))
    b = DRAWS["bf16"]((8, 8))
    c = np.zeros((3, 8), np.float32)
    a[2] = np.nan
    block_runs.run(line(), payload(3, 8, 8, "bf16"), (a, b, c), emulates=EMULATES)
    np.testing.assert_array_equal(c[:2], block_runs.exact(a, b)[:2].astype(np.float32))
    assert np.isnan(c[2]).all()


BECOMES = {"matrix_block": (line(2, 4, unroll=1), payload(2, 4, 64, "i8"))}
REFUSED = [
    (line(3, 8), payload(32, 64, 64, "i8"), "found 3 x 8 sums, unroll 4, allowed an even number of rows"),
    (line(8, 6), payload(32, 64, 64, "i8"), "found 8 x 6 sums, unroll 4, allowed an even number of rows"),
    (line(unroll=0), payload(32, 64, 64, "i8"), "found 8 x 8 sums, unroll 0"),
    (
        line(),
        payload(32, 64, 64, "f32"),
        "found a matmul of f32 into f32, allowed i8 into i32 or bf16 into f32",
    ),
]
