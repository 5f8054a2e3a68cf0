"""f32 by three products of tf32 on wgmma: the kernel is a model, more exact than a chain of multiply-adds."""

import numpy as np
import pytest

from tests.simulator.ptx.matmuls import Edit, change, drop
from tests.support.gpu_point import GpuPoint
from tests.targets.gpu.strategies.points import compiled, is_feasible, is_noticed, large_wgmma, wgmma
from tests.targets.gpu.strategies.three_products import (
    Accumulate,
    Floats,
    chain,
    cut_off,
    draw,
    errors,
    kept,
    rounded,
    split_cut,
    split_rounded,
    three_products,
)
from tuner.core.matmul import Matmul
from tuner.search.cost_model.untimed import is_serialized
from tuner.simulator.target.evaluator import simulate_program
from tuner.targets.gpu.compiler import Ptxas

pytestmark = pytest.mark.mlir
STAGE = 32  # of K, after which sums are added to totals


def kernel_model(a: Floats, b: Floats, accumulate: Accumulate) -> Floats:
    """Returns A B as the kernel computes it; B is the operand in registers."""
    return three_products(split_cut(a), split_rounded(b), STAGE, accumulate, is_b_first=True)


@pytest.mark.parametrize("sizes", [(96, 64, 192), (64, 128, 100), (40, 72, 32)])
def test_the_kernel_computes_what_the_model_does_to_the_last_bit(sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    one = wgmma(Matmul(m, n, k, "tf32x3"), block_k=32)
    rng = np.random.default_rng(0)
    a = rng.standard_normal((m, k)).astype(np.float32)
    b = rng.standard_normal((k, n)).astype(np.float32)
    c = np.full((m, n), np.nan, np.float32)
    simulate_program(compiled(one), {"a": a, "b": b, "c": c})
    zeros = -k % STAGE  # that the TMA reads beyond the end
    expected = kernel_model(np.pad(a, ((0, 0), (0, zeros))), np.pad(b, ((0, zeros), (0, 0))), rounded)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("depth", [512, 2048])
@pytest.mark.parametrize("kind", ["normal", "positive", "badly scaled"])
def test_the_largest_error_is_below_that_of_a_chain_of_multiply_adds(kind: str, depth: int) -> None:
    a, b = draw(kind, depth, np.random.default_rng(depth))
    split, native = errors(kernel_model(a, b, cut_off), a, b), errors(chain(a, b), a, b)
    assert split.max() < 0.75 * native.max()
    if depth == 2048:
        assert split.mean() < 0.7 * native.mean()


def test_sums_that_cancel_are_off_by_less_than_half_a_unit_of_their_terms() -> None:
    a, b = draw("cancelling", 512, np.random.default_rng(1))
    assert errors(kernel_model(a, b, cut_off), a, b).max() < 0.5


def test_without_totals_or_low_bits_the_errors_are_many_times_larger() -> None:
    a, b = draw("positive", 512, np.random.default_rng(2))
    native = errors(chain(a, b), a, b)
    one_product = cut_off(kept(a).astype(float), kept(b).astype(float), np.zeros((24, 24)))
    assert errors(one_product.astype(np.float32), a, b).max() > 10 * native.max()


def test_infinity_gives_nan_and_the_largest_number_does_where_its_high_bits_are_rounded() -> None:
    one = wgmma(Matmul(64, 64, 32, "tf32x3"), block_k=32, stages=2)
    largest = np.finfo(np.float32).max
    a = np.full((64, 32), 0.25, np.float32)
    b = np.full((32, 64), 0.25, np.float32)
    a[:4, 3] = np.inf, -np.inf, np.nan, largest
    b[5, 20:22] = np.inf, largest
    c = np.full((64, 64), -1, np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        simulate_program(compiled(one), {"a": a, "b": b, "c": c})
    is_nan = np.zeros(c.shape, bool)
    is_nan[:3] = True
    is_nan[:, 20:22] = True
    np.testing.assert_array_equal(np.isnan(c), is_nan)
    np.testing.assert_allclose(c[3, :20], largest / 4, rtol=2.0**-22)
    assert (c[4:, :20] == 2).all()


SMALL = wgmma(Matmul(64, 64, 160, "tf32x3"), block_k=32, stages=2)


@pytest.mark.drawn(4)
@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("low bits of A are what is kept", change(r"and\.b32(\s+%r\d+, %r\d+), -8192;", r"and.b32\1, -1;")),
        ("sums do not start anew", change(r"setp\.ne\.b32 p, 0, 0;", "setp.ne.b32 p, 1, 0;")),
        ("each product starts anew", change(r"setp\.ne\.b32 p, 1, 0;", "setp.ne.b32 p, 0, 0;")),
        ("sums are read in flight", drop(r"wgmma\.wait_group\.sync\.aligned 0;")),
        ("other lanes may not have read their fragments", drop(r"bar\.warp\.sync\s+-1;")),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_broken_kernel_of_three_products_is_noticed(name: str, edit: Edit) -> None:
    assert is_noticed(SMALL, edit), name


def test_three_products_do_not_wait_for_each_other_and_spill_nothing(ptxas: Ptxas) -> None:
    one: GpuPoint = large_wgmma(Matmul(4096, 4096, 4096, "tf32x3"), block_k=32, block_m=128, block_n=128)
    assert is_feasible(one)
    found = {each.kernel: each for each in ptxas.assemble(one.program()).resources}
    assert {each.spilled_bytes for each in found.values()} == {0}
    assert not is_serialized(found["matmul_kernel"])
    assert found["matmul_kernel"].blocks_per_multiprocessor == 1
