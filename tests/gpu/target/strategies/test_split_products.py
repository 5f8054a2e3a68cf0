"""f32 by three products of tf32 on wgmma: the kernel is a model, more exact than a chain of multiply-adds."""

import numpy as np
import pytest

from tests.gpu.ptxsim.ptx.matmuls import Edit, change, drop
from tests.gpu.target.strategies.points import (
    HOPPER,
    WGMMA,
    compiled,
    is_feasible,
    is_noticed,
    large_wgmma,
    simulated_draw,
    wgmma,
)
from tests.gpu.target.strategies.test_initial_configurations import SQUARE, first_of
from tests.gpu.target.strategies.three_products import (
    UNIT,
    Accumulate,
    Floats,
    chain,
    cut_off,
    draw,
    errors,
    kept,
    rounded,
    split_cut,
    split_to_even,
    three_products,
)
from tests.support.gpu_point import GpuPoint
from tuner.core.matmul import Matmul
from tuner.gpu.cost_model.untimed import is_serialized
from tuner.gpu.ptxsim.target.evaluator import simulate_program
from tuner.gpu.target.compiler import Ptxas

pytestmark = pytest.mark.mlir
Knobs = dict[str, int | str]
STAGE = 32  # of K, after which sums are added to totals


def kernel_model(a: Floats, b: Floats, accumulate: Accumulate, layout: str = "nn") -> Floats:
    """Returns A B as the kernel computes it; in registers is B, of nt A, of tn the larger operand."""
    if layout == "nt" or (layout == "tn" and len(a) > b.shape[1]):
        return three_products(split_to_even(a), split_cut(b), STAGE, accumulate)
    return three_products(split_cut(a), split_to_even(b), STAGE, accumulate, is_b_first=True)


@pytest.mark.parametrize(
    ("layout", "sizes", "knobs"),
    [
        ("nn", (96, 64, 192), {}),
        ("nn", (64, 128, 100), {}),
        ("nn", (40, 72, 32), {}),
        ("nt", (128, 96, 192), {"block_m": 128, "consumers": 2}),
        ("nt", (100, 72, 200), {}),
        ("nt", (80, 64, 100), {"block_m": 128, "consumers": 2, "stores": "exchange"}),
        ("tn", (128, 96, 192), {"block_m": 128, "consumers": 2}),
        ("tn", (72, 100, 200), {}),
    ],
)
def test_the_kernel_computes_what_the_model_does_to_the_last_bit(
    layout: str, sizes: tuple[int, int, int], knobs: Knobs
) -> None:
    a, b, c = simulated_draw(wgmma(Matmul(*sizes, "tf32x3", layout), block_k=32, **knobs))
    zeros = -a.shape[1] % STAGE  # that the TMA reads beyond the end
    padded = np.pad(a, ((0, 0), (0, zeros))), np.pad(b, ((0, zeros), (0, 0)))
    np.testing.assert_array_equal(c, kernel_model(*padded, rounded, layout))


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


@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
def test_tiny_numbers_are_off_by_a_fraction_of_the_least_normal_one(layout: str) -> None:
    tiny = np.array([1e-38, 2.0**-112, 2.0**-126, 2.0**-140, 2.0**-149], np.float32)
    factors = np.full((64, 32), 1.23e20, np.float32)
    numbers = np.zeros((64, 32), np.float32)
    numbers[: len(tiny), 7] = tiny
    for c in (product_of_rows(layout, numbers, factors).T, product_of_rows(layout, factors, numbers)):
        off = np.abs(c[:, : len(tiny)] - 1.23e20 * tiny.astype(float))
        assert (off <= 2.0**-136 * 1.23e20 + 2.0**-22 * 1.23e20 * tiny).all()
        assert (c[:, len(tiny) :] == 0).all()


def product_of_rows(layout: str, in_registers: Floats, in_memory: Floats) -> Floats:
    """Returns the products of rows of one matrix, which lanes split, with those of another; 64 rows each."""
    one = wgmma(Matmul(64, 64, 32, "tf32x3", layout), block_k=32, stages=2, block_m=64)
    a, b = (in_registers, in_memory) if layout == "nt" else (in_memory, in_registers)
    stored_a = a.T if layout == "tn" else a
    stored_b = b if layout == "nt" else b.T
    c = np.full((64, 64), -1, np.float32)
    arrays = {"a": np.ascontiguousarray(stored_a), "b": np.ascontiguousarray(stored_b), "c": c}
    with np.errstate(invalid="ignore", over="ignore"):
        simulate_program(compiled(one), arrays)
    return c if layout == "nt" else c.T


SMALL = wgmma(Matmul(64, 64, 160, "tf32x3"), block_k=32, stages=2)
NEVER_AGAIN = change(r"vote\.sync\.any\.pred(\s+%p\d+), %p\d+, -1;", r"setp.ne.b32\1, 0, 0;")


def unchecked(edit: Edit) -> Edit:
    """Returns an edit after which sums that are not finite, as those of unset registers, stay so."""
    return lambda ptx: NEVER_AGAIN(edit(ptx))


@pytest.mark.drawn(4)
@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("low bits of A are what is kept", change(r"and\.b32(\s+%r\d+, %r\d+), -8192;", r"and.b32\1, -1;")),
        ("sums do not start anew", unchecked(change(r"setp\.ne\.b32 p, 0, 0;", "setp.ne.b32 p, 1, 0;"))),
        ("each product starts anew", change(r"setp\.ne\.b32 p, 1, 0;", "setp.ne.b32 p, 0, 0;")),
        ("sums are read in flight", drop(r"wgmma\.wait_group\.sync\.aligned 0;")),
        ("other lanes may not have read their fragments", drop(r"bar\.warp\.sync\s+-1;")),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_broken_kernel_of_three_products_is_noticed(name: str, edit: Edit) -> None:
    assert is_noticed(SMALL, edit), name


@pytest.mark.drawn(1)
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
def test_three_products_do_not_wait_for_each_other_and_spill_nothing(ptxas: Ptxas, layout: str) -> None:
    one = large_wgmma(Matmul(*SQUARE, "tf32x3", layout), block_k=32, block_m=128, block_n=128)
    assert is_feasible(one)
    found = {each.kernel: each for each in ptxas.assemble(one.program()).resources}
    assert {each.spilled_bytes for each in found.values()} == {0}
    assert not is_serialized(found["matmul_kernel"])
    assert found["matmul_kernel"].blocks_per_multiprocessor == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layout", "sizes"),
    [
        ("nn", SQUARE),
        ("nt", SQUARE),
        ("nt", (16, 4096, 4096)),
        ("tn", SQUARE),
        ("tn", (5376, 2048, 5376)),
    ],
    ids=str,
)
def test_what_three_products_begin_with_does_not_wait_and_spills_nothing(
    ptxas: Ptxas, layout: str, sizes: tuple[int, int, int]
) -> None:
    problem = Matmul(*sizes, "tf32x3", layout)
    candidates = first_of(problem, WGMMA)
    assert candidates
    for candidate in candidates:
        kernels = ptxas.assemble(GpuPoint(problem, candidate, HOPPER).program()).resources
        assert {kernel.spilled_bytes for kernel in kernels} == {0}, candidate.text
        assert not any(map(is_serialized, kernels)), candidate.text


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["nn", "nt"])
@pytest.mark.parametrize("kind", ["normal", "positive", "badly scaled", "cancelling"])
def test_of_50_draws_no_error_is_above_the_tolerance_of_f32_and_few_are_above_those_of_a_chain(
    kind: str, layout: str
) -> None:
    rng = np.random.default_rng(11)
    larger = 0
    for depth in rng.integers(8, 33, 50) * STAGE:
        a, b = draw(kind, int(depth), rng)
        c = kernel_model(a, b, cut_off, layout)
        norms = np.linalg.norm(a.astype(float), axis=1)[:, None] * np.linalg.norm(b.astype(float), axis=0)
        assert (np.abs(c - a.astype(float) @ b.astype(float)) < 16 * UNIT * norms).all()
        larger += int(errors(c, a, b).max() > errors(chain(a, b), a, b).max())
    # products of f32 that cancel exactly do not as sums of products of their parts
    assert larger <= {"normal": 0, "positive": 0, "badly scaled": 2, "cancelling": 50}[kind]
