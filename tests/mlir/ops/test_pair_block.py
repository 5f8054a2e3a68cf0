"""``tuner.pair_block``: the code it makes of a matmul of bf16, that it is right, and what it refuses."""

import ml_dtypes
import numpy as np
import pytest

from tests.mlir.ops.block_runs import Array, blocks_payload, exact, payload, require_product, run
from tests.mlir.ops.conftest import Apply
from tuner.runtime.cpu.host import describe_machine

pytestmark = pytest.mark.mlir

HERE = describe_machine()


def line(tile_m: int = 6, tile_n: int = 64, lanes: int = 16, *, dots: int = 0, more: str = "") -> str:
    knobs = f"tile_m = {tile_m} : i64, tile_n = {tile_n} : i64, lanes = {lanes} : i64, dots = {dots} : i64"
    return f'"tuner.pair_block"(%func) {{{knobs}{more}}} : (!transform.any_op) -> ()'


def drawn(shape: tuple[int, int]) -> Array:
    """Small whole numbers: every sum is exact, in any order."""
    return np.random.default_rng(0).integers(-8, 8, shape).astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("dots", [0, 1], ids=["f32", "dots"])
@pytest.mark.parametrize(
    ("sizes", "knobs"),
    [
        ((12, 64, 64), (6, 64)),
        ((17, 49, 35), (4, 32)),
        ((1, 3, 1), (1, 16)),
        ((7, 65, 2), (2, 48)),
        ((17, 49, 35), (4, 16, 8)),  # registers of 256 bits
    ],
    ids=str,
)
def test_pairs_give_the_product(
    sizes: tuple[int, int, int], knobs: tuple[int, ...], dots: int, apply: Apply
) -> None:
    if dots and not HERE.has_bf16:
        pytest.skip("this processor has no AVX512-BF16")
    if dots and knobs[2:] == (8,):
        pytest.skip("vdpbf16ps of 256 bits is not made")
    require_product(apply, line(*knobs, dots=dots), payload(*sizes, "bf16"), sizes, drawn, emulates=False)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("panels_first", [0, 1])
@pytest.mark.parametrize(
    ("sizes", "layout"), [((17, 49, 35), "nt"), ((17, 49, 35), "tn"), ((33, 65, 131), "tn")]
)
def test_every_layout_and_order_of_loops(
    sizes: tuple[int, int, int], layout: str, panels_first: int, apply: Apply
) -> None:
    script = line(4, 32, more=f", panels_first = {panels_first} : i64")
    text = payload(*sizes, "bf16", layout)
    require_product(apply, script, text, sizes, drawn, layout=layout, emulates=False)


@pytest.mark.parametrize(("n", "block"), [(100, 64), (5, 16)])
def test_blocks_of_two_widths_share_their_code(n: int, block: int, apply: Apply) -> None:
    script = line(4, 32, more=f", columns = {block} : i64, last_columns = {n % block or block} : i64")
    text = blocks_payload(9, n, 37, "bf16", "nn", block)
    require_product(apply, script, text, (9, n, 37), drawn, emulates=False)


def test_without_a_fill_c_is_added_to(apply: Apply) -> None:
    text = payload(7, 17, 40, "bf16", fill="")
    require_product(apply, line(), text, (7, 17, 40), drawn, start=7, emulates=False)


def test_nan_and_infinities_stay_in_their_rows(apply: Apply) -> None:
    a, b, c = drawn((4, 5)), drawn((5, 16)), np.zeros((4, 16), np.float32)
    a[1, 4], a[2, 0] = np.nan, np.inf
    b[0] = 1
    run(apply, line(), payload(4, 16, 5, "bf16"), (a, b, c), emulates=False)
    np.testing.assert_array_equal(c, exact(a, b).astype(np.float32))


SHOWN = line(1, 16, dots=1), payload(1, 16, 64, "bf16")
BECOMES = {
    "pair_block": (line(2, 16), payload(2, 16, 64, "bf16")),
}
REFUSED = [
    (line(6, 24), payload(32, 64, 64, "bf16"), "found 6 x 24 sums in registers of 16, allowed whole"),
    (line(0, 16), payload(32, 64, 64, "bf16"), "found 0 x 16 sums"),
    (line(4, 16, 8, dots=1), payload(32, 64, 64, "bf16"), "found dots with 8 lanes, allowed 16"),
    (line(), payload(32, 64, 64, "i8"), "found a matmul of i8 into i32, allowed bf16"),
]
