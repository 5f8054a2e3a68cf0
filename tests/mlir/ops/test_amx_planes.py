"""f32 by six products of bf16 on AMX tiles: what ``tuner.amx_block`` makes of planes, and how exact it is."""

from typing import Any

import numpy as np
import pytest

from tests.gpu.target.strategies.three_products import Floats, chain, draw, errors
from tests.mlir.ops.block_runs import Sizes, payload, require_product, run, small_numbers
from tests.mlir.ops.one_op import line_of
from tests.support.special_values import LARGEST, NUMBERS, require_f32, special_operands
from tuner.core.dtypes import sum_roundings
from tuner.runtime.cpu.host import describe_machine

HAS_TILES = describe_machine().has_amx_bf16
EMULATES = pytest.mark.parametrize("emulates", [True, False], ids=["emulated", "tiles"])
LEAST_EXACT = 2.0**-103  # of numbers whose last bit is a normal number of bf16


def line(tiles_m: int = 2, tiles_n: int = 2, **more: int) -> str:
    return line_of("amx_block", tiles_m=tiles_m, tiles_n=tiles_n, planes=3, **more)


def product(a: Floats, b: Floats, *, emulates: bool, layout: str = "nn") -> Floats:
    """Returns A B by the op."""
    if not emulates and not HAS_TILES:
        pytest.skip("this processor has no AMX for bf16, or may not use it")
    sizes = (len(a), b.shape[1], a.shape[1])
    c = np.full(sizes[:2], 7, np.float32)
    stored_a = np.ascontiguousarray(a.T if layout == "tn" else a)
    stored_b = np.ascontiguousarray(b.T if layout == "nt" else b)
    run(line(), payload(*sizes, "f32", layout), (stored_a, stored_b, c), emulates=emulates)
    return c


@pytest.mark.drawn(2)
@EMULATES
@pytest.mark.parametrize(
    ("sizes", "layout", "tiles"),
    [
        ((32, 32, 64), "nn", (2, 2)),
        ((77, 85, 131), "tn", (2, 2)),
        ((17, 49, 35), "nt", (1, 4)),
        ((17, 49, 35), "nn", (2, 2)),
        ((5, 3, 1), "nt", (1, 1)),
        ((33, 65, 70), "nt", (2, 2)),
        ((64, 40, 96), "tn", (2, 1)),
        ((48, 33, 64), "nn", (1, 4)),
    ],
    ids=str,
)
def test_planes_give_the_product(sizes: Sizes, layout: str, tiles: Any, emulates: bool) -> None:
    if not emulates and not HAS_TILES:
        pytest.skip("this processor has no AMX for bf16, or may not use it")
    require_product(line(*tiles), sizes, small_numbers(np.float32), layout=layout, emulates=emulates)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
@pytest.mark.parametrize(("n", "block"), [(100, 64), (70, 64), (90, 48), (5, 16)])
def test_blocks_of_two_widths_share_code(n: int, block: int, layout: str) -> None:
    script = line(columns=block, last_columns=n % block or block)
    require_product(script, (18, n, 37), small_numbers(np.float32), layout=layout, block=block)


def test_without_a_fill_of_zero_c_is_added_to() -> None:
    require_product(line(), (33, 17, 40), small_numbers(np.float32), fill="")


@pytest.mark.slow
@EMULATES
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
def test_three_planes_hold_every_bit_of_a_number(layout: str, emulates: bool) -> None:
    """Times a power of two, each number comes back; two planes would leave 2^-17 of it out."""
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal((37, 37)) * np.exp2(rng.integers(-80, 80, (37, 37)))
    numbers = drawn.astype(np.float32)
    numbers[0, :3] = (LARGEST, -LARGEST, LEAST_EXACT * (2 - 2.0**-23))
    unit = np.eye(37, dtype=np.float32)
    np.testing.assert_array_equal(product(numbers, unit, emulates=emulates, layout=layout), numbers)
    np.testing.assert_array_equal(product(unit, numbers, emulates=emulates, layout=layout), numbers)


@pytest.mark.drawn(1)
@EMULATES
@pytest.mark.parametrize(
    ("sizes", "layout"),
    [((40, 36, 72), "nn"), ((33, 70, 45), "nt"), ((37, 49, 64), "tn"), ((5, 3, 40), "nt")],
    ids=str,
)
@pytest.mark.parametrize("kind", NUMBERS)
def test_special_values_give_what_f32_gives(kind: str, sizes: Sizes, layout: str, emulates: bool) -> None:
    rng = np.random.default_rng(3)
    a, b = special_operands(kind, sizes, rng)
    with np.errstate(invalid="ignore", over="ignore"):
        expected = chain(a, b)
    assert kind == "largest" or not np.isfinite(expected).all()
    require_f32(product(a, b, emulates=emulates, layout=layout), a, b, expected)


@pytest.mark.slow
@pytest.mark.parametrize("fill", ["0", ""], ids=["set", "added to"])
def test_c_is_set_or_added_to_once_where_sums_are_computed_again(fill: str) -> None:
    rng = np.random.default_rng(5)
    a, b = special_operands("mixed", (40, 36, 72), rng)
    before = rng.standard_normal((40, 36)).astype(np.float32)
    c = before.copy()
    run(line(), payload(40, 36, 72, "f32", fill=fill), (a, b, c), emulates=True)
    with np.errstate(invalid="ignore", over="ignore"):
        expected = chain(a, b) if fill else chain(a, b) + before
    require_f32(c, a, b, expected)


@EMULATES
def test_the_largest_numbers_and_any_nan_stay(emulates: bool) -> None:
    a = np.eye(8, 40, dtype=np.float32)
    for row, number in enumerate((np.inf, -np.inf, np.nan, LARGEST, -LARGEST)):
        a[row, row] = number
    for bits in (0x7FFFFFFF, 0x7F800001, 0xFFC00000):  # NaN whose payload is in the upper or lower half
        a[6, 6] = np.array(bits, np.uint32).view(np.float32)
        c = product(a, np.ones((40, 5), np.float32), emulates=emulates)
        assert np.isnan(c[[2, 6]]).all()
        for row in (0, 1, 3, 4, 5, 7):
            np.testing.assert_array_equal(c[row], np.full(5, a[row, row]))


def test_tiles_take_small_numbers_as_zero_and_smaller_bits_of_others() -> None:
    least = float(np.finfo(np.float32).tiny)
    numbers = np.diag(np.array([least / 2, least, 1e-38 * 1.23, LEAST_EXACT], np.float32))
    c = np.diag(product(numbers, np.eye(4, dtype=np.float32), emulates=False))
    assert c[0] == 0.0  # a subnormal number
    assert c[1] == least
    assert 0 < abs(c[2] / numbers[2, 2] - 1) < 2.0**-7  # its other planes are subnormal
    assert c[3] == np.float32(LEAST_EXACT)


def test_tiles_and_their_emulation_give_the_same_bits() -> None:
    a, b = draw("badly scaled", 100, np.random.default_rng(0))
    np.testing.assert_array_equal(product(a, b, emulates=False), product(a, b, emulates=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("depth", "emulates"), [(512, True), (512, False), (2048, False)], ids=["512-emulated", "512", "2048"]
)
@pytest.mark.parametrize("numbers", ["normal", "positive", "badly scaled", "cancelling"])
def test_errors_are_below_those_of_a_chain_of_multiply_adds(numbers: str, depth: int, emulates: bool) -> None:
    """Tiles sum even and odd elements of K apart: pairs that cancel have the bound of f32 alone."""
    rng = np.random.default_rng(0)
    largest = []
    means = []
    for _ in range(2 if emulates else 5):
        a, b = draw(numbers, depth, rng)
        units = errors(product(a, b, emulates=emulates), a, b)
        of_chain = errors(chain(a, b), a, b)
        assert units.max() < sum_roundings(depth)
        largest.append(units.max() / of_chain.max())
        means.append(units.mean() / of_chain.mean())
    if numbers != "cancelling":
        assert np.median(largest) < 1.0
        assert max(means) < 1.0
