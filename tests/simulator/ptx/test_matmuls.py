"""Whole kernels out of the compiler compute C = A B, whatever order their threads run in."""

import sys

import numpy as np
import pytest

from tests.simulator.ptx.matmuls import BY_NAME, MATMULS, Matmul, shuffled

CALLS_LIMIT = 100_000  # of Python functions: 73,597 when this was written, 128 times as many one by one


@pytest.mark.drawn(1)
@pytest.mark.parametrize("matmul", MATMULS, ids=lambda matmul: matmul.name)
def test_a_kernel_computes_the_product_without_races(matmul: Matmul) -> None:
    simulation, c, expected = shuffled(matmul.name)
    tolerance = {"f32": 2e-5, "f16": 2e-2}[matmul.out]  # half a unit of the largest results
    np.testing.assert_allclose(c.astype(np.float64), expected, rtol=0, atol=tolerance)
    assert simulation.hazards == ()
    assert simulation.blocks == np.prod(matmul.grid)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    "name", ["mma_f16", "mma_bf16", "mma_f16_tn", "mma_f16_odd", "mma_tf32_nt", "simt_f32_sync"]
)
def test_a_good_kernel_is_free_of_bank_conflicts(name: str) -> None:
    simulation, _, _ = shuffled(name)
    assert simulation.conflict_ratio == 1.0
    assert simulation.conflicts != ()


@pytest.mark.slow
def test_scalar_loads_of_a_layout_for_vectors_have_bank_conflicts() -> None:
    simulation, _, _ = shuffled("simt_f32")
    ratios = {conflict.ratio for conflict in simulation.conflicts if "ld.shared.b32" in conflict.instruction}
    assert ratios == {2.0}
    assert simulation.conflict_ratio > 1.5


def test_the_order_of_threads_does_not_change_what_is_counted() -> None:
    fixed, c, _ = BY_NAME["mma_f16"].run()
    other, again, _ = shuffled("mma_f16")
    assert (fixed.instructions, fixed.conflicts) == (other.instructions, other.conflicts)
    np.testing.assert_array_equal(c, again)


def test_a_block_takes_few_calls_since_its_threads_are_computed_together() -> None:
    matmul, calls = BY_NAME["mma_f16"], [0]  # four blocks of 64x64x64 are the work of one of 128x128x64

    def count(_frame: object, event: str, _argument: object) -> None:
        calls[0] += event == "call"

    sys.setprofile(count)
    try:
        matmul.run()
    finally:
        sys.setprofile(None)
    assert calls[0] <= CALLS_LIMIT
