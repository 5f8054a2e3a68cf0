"""``tuner.vnni_block``: the code it makes of a matmul of bytes, that it is exact, and what it refuses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.mlir.ops.block_runs import blocks_payload, payload, run
from tests.mlir.ops.conftest import Apply
from tuner.core.errors import CandidateError, Stage
from tuner.runtime.cpu.host import describe_machine

pytestmark = pytest.mark.mlir

Array = Any
HERE = describe_machine()


def line(tile_m: int = 6, tile_n: int = 64, lanes: int = 16, *, more: str = "") -> str:
    knobs = f"tile_m = {tile_m} : i64, tile_n = {tile_n} : i64, lanes = {lanes} : i64{more}"
    return f'"tuner.vnni_block"(%func) {{{knobs}}} : (!transform.any_op) -> ()'


def drawn(shape: tuple[int, int]) -> Array:
    """All bytes, the least and the greatest often: their products do not fit a sum of 16 bits."""
    rng = np.random.default_rng(0)
    numbers = rng.integers(-128, 128, shape)
    return np.where(rng.random(shape) < 0.3, rng.choice([-128, 127], shape), numbers).astype(np.int8)


def expected(a: Array, b: Array, layout: str) -> Array:
    a, b = a.astype(np.int64), b.astype(np.int64)
    product: Array = (a.T if layout == "tn" else a) @ (b.T if layout == "nt" else b)
    return product


def test_a_matmul_becomes_packing_and_dot_products(apply: Apply, golden: Callable[[str, str], None]) -> None:
    text = apply(line(2, 16), payload(2, 16, 64, "i8"))
    assert "linalg." not in text
    assert "@vpdpbusd_512(vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>" in text
    golden("vnni_block.mlir", text)


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
def test_dot_products_give_the_product(
    sizes: tuple[int, int, int], layout: str, knobs: tuple[int, ...], emulates: bool, apply: Apply
) -> None:
    if not emulates and not HERE.has_vnni:
        pytest.skip("this processor has no VNNI")
    m, n, k = sizes
    a, b = drawn((k, m) if layout == "tn" else (m, k)), drawn((n, k) if layout == "nt" else (k, n))
    c = np.full((m, n), 7, np.int32)
    run(apply, line(*knobs), payload(m, n, k, "i8", layout), (a, b, c), emulates=emulates)
    assert np.array_equal(c, expected(a, b, layout))


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
def test_panels_outside_of_strips_give_the_same(layout: str, apply: Apply) -> None:
    m, n, k = 17, 70, 67
    a, b = drawn((k, m) if layout == "tn" else (m, k)), drawn((n, k) if layout == "nt" else (k, n))
    c = np.full((m, n), 7, np.int32)
    script = line(4, 32, more=", panels_first = 1 : i64")
    run(apply, script, payload(m, n, k, "i8", layout), (a, b, c), emulates=True)
    assert np.array_equal(c, expected(a, b, layout))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("panels_first", [0, 1])
@pytest.mark.parametrize(
    ("layout", "fetched"), [("nt", {0: 2, 1: 4}), ("tn", {0: 0, 1: 0})]
)  # tn: A is packed
def test_rows_of_the_next_strip_are_divided_among_panels(
    layout: str, fetched: dict[int, int], panels_first: int, apply: Apply
) -> None:
    m, n, k = 8, 64, 68
    script = line(4, 32, more=f", fetches_a = 1 : i64, panels_first = {panels_first} : i64")
    text = apply(script, payload(m, n, k, "i8", layout))
    assert text.count("memref.prefetch %arg0[") == fetched[panels_first]
    a, b = drawn((k, m) if layout == "tn" else (m, k)), drawn((n, k))
    b = b.T.copy() if layout == "tn" else b
    c = np.full((m, n), 7, np.int32)
    run(apply, script, payload(m, n, k, "i8", layout), (a, b, c), emulates=True)
    assert np.array_equal(c, expected(a, b, layout))


@pytest.mark.slow
@pytest.mark.parametrize(("m", "fetched"), [(1, 4), (8, 2), (16, 1), (40, 1)])  # of four rows of a K group
def test_rows_of_the_next_block_of_k_are_divided_among_strips(m: int, fetched: int, apply: Apply) -> None:
    n, k = 128, 68
    a, b, c = drawn((m, k)), drawn((k, n)), np.full((m, n), 7, np.int32)
    tile, text = line(4, 64), payload(m, n, k, "i8")
    script = line(min(m, 4), 64, more=", fetches_b = 1 : i64")
    more = apply(script, text).count("memref.prefetch") - apply(tile, text).count("memref.prefetch")
    assert more == fetched
    run(apply, script, text, (a, b, c), emulates=True)
    assert np.array_equal(c, expected(a, b, "nn"))


@pytest.mark.slow
def test_without_a_fill_c_is_added_to(apply: Apply) -> None:
    a, b, c = drawn((7, 40)), drawn((40, 17)), np.full((7, 17), 7, np.int32)
    run(apply, line(), payload(7, 17, 40, "i8", fill=""), (a, b, c), emulates=True)
    assert np.array_equal(c, 7 + expected(a, b, "nn"))


@pytest.mark.parametrize(
    ("script", "text", "reason"),
    [
        (line(6, 24), payload(32, 64, 64, "i8"), "found 6 x 24 sums in registers of 16, allowed whole"),
        (line(0, 16), payload(32, 64, 64, "i8"), "found 0 x 16 sums"),
        (line(), payload(32, 64, 64, "bf16"), "found a matmul of bf16 into f32, allowed i8 into i32"),
        (
            line(),
            payload(32, 64, 64, "i8").replace(
                "linalg.matmul", "linalg.matmul {cast = #linalg.type_fn<cast_unsigned>}"
            ),
            "found a matmul of unsigned integers, allowed memrefs",
        ),
        (
            line(),
            payload(32, 64, 64, "i8").replace("64x64xi8", "64x?xi8"),
            r"found a matmul of memref<32x64xi8> x memref<64x\?xi8> x memref<32x64xi32>, allowed memrefs",
        ),
    ],
)
def test_what_it_refuses_is_named(script: str, text: str, reason: str, apply: Apply) -> None:
    with pytest.raises(CandidateError, match=rf"^tuner\.vnni_block at script:.*{reason}") as caught:
        apply(script, text)
    assert caught.value.stage == Stage.COMPILE


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
@pytest.mark.parametrize(("n", "block"), [(100, 64), (70, 64), (90, 48), (5, 16)])
def test_blocks_of_two_widths_share_their_code(n: int, block: int, layout: str, apply: Apply) -> None:
    m, k = 9, 37
    a, b = drawn((k, m) if layout == "tn" else (m, k)), drawn((n, k) if layout == "nt" else (k, n))
    c = np.full((m, n), 7, np.int32)
    script = line(4, 32, more=f", columns = {block} : i64, last_columns = {n % block or block} : i64")
    run(apply, script, blocks_payload(m, n, k, "i8", layout, block), (a, b, c), emulates=True)
    assert np.array_equal(c, expected(a, b, layout))
