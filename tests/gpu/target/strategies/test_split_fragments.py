"""f32 by three products of tf32 on mma.sync: the kernel is a model, more exact than f32 multiply-adds."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.gpu.ptxsim.ptx.matmuls import Edit, change
from tests.gpu.target.strategies.points import MMA_SYNC, compiled, is_feasible, is_noticed, mma_sync
from tests.gpu.target.strategies.test_initial_configurations import SQUARE, first_of
from tests.gpu.target.strategies.three_products import (
    Accumulate,
    Floats,
    chain,
    cut_off,
    draw,
    errors,
    rounded,
    split_rounded,
    three_products,
)
from tests.support.gpu_point import GpuPoint
from tuner.core.matmul import Matmul
from tuner.gpu.ptxsim.target.evaluator import simulate_program
from tuner.gpu.target.compiler import Ptxas

pytestmark = pytest.mark.mlir
ONE_WARP: dict[str, Any] = {"block_m": 32, "block_n": 32, "warps_m": 1, "warps_n": 1}


def kernel_model(a: Floats, b: Floats, promote: int, accumulate: Accumulate) -> Floats:
    """Returns A B as the kernel computes it: both operands are split in registers."""
    return three_products(split_rounded(a), split_rounded(b), promote, accumulate)


def simulated(a: Floats, b: Floats, layout: str = "nn", **knobs: Any) -> Floats:
    """Returns A B as the simulated kernel of a small point computes it."""
    sizes = (len(a), b.shape[1], a.shape[1])
    one = mma_sync(Matmul(*sizes, "tf32x3", layout), **(ONE_WARP | {"block_k": 32, "promote": 32} | knobs))
    assert is_feasible(one)
    c = np.full(sizes[:2], np.nan, np.float32)
    stored_a = a.T if layout == "tn" else a
    stored_b = b.T if layout == "nt" else b
    arrays = {"a": np.ascontiguousarray(stored_a), "b": np.ascontiguousarray(stored_b), "c": c}
    simulate_program(compiled(one), arrays)
    return c


@pytest.mark.parametrize(
    ("layout", "sizes", "knobs"),
    [
        ("nn", (32, 64, 192), {"prefetch": 1}),
        ("nt", (40, 36, 72), {"promote": 16}),
        ("tn", (32, 32, 100), {"block_k": 64, "depth": 1, "promote": 64}),
        ("nn", (33, 35, 45), {"depth": 0, "promote": 16}),
    ],
)
def test_the_kernel_computes_what_the_model_does_to_the_last_bit(
    layout: str, sizes: tuple[int, int, int], knobs: dict[str, int]
) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(0)
    a = rng.standard_normal((m, k)).astype(np.float32)
    b = rng.standard_normal((k, n)).astype(np.float32)
    promote = knobs.get("promote", 32)
    expected = kernel_model(a, b, promote, rounded)
    np.testing.assert_array_equal(simulated(a, b, layout, **knobs), expected)
    assert (kernel_model(a, b, promote // 2, rounded) != expected).any()


@pytest.mark.drawn(1)
@pytest.mark.parametrize("depth", [512, 2048])
@pytest.mark.parametrize("kind", ["normal", "positive", "badly scaled"])
def test_the_largest_error_is_below_that_of_a_chain_of_multiply_adds(kind: str, depth: int) -> None:
    a, b = draw(kind, depth, np.random.default_rng(depth), rows=32)
    native = errors(chain(a, b), a, b)
    model = errors(kernel_model(a, b, 32, cut_off), a, b)
    assert model.max() < 0.75 * native.max()
    assert model.mean() < 1.1 * native.mean()
    # the simulator rounds sums, so a block of its kernel is closer still
    assert errors(simulated(a, b), a, b).max() <= model.max()


@pytest.mark.parametrize("least_bit", [24, 25])
@pytest.mark.parametrize("kind", ["normal", "positive", "badly scaled"])
def test_sums_of_32_are_more_exact_too_where_tensor_cores_keep_fewer_bits(kind: str, least_bit: int) -> None:
    a, b = draw(kind, 512, np.random.default_rng(512), rows=32)
    model = kernel_model(a, b, 32, partial(cut_off, least_bit=least_bit))
    assert errors(model, a, b).max() < 0.85 * errors(chain(a, b), a, b).max()


def test_every_period_up_to_64_is_more_exact_than_a_chain_of_multiply_adds_and_none_is_not() -> None:
    a, b = draw("positive", 1024, np.random.default_rng(3))
    native = errors(chain(a, b), a, b).max()
    found = [errors(kernel_model(a, b, promote, cut_off), a, b).max() for promote in (16, 32, 64, 1024)]
    assert max(found[:3]) < native < found[3]


def test_numbers_of_any_nan_give_nan() -> None:
    a = np.zeros((32, 32), np.float32)
    a.view(np.uint32)[:4, 0] = [0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FC00000]
    b = np.ones((32, 32), np.float32)
    with np.errstate(invalid="ignore"):
        c = simulated(a, b)
    assert np.isnan(c[:4]).all()
    assert (c[4:] == 0).all()


SMALL = mma_sync(Matmul(32, 32, 96, "tf32x3"), **ONE_WARP, promote=32)
RAISE = r"add\.s32(\s+%r\d+, %r\d+), 4096;"
KEEP = r"and\.b32(\s+%r\d+, %r\d+), -8192;"


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("high bits are all bits", change(KEEP, r"and.b32\1, -1;")),
        ("high bits are those of bf16", change(KEEP, r"and.b32\1, -65536;")),
        ("totals are lost", change(r"add\.(rn\.)?f32(\s+%\w+), %\w+, (%\w+);", r"mov.b32\2, \3;")),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_broken_kernel_of_three_products_is_noticed(name: str, edit: Edit) -> None:
    assert is_noticed(SMALL, edit), name


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
@pytest.mark.parametrize("chip", ["sm_80", "sm_86", "sm_89", "sm_90", "sm_120"])
def test_what_three_products_begin_with_spills_nothing(ptxas: Ptxas, chip: str, layout: str) -> None:
    problem = Matmul(*SQUARE, "tf32x3", layout)
    candidates = first_of(problem, MMA_SYNC, chip)
    assert len(candidates) >= 3
    for candidate in candidates:
        resources, *_ = ptxas.assemble(GpuPoint(problem, candidate, chip).program()).resources
        assert (resources.spilled_bytes, resources.blocks_per_multiprocessor > 0) == (0, True), candidate.text
