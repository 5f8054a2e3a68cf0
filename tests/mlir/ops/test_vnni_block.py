"""``tuner.pair_block`` of bf16 and ``tuner.vnni_block`` of bytes: the code is right, and what is refused."""

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.default_suite import ALL
from tests.mlir.ops import block_runs
from tests.mlir.ops.block_runs import Array, Sizes, exact, payload, require_product, run
from tests.mlir.ops.one_op import apply, line_of
from tuner.core.instruction_sets import AVX2, AVX512
from tuner.runtime.cpu.host import describe_machine

HERE = describe_machine()
ODD = (17, 49, 35)
drawn_bf16 = block_runs.small_numbers(ml_dtypes.bfloat16)


def line(tile_m: int = 6, tile_n: int = 64, lanes: int = 16, *, op: str = "vnni_block", **more: int) -> str:
    return line_of(op, tile_m=tile_m, tile_n=tile_n, lanes=lanes, **more)


def pair_line(*knobs: int, dots: int = 0, **more: int) -> str:
    return line(*knobs, op="pair_block", dots=dots, **more)


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
def test_pairs_multiply(sizes: Sizes, knobs: tuple[int, ...], dots: int) -> None:
    if dots and not HERE.has_bf16:
        pytest.skip("this processor has no AVX512-BF16")
    if dots and knobs[2:] == (8,):
        pytest.skip("vdpbf16ps of 256 bits is not made")
    require_product(pair_line(*knobs, dots=dots), sizes, drawn_bf16, emulates=False)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("panels_first", [0, 1])
@pytest.mark.parametrize(("sizes", "layout"), [(ODD, "nt"), (ODD, "tn"), ((33, 65, 131), "tn")])
def test_every_layout_and_order_of_loops(sizes: Sizes, layout: str, panels_first: int) -> None:
    script = pair_line(4, 32, panels_first=panels_first)
    require_product(script, sizes, drawn_bf16, layout=layout, emulates=False)


@pytest.mark.parametrize("layout", ["nn", "nt"])
def test_only_a_weight_of_k_x_n_comes_packed(layout: str) -> None:
    text = payload(4, 64, 64, "bf16", layout)
    changed = apply(pair_line(4, 32), re.sub(r"(%b: memref<[^>]*>)", r"\1 {tuner.weight}", text, count=1))
    assert ("tuner.packing" in changed) == (layout == "nn")


@pytest.mark.parametrize(
    ("m", "fetched"),
    [(4, 4), (8, 2), (10, 2), (16, 1), (40, 1)],  # of the four cache lines of a K group
)
def test_a_weights_next_block_is_divided_among_strips(m: int, fetched: int) -> None:
    text = payload(m, 64, 64, "bf16", "nn")
    weight = re.sub(r"(%b: memref<[^>]*>)", r"\1 {tuner.weight}", text, count=1)
    changed = apply(pair_line(4, 64, fetches_b=1), weight)
    loops = changed.count("vector.load %arg1[") // 4  # of whole strips, and of the last
    assert loops == 1 + (m % 4 > 0)
    assert changed.count("memref.prefetch %arg1[") == fetched * loops
    assert "memref.prefetch" not in apply(pair_line(4, 64), weight)


@pytest.mark.parametrize(("n", "block"), [(100, 64), (5, 16)])
def test_blocks_of_pairs_of_two_widths_share_their_code(n: int, block: int) -> None:
    script = pair_line(4, 32, columns=block, last_columns=n % block or block)
    require_product(script, (9, n, 37), drawn_bf16, block=block, emulates=False)
    require_product(pair_line(), (7, 17, 40), drawn_bf16, fill="", emulates=False)  # C is added to


def test_nan_and_infinities_stay_in_their_rows() -> None:
    a, b, c = drawn_bf16((4, 5)), drawn_bf16((5, 16)), np.zeros((4, 16), np.float32)
    a[1, 4], a[2, 0] = np.nan, np.inf
    b[0] = 1
    run(pair_line(), payload(4, 16, 5, "bf16"), (a, b, c), emulates=False)
    np.testing.assert_array_equal(c, exact(a, b).astype(np.float32))


# ``tuner.vnni_block``: the code it makes of a matmul of bytes, that it is exact, and what it refuses.
def drawn(shape: tuple[int, int]) -> Array:
    """All bytes, the least and the greatest often: their products do not fit a sum of 16 bits."""
    rng = np.random.default_rng(0)
    numbers = rng.integers(-128, 128, shape)
    return np.where(rng.random(shape) < 0.3, rng.choice([-128, 127], shape), numbers).astype(np.int8)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("emulates", [True, False], ids=["emulated", "vnni"])
@pytest.mark.parametrize(
    ("sizes", "layout", "knobs"),
    [
        ((12, 64, 64), "nn", (6, 64)),
        ((17, 49, 35), "nn", (4, 32)),
        ((17, 49, 35), "nt", (6, 32)),
        ((17, 49, 35), "tn", (6, 16)),
        ((1, 3, 1), "nt", (1, 16)),
        ((33, 65, 131), "tn", (2, 64)),
        ((17, 49, 35), "nt", (4, 16, 8)),  # registers of 256 bits
    ],
    ids=str,
)
def test_dot_products_multiply(sizes: Sizes, layout: str, knobs: Any, emulates: bool) -> None:
    lanes = knobs[2] if len(knobs) == 3 else 16
    if not emulates and not (HERE.has_vnni and 4 * lanes <= HERE.vector_bytes):
        pytest.skip(f"this processor has no VNNI in registers of {32 * lanes} bits")
    require_product(line(*knobs), sizes, drawn, layout=layout, emulates=emulates)


# Words: pairs of bytes extended to 16 bits, by vpmaddwd.
@pytest.mark.drawn(2)
@pytest.mark.parametrize("panels_first", [0, 1])
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
@pytest.mark.parametrize("sizes", [(1, 3, 1), (12, 64, 64), (17, 49, 35), (10, 33, 67)], ids=str)
def test_products_of_words(sizes: Sizes, layout: str, panels_first: int) -> None:
    require_words((6, 16, 8), sizes, layout, panels_first)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
@pytest.mark.parametrize("knobs", [(1, 64, 8), (4, 32, 16), (2, 32, 8)], ids=str)
def test_tiles_of_products_of_words(knobs: tuple[int, int, int], layout: str) -> None:
    for sizes in ((1, 3, 1), (5, 65, 130), (33, 31, 16), (2, 129, 17)):
        require_words(knobs, sizes, layout, 0)


def require_words(knobs: tuple[int, int, int], sizes: Sizes, layout: str, panels_first: int) -> None:
    script = line(*knobs, words=1, panels_first=panels_first)
    for fill in ("0", ""):
        require_product(script, sizes, drawn, layout=layout, fill=fill, emulates=True)
        if HERE.isa == AVX512 or (HERE.isa == AVX2 and knobs[2] == 8):
            require_product(script, sizes, drawn, layout=layout, fill=fill, emulates=False)


def test_words_are_extended_before_the_loop_but_those_of_a_weight_in_it() -> None:
    text = payload(4, 64, 64, "i8")
    inside = apply(line(4, 16, 8, words=1), text)
    weight = re.sub(r"(%b: memref<[^>]*>)", r"\1 {tuner.weight}", text, count=1)
    packed = apply(line(4, 16, 8, words=1, fetches_b=1), weight)
    assert "memref.alloc() {alignment = 64 : i64} : memref<128x32xi16>" in inside
    assert ("tuner.interleave = 2" in packed, "tuner.unsigned" in packed) == (True, False)
    assert "xi16>" in packed.split("func.call @vpmaddwd_256")[0]
    assert packed.count("memref.prefetch %arg1[") == 1


# Registers of 128 bits: sdot and bfdot of AArch64, whose products take one lane of a register of A.
AARCH64_SIZES = [(1, 3, 1), (9, 20, 16), (17, 49, 35), (10, 33, 67)]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("panels_first", [0, 1])
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
@pytest.mark.parametrize("sizes", AARCH64_SIZES, ids=str)
def test_products_by_lanes(sizes: Sizes, layout: str, panels_first: int) -> None:
    emulates = HERE.isa != "neon"
    of_bytes = line(4, 8, 4, panels_first=panels_first)
    of_pairs = pair_line(6, 12, 4, dots=1, panels_first=panels_first)
    if emulates or HERE.has_dotprod:
        require_product(of_bytes, sizes, drawn, layout=layout, emulates=emulates)
    if emulates or HERE.has_arm_bf16:
        require_product(of_pairs, sizes, drawn_bf16, layout=layout, emulates=emulates)


def test_signed_bytes_need_no_sums_of_rows_and_weights_come_packed_as_they_are() -> None:
    text = re.sub(r"(%b: memref<[^>]*>)", r"\1 {tuner.weight}", payload(4, 16, 64, "i8", "nt"), count=1)
    assert "vector.reduction" not in apply(line(4, 8, 4), text)
    weight = re.sub(r"(%b: memref<[^>]*>)", r"\1 {tuner.weight}", payload(4, 16, 64, "i8"), count=1)
    changed = apply(line(4, 8, 4), weight)
    assert ("tuner.packing" in changed, "tuner.unsigned" in changed, "arith.xori" in changed) == (
        True,
        False,
        False,
    )
    assert "tuner.unsigned" in apply(line(4, 8, 8), weight)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
def test_panels_outside_of_strips_give_the_same_or_add_to_c_without_a_fill(layout: str) -> None:
    for fill in ("0", ""):
        require_product(line(4, 32, panels_first=1), (17, 70, 67), drawn, layout=layout, fill=fill)


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize("panels_first", [0, 1])
@pytest.mark.parametrize(("layout", "fetched"), [("nt", (2, 4)), ("tn", (0, 0))])  # tn: A is packed
def test_rows_of_the_next_strip_are_divided_among_panels(
    layout: str, fetched: tuple[int, int], panels_first: int
) -> None:
    script = line(4, 32, fetches_a=1, panels_first=panels_first)
    text = apply(script, payload(8, 64, 68, "i8", layout))
    assert text.count("memref.prefetch %arg0[") == fetched[panels_first]
    require_product(script, (8, 64, 68), drawn, layout=layout)


@pytest.mark.parametrize(("m", "fetched"), [(1, 4), (8, 2), (16, 1), (40, 1)])  # of four rows of a K group
def test_rows_of_the_next_block_of_k_are_divided_among_strips(m: int, fetched: int) -> None:
    tile, text = line(4, 64), payload(m, 128, 68, "i8")
    script = line(min(m, 4), 64, fetches_b=1)
    more = apply(script, text).count("memref.prefetch") - apply(tile, text).count("memref.prefetch")
    assert more == fetched
    require_product(script, (m, 128, 68), drawn)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
@pytest.mark.parametrize(("n", "block"), [(100, 64), (70, 64), (90, 48), (5, 16)])
def test_blocks_of_two_widths_share_their_code(n: int, block: int, layout: str) -> None:
    script = line(4, 32, columns=block, last_columns=n % block or block)
    require_product(script, (9, n, 37), drawn, layout=layout, block=block)


SHOWN = [(pair_line(1, 16, dots=1), payload(1, 16, 64, "bf16")), (line(1, 16), payload(1, 16, 64, "i8"))]
BECOMES = {
    "pair_block": (pair_line(2, 16), payload(2, 16, 64, "bf16")),
    "vnni_block": (line(2, 16), payload(2, 16, 64, "i8")),
}
OF_BYTES = payload(32, 64, 64, "i8")
UNSIGNED = OF_BYTES.replace("linalg.matmul", "linalg.matmul {cast = #linalg.type_fn<cast_unsigned>}")
DYNAMIC = OF_BYTES.replace("64x64xi8", "64x?xi8")
TYPES = r"memref<32x64xi8> x memref<64x\?xi8> x memref<32x64xi32>"
REFUSED = [
    (pair_line(6, 24), payload(32, 64, 64, "bf16"), "found 6 x 24 sums in registers of 16, allowed whole"),
    (pair_line(0, 16), payload(32, 64, 64, "bf16"), "found 0 x 16 sums"),
    (pair_line(4, 16, 8, dots=1), payload(32, 64, 64, "bf16"), "found vdpbf16ps with 8 lanes, allowed 16"),
    (pair_line(), payload(32, 64, 64, "i8"), "found a matmul of i8 into i32, allowed bf16"),
    (line(6, 24), payload(32, 64, 64, "i8"), "found 6 x 24 sums in registers of 16, allowed whole"),
    (line(0, 16), payload(32, 64, 64, "i8"), "found 0 x 16 sums"),
    (line(), payload(32, 64, 64, "bf16"), "found a matmul of bf16 into f32, allowed i8 into i32"),
    (line(), UNSIGNED, "found a matmul of unsigned integers, allowed memrefs"),
    (line(), DYNAMIC, rf"found a matmul of {TYPES}, allowed memrefs"),
]
