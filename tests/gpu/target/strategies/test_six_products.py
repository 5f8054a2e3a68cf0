"""f32 by six products of bf16 on wgmma: the kernel is a model, more exact than a chain of multiply-adds."""

from dataclasses import replace

import numpy as np
import pytest

from tests.gpu.ptxsim.ptx.matmuls import Edit, change, drop
from tests.gpu.target.strategies.points import (
    HOPPER,
    WGMMA,
    compiled,
    is_feasible,
    large_wgmma,
    require_right,
    simulated_draw,
    stored,
    wgmma,
)
from tests.gpu.target.strategies.six_products import PROMOTE, six_products, split
from tests.gpu.target.strategies.test_initial_configurations import FOUNDING, SQUARE, first_of
from tests.gpu.target.strategies.three_products import (
    UNIT,
    Accumulate,
    Floats,
    chain,
    cut_off,
    draw,
    errors,
    rounded,
)
from tests.support.gpu_point import GpuPoint, feasible_set
from tuner.core.matmul import BatchMatmul, Matmul
from tuner.core.problem import Problem
from tuner.gpu.cost_model.untimed import is_serialized
from tuner.gpu.ptxsim.ptx.defects import SimulationError
from tuner.gpu.ptxsim.target.evaluator import simulate_program
from tuner.gpu.target.compiler import Ptxas

pytestmark = pytest.mark.mlir
Knobs = dict[str, int | str]
LAYOUTS = ("nn", "nt", "tn")
KINDS = ("normal", "positive", "badly scaled", "cancelling")


def kernel_model(a: Floats, b: Floats, accumulate: Accumulate, *, is_swapped: bool = False) -> Floats:
    """Returns A B as the kernel computes it, of few rows as the transpose of B^T A^T."""
    if is_swapped:
        return kernel_model(np.ascontiguousarray(b.T), np.ascontiguousarray(a.T), accumulate).T
    zeros = -a.shape[1] % PROMOTE  # that the TMA reads beyond the end
    a, b = np.pad(a, ((0, 0), (0, zeros))), np.pad(b, ((0, zeros), (0, 0)))
    return six_products(split(a), split(b), accumulate)


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("layout", "sizes", "knobs"),
    [
        ("nn", (128, 96, 192), {"block_m": 128, "consumers": 2}),
        ("nn", (100, 72, 200), {}),
        ("nn", (67, 35, 71), {}),  # rows of no whole 16 bytes
        ("nt", (128, 96, 192), {"block_m": 128, "stages": 2}),
        ("nt", (100, 72, 200), {"block_m": 128, "consumers": 2, "tiles": 2}),
        ("nt", (33, 65, 131), {"block_m": 48}),
        ("tn", (128, 96, 192), {"stages": 3}),
        ("tn", (100, 72, 200), {"cluster": "2x1"}),
        ("tn", (71, 67, 35), {}),
    ],
)
def test_the_kernel_computes_what_the_model_does_to_the_last_bit(
    layout: str, sizes: tuple[int, int, int], knobs: Knobs
) -> None:
    a, b, c = simulated_draw(wgmma(Matmul(*sizes, "bf16x6", layout), **knobs))
    is_swapped = int(knobs.get("block_m", 64)) < 64
    np.testing.assert_array_equal(c, kernel_model(a, b, rounded, is_swapped=is_swapped))


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("problem", "knobs"),
    [
        (Matmul(100, 72, 200, "bf16x6", "nn", "bias_relu"), {"block_m": 128, "tiles": 2}),
        (Matmul(136, 128, 68, "bf16x6"), {"cluster": "1x2", "stores": "exchange"}),
        (Matmul(136, 132, 100, "bf16x6", "nt"), {"block_m": 64, "block_n": 128, "cluster": "2x1"}),
        (BatchMatmul(2, 60, 68, 72, "bf16x6"), {"block_m": 64}),
        (Matmul(13, 136, 100, "bf16x6"), {"block_m": 16, "block_n": 128, "consumers": 2, "stages": 2}),
    ],
    ids=lambda value: value.key if isinstance(value, Problem) else "",
)
def test_six_products_have_epilogues_batches_clusters_and_few_rows(problem: Problem, knobs: Knobs) -> None:
    one = wgmma(problem, **knobs)
    assert is_feasible(one)
    require_right(one, seed=1)


def drawn_point(seed: int) -> GpuPoint:
    """Returns a random configuration of a random small problem."""
    rng = np.random.default_rng(seed)
    m, n, k = (int(size) for size in rng.integers(1, 201, 3))
    problem = Matmul(m, n, k, "bf16x6", str(rng.choice(LAYOUTS)), str(rng.choice(("none", "bias_relu"))))
    feasible = feasible_set(problem, WGMMA, HOPPER)
    return GpuPoint(problem, feasible.candidate(int(rng.integers(feasible.rows))), HOPPER)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("seed", range(8))
def test_drawn_points_are_right_and_free_of_races(seed: int) -> None:
    require_right(drawn_point(seed), seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8, 80))
def test_more_drawn_points_are_right_and_free_of_races(seed: int) -> None:
    require_right(drawn_point(seed), seed=seed)


@pytest.mark.parametrize("depth", [512, 2048])
@pytest.mark.parametrize("kind", ["normal", "positive", "badly scaled"])
def test_the_largest_error_and_the_mean_are_below_half_of_those_of_a_chain(kind: str, depth: int) -> None:
    a, b = draw(kind, depth, np.random.default_rng(depth))
    planes, native = errors(kernel_model(a, b, cut_off), a, b), errors(chain(a, b), a, b)
    assert planes.max() < 0.5 * native.max()
    assert planes.mean() < 0.5 * native.mean()


def test_sums_that_cancel_are_off_by_less_than_half_a_unit_of_their_terms() -> None:
    a, b = draw("cancelling", 512, np.random.default_rng(1))
    assert errors(kernel_model(a, b, cut_off), a, b).max() < 0.5


def test_without_the_small_products_or_totals_the_errors_are_many_times_larger() -> None:
    a, b = draw("positive", 512, np.random.default_rng(2))
    native = errors(chain(a, b), a, b)
    high = split(a).high.astype(float) @ split(b).high.astype(float)
    assert errors(high.astype(np.float32), a, b).max() > 100 * native.max()
    never = six_products(split(a), split(b), cut_off, promote=512)
    assert errors(never, a, b).mean() > 5 * errors(kernel_model(a, b, cut_off), a, b).mean()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_of_50_draws_no_error_is_above_the_tolerance_of_f32_and_few_are_above_those_of_a_chain(
    kind: str,
) -> None:
    rng = np.random.default_rng(11)
    larger = 0
    for depth in rng.integers(4, 17, 50) * PROMOTE:
        a, b = draw(kind, int(depth), rng)
        c = kernel_model(a, b, cut_off)
        norms = np.linalg.norm(a.astype(float), axis=1)[:, None] * np.linalg.norm(b.astype(float), axis=0)
        assert (np.abs(c - a.astype(float) @ b.astype(float)) < 16 * UNIT * norms).all()
        larger += int(errors(c, a, b).max() > errors(chain(a, b), a, b).max())
    # products of f32 that cancel exactly do not as sums of products of their parts
    assert larger <= {"normal": 0, "positive": 0, "badly scaled": 0, "cancelling": 50}[kind]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_special_values_are_those_of_f32_and_the_largest_numbers_stay_finite(layout: str) -> None:
    largest = np.finfo(np.float32).max
    a = np.full((64, 64), 0.25, np.float32)
    b = np.full((64, 64), 0.25, np.float32)
    a[:4, 3] = np.inf, -np.inf, np.nan, largest
    b[5, 20:22] = np.inf, largest
    a[3, 5] = b[3, 21] = 0  # so that no sum overflows
    with np.errstate(invalid="ignore"):
        wanted = a.astype(float) @ b.astype(float)
    np.testing.assert_allclose(product(a, b, layout), wanted, rtol=2.0**-22)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tiny_numbers_are_off_by_a_fraction_of_the_least_normal_one(layout: str) -> None:
    tiny = np.array([1e-38, 2.0**-112, 2.0**-126, 2.0**-140, 2.0**-149], np.float32)
    numbers = np.zeros((64, 64), np.float32)
    numbers[: len(tiny), 7] = tiny
    factors = np.full((64, 64), 1.23e20, np.float32)
    for c in (product(numbers, factors, layout), product(factors, numbers.T, layout).T):
        off = np.abs(c[: len(tiny)].T - 1.23e20 * tiny.astype(float))
        assert (off <= 2.0**-134 * 1.23e20 + 2.0**-22 * 1.23e20 * tiny).all()
        assert (c[len(tiny) :] == 0).all()


def product(a: Floats, b: Floats, layout: str) -> Floats:
    """Returns A B of 64x64 numbers, simulated."""
    arrays = stored(a, b, layout)
    with np.errstate(invalid="ignore", over="ignore"):
        simulate_program(compiled(wgmma(Matmul(64, 64, 64, "bf16x6", layout))), arrays)
    return arrays["c"]


WAITS_FOR_LESS = "wait_group.sync.aligned 2;"
SMALL = wgmma(Matmul(64, 64, 320, "bf16x6"), stages=2)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("the high plane is all", change(r"and\.b32(\s+%r\d+, %r\d+), -65536;", r"and.b32\1, -1;")),
        ("sums are read in flight", drop(r"wgmma\.wait_group\.sync\.aligned 0;")),
        (
            "large sums are read in flight",
            change(r"wait_group\.sync\.aligned 1;", "wait_group.sync.aligned 2;"),
        ),
        ("a stage is released too early", drop(r"wgmma\.wait_group\.sync\.aligned 1;")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_broken_kernel_of_six_products_is_noticed(name: str, edit: Edit) -> None:
    """Sums that are read in flight are NaN, so they are computed again: the bits of C differ then."""
    healthy = compiled(SMALL)
    ptx = edit(healthy.text)
    assert ptx != healthy.text
    rng = np.random.default_rng(4)
    a = rng.standard_normal((64, 320)).astype(np.float32)
    b = rng.standard_normal((320, 64)).astype(np.float32)
    arrays = stored(a, b, "nn")
    try:
        simulations = simulate_program(replace(healthy, text=ptx), arrays)
    except SimulationError:
        return
    hazards = [hazard for simulation in simulations for hazard in simulation.hazards]
    assert hazards or not np.array_equal(arrays["c"], kernel_model(a, b, rounded)), name


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("sizes", [SQUARE, FOUNDING.sizes, (16, 4096, 4096)], ids=str)
def test_what_six_products_begin_with_does_not_wait_and_spills_nothing(
    ptxas: Ptxas, layout: str, sizes: tuple[int, int, int]
) -> None:
    problem = Matmul(*sizes, "bf16x6", layout)
    candidates = first_of(problem, WGMMA)
    assert candidates or (layout == "tn" and sizes[0] < 64)
    for candidate in candidates:
        kernels = ptxas.assemble(GpuPoint(problem, candidate, HOPPER).program()).resources
        assert {kernel.spilled_bytes for kernel in kernels} == {0}, candidate.text
        assert not any(map(is_serialized, kernels)), candidate.text


def test_the_first_configuration_does_not_wait_and_spills_nothing(ptxas: Ptxas) -> None:
    one = large_wgmma(Matmul(*SQUARE, "bf16x6"), block_m=128, block_n=128, stages=2)
    assert is_feasible(one)
    found = {kernel.kernel: kernel for kernel in ptxas.assemble(one.program()).resources}
    assert {kernel.spilled_bytes for kernel in found.values()} == {0}
    assert not is_serialized(found["matmul_kernel"])
    assert found["matmul_kernel"].blocks_per_multiprocessor == 1
