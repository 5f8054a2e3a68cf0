"""f32 by three products of tf32: the kernel is a model, whose errors are below those of f32 multiply-adds.

The simulator rounds a sum of the tensor cores to nearest, where an H200 cuts it off: the model has both, and
its errors are those of cut sums.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from tests.simulator.ptx.matmuls import Edit, change, drop
from tests.support.gpu_point import GpuPoint
from tests.targets.gpu.strategies.points import compiled, is_feasible, is_noticed, large_wgmma, wgmma
from tuner.core.matmul import Matmul
from tuner.search.cost_model.untimed import is_serialized
from tuner.simulator.target.evaluator import simulate_program
from tuner.targets.gpu.compiler import Ptxas

pytestmark = pytest.mark.mlir
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Accumulate = Callable[[Doubles, Doubles, Doubles], Doubles]
STAGE, STEP = 32, 8  # of K: after which sums are added to totals; of one product
LEAST_BIT = 26  # that a tensor core keeps of a term, below the largest of a sum; M on an H200: 25 or more
SUM_BITS = 24  # of a sum
UNIT = 2.0**-24


def kept(numbers: Floats, half: int = 0) -> Floats:
    """Returns numbers without their last 13 bits, ``half`` of the last one that is kept added before."""
    return ((numbers.view(np.int32) + half) & -0x2000).view(np.float32)


def three_products(a: Floats, b: Floats, accumulate: Accumulate) -> Floats:
    """Returns A B as the kernel computes it; B is the operand in registers."""
    a_high, b_high = kept(a), kept(b, 0x1000)
    a_low = kept(a - a_high, 0x1000)  # the TMA rounds it
    b_low = kept(b - b_high)
    pairs = [
        (x.astype(float), y.astype(float)) for x, y in ((a_high, b_low), (a_low, b_high), (a_high, b_high))
    ]
    totals = np.zeros((len(a), b.shape[1]), np.float32)
    for stage in range(0, a.shape[1], STAGE):
        sums = np.zeros(totals.shape)
        for k in range(stage, min(stage + STAGE, a.shape[1]), STEP):
            for x, y in pairs:
                sums = accumulate(x[:, k : k + STEP], y[k : k + STEP], sums)
        totals = totals + sums.astype(np.float32) if stage else sums.astype(np.float32)
    return totals


def rounded(x: Doubles, y: Doubles, sums: Doubles) -> Doubles:
    """Returns the sums of a simulated product."""
    return (x @ y + sums).astype(np.float32).astype(float)


def cut_off(x: Doubles, y: Doubles, sums: Doubles) -> Doubles:
    """Returns the sums of an H100's product: terms and sum aligned to the largest, and cut off."""
    terms = np.concatenate([x[:, :, None] * y[None], sums[:, None]], axis=1)
    largest = np.frexp(np.abs(terms).max(axis=1))[1]
    unit = np.exp2(largest - float(LEAST_BIT))[:, None]
    total = (np.trunc(terms / unit) * unit).sum(axis=1)
    fraction, exponent = np.frexp(total)
    result: Doubles = np.ldexp(np.trunc(np.ldexp(fraction, SUM_BITS)), exponent - SUM_BITS)
    return result


def chain(a: Floats, b: Floats) -> Floats:
    """Returns A B by one multiply-add after the other, each rounded once."""
    sums = np.zeros((len(a), b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        sums = (a[:, k : k + 1].astype(float) * b[k : k + 1].astype(float) + sums).astype(np.float32)
    return sums


def draw(kind: str, depth: int, rng: np.random.Generator, rows: int = 24) -> tuple[Floats, Floats]:
    a, b = rng.standard_normal((rows, depth)), rng.standard_normal((depth, rows))
    if kind == "positive":
        a, b = rng.random((rows, depth)), rng.random((depth, rows))
    if kind == "badly scaled":
        a *= np.exp2(rng.integers(-10, 11, a.shape))
        b *= np.exp2(rng.integers(-10, 11, b.shape))
    if kind == "cancelling":
        a[:, 1::2] = a[:, ::2]
        b[1::2] = -b[::2] * (1 + 1e-3 * rng.standard_normal(b[::2].shape))
    return a.astype(np.float32), b.astype(np.float32)


def errors(c: Floats, a: Floats, b: Floats) -> Doubles:
    """Returns the errors of A B in units of 2^-24 of the sum of absolute products."""
    exact = a.astype(float) @ b.astype(float)
    absolute = np.abs(a).astype(float) @ np.abs(b).astype(float)
    found: Doubles = np.abs(c - exact) / (UNIT * absolute)
    return found


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
    expected = three_products(np.pad(a, ((0, 0), (0, zeros))), np.pad(b, ((0, zeros), (0, 0))), rounded)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("depth", [512, 2048])
@pytest.mark.parametrize("kind", ["normal", "positive", "badly scaled"])
def test_the_largest_error_is_below_that_of_a_chain_of_multiply_adds(kind: str, depth: int) -> None:
    a, b = draw(kind, depth, np.random.default_rng(depth))
    split, native = errors(three_products(a, b, cut_off), a, b), errors(chain(a, b), a, b)
    assert split.max() < 0.75 * native.max()
    if depth == 2048:
        assert split.mean() < 0.7 * native.mean()


def test_sums_that_cancel_are_off_by_less_than_half_a_unit_of_their_terms() -> None:
    a, b = draw("cancelling", 512, np.random.default_rng(1))
    assert errors(three_products(a, b, cut_off), a, b).max() < 0.5


def test_without_totals_or_low_bits_the_errors_are_many_times_larger() -> None:
    a, b = draw("positive", 512, np.random.default_rng(2))
    native = errors(chain(a, b), a, b)
    one_product = cut_off(kept(a).astype(float), kept(b).astype(float), np.zeros((24, 24)))
    assert errors(one_product.astype(np.float32), a, b).max() > 10 * native.max()


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
