"""Infinity, NaN and the largest numbers in f32 by products of tensor cores: results are those of f32."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.gpu.ptxsim.ptx.matmuls import change
from tests.gpu.target.strategies.points import by_name, compiled, is_feasible, mma_sync, wgmma
from tests.gpu.target.strategies.three_products import Floats, chain
from tests.support.gpu_point import GpuPoint
from tests.support.special_values import LARGEST, NUMBERS, require_f32, special_operands
from tuner.core.matmul import BatchMatmul, Matmul
from tuner.core.problem import Problem
from tuner.gpu.ptxsim.target.evaluator import simulate_program
from tuner.payload.comparison import compare
from tuner.payload.drawing import draw, draw_base, with_special_numbers
from tuner.payload.reference import Inputs

pytestmark = pytest.mark.mlir
of_hopper = partial(wgmma, block_k=32)
of_one_warp = partial(mma_sync, block_m=32, block_n=32, warps_m=1, warps_n=1, block_k=32, promote=32, depth=0)
POINTS = [
    of_hopper(Matmul(40, 72, 100, "tf32x3")),
    of_hopper(Matmul(100, 72, 200, "tf32x3", "nt"), block_m=128, consumers=2),
    of_hopper(Matmul(72, 100, 64, "tf32x3", "tn")),
    of_hopper(Matmul(100, 72, 64, "tf32x3", "tn")),
    of_hopper(Matmul(16, 68, 64, "tf32x3", "nt"), block_m=16),
    of_hopper(Matmul(130, 68, 64, "tf32x3"), tiles=3),
    wgmma(Matmul(70, 67, 99, "bf16x6", "nt"), block_k=64),
    wgmma(Matmul(67, 41, 99, "bf16x6", "tn"), block_k=64),
    of_one_warp(Matmul(33, 35, 45, "tf32x3")),
    of_one_warp(Matmul(40, 36, 72, "tf32x3", "nt"), depth=1),
    of_one_warp(Matmul(33, 35, 45, "tf32x3", "tn")),
    of_one_warp(Matmul(33, 35, 100, "tf32x3"), splits=2, split_by="last_block"),
    of_one_warp(Matmul(33, 35, 100, "tf32x3", "nt"), splits=2, split_by="workspace"),
    of_one_warp(Matmul(33, 35, 100, "tf32x3", "tn"), splits=2, split_by="atomic"),
]


def simulated(one: GpuPoint, a: Floats, b: Floats, text: str | None = None, **more: Floats) -> Floats:
    """Returns C of a simulated run without hazards, as A B where nothing follows; ``text``: other PTX."""
    layout = one.problem.layout
    stored_a = a.mT if layout == "tn" else a
    stored_b = b.mT if layout == "nt" else b
    c = np.zeros((*a.shape[:-1], b.shape[-1]), np.float32)
    arrays = {"a": np.ascontiguousarray(stored_a), "b": np.ascontiguousarray(stored_b), "c": c} | more
    program = compiled(one)
    if text is not None:
        program = one.program(text)
    with np.errstate(invalid="ignore", over="ignore"):
        simulations = simulate_program(program, arrays, schedule_seed=1)
    assert {simulation.hazards for simulation in simulations} == {()}
    return arrays["c"]


def in_f32(one: GpuPoint, a: Floats, b: Floats) -> Floats:
    """Returns A B by multiply-adds, of each part of K that a point has blocks for, added up."""
    knobs = dict(one.candidate.choices)
    block_k = int(knobs["block_k"])
    splits = int(knobs["splits"])
    part = -(-a.shape[1] // (block_k * splits)) * block_k
    sums = [chain(a[:, k : k + part], b[k : k + part]) for k in range(0, a.shape[1], part)]
    total: Floats = sum(sums[1:], sums[0])
    return total


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("one", POINTS, ids=by_name)
def test_special_values_in_a_and_in_b_give_what_f32_gives(one: GpuPoint, kind: str) -> None:
    assert is_feasible(one)
    a, b = special_operands(kind, one.problem.sizes, np.random.default_rng(7))
    with np.errstate(invalid="ignore", over="ignore"):
        expected = in_f32(one, a, b)
    assert np.isfinite(expected).any()
    assert kind == "largest" or not np.isfinite(expected).all()
    require_f32(simulated(one, a, b), a, b, expected)


@pytest.mark.slow
@pytest.mark.parametrize("point", [of_hopper, of_one_warp], ids=["wgmma", "mma.sync"])
def test_the_largest_number_times_one_is_the_largest_number(point: Any) -> None:
    one = point(Matmul(40, 36, 32, "tf32x3"))
    a = np.zeros((40, 32), np.float32)
    b = np.zeros((32, 36), np.float32)
    a[:, 3] = b[5] = LARGEST
    a[:, 5] = 0.5
    b[3] = 1
    a[0, 3] = -np.inf
    c = simulated(one, a, b)
    assert (c[0] == -np.inf).all()
    with np.errstate(over="ignore"):
        assert (c[1:] == np.float32(LARGEST) + np.float32(LARGEST / 2)).all()
    a[:, 5] = 0
    assert (simulated(one, a, b)[1:] == LARGEST).all()


@pytest.mark.drawn(1)
@pytest.mark.parametrize("point", [of_hopper, of_one_warp], ids=["wgmma", "mma.sync"])
def test_c_is_added_once_and_each_matrix_of_a_batch_has_its_own_sums(point: Any) -> None:
    rng = np.random.default_rng(3)
    accumulating = point(Matmul(40, 36, 64, "tf32x3", epilogue="accumulate"))
    a, b = special_operands("mixed", accumulating.problem.sizes, rng)
    before = rng.standard_normal((40, 36)).astype(np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        expected = chain(a, b)
        require_f32(simulated(accumulating, a, b, c=before.copy()), a, b, expected + before)
    batch = point(BatchMatmul(2, 40, 36, 64, "tf32x3"))
    both = simulated(batch, np.stack([b.T[:1].repeat(40, 0), a]), np.stack([b, b]))
    require_f32(both[1], a, b, expected)


def without_check(script: str) -> str:
    """Returns a script without the line of ``tuner.recompute_sums``."""
    return change(r'"tuner\.recompute_sums"(.|\n)*?-> \(\)', "")(script)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("point", [of_hopper, of_one_warp], ids=["wgmma", "mma.sync"])
def test_without_the_check_infinity_is_nan(point: Any) -> None:
    one = point(Matmul(40, 36, 32, "tf32x3"))
    a, b = special_operands("infinity", one.problem.sizes, np.random.default_rng(1))
    c = simulated(one, a, b)
    assert np.isinf(c).any()
    assert np.isnan(simulated(one, a, b, without_check(one.script()))[np.isinf(c)]).all()


@pytest.mark.drawn(1)
@pytest.mark.parametrize("point", [of_hopper, of_one_warp], ids=["wgmma", "mma.sync"])
def test_verification_notices_a_kernel_without_the_check(point: Any) -> None:
    one = point(Matmul(40, 36, 32, "tf32x3"))
    for script, is_right in ((one.script(), True), (without_check(one.script()), False)):
        inputs = special_draw(one.problem)
        c = inputs.output_before
        with np.errstate(invalid="ignore", over="ignore"):
            simulate_program(one.program(script), inputs.named | {"c": c}, schedule_seed=1)
        assert (compare(inputs, c)[0].max_error <= 1.0) == is_right


def special_draw(problem: Problem) -> Inputs:
    """Returns inputs with the numbers that kernels are verified with."""
    rng = np.random.default_rng(1)
    return with_special_numbers(draw(problem, draw_base(problem, rng), rng), rng)
