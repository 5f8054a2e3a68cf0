"""Whole kernels out of the compiler compute C = A B, whatever order their threads run in.

Broken ones are in test_mutations.
"""

import sys

import numpy as np
import pytest

from tests.simulator.ptx.matmuls import BY_NAME, Matmul, shuffled
from tuner.simulator.ptx.defects import Defect

CALLS_LIMIT = 100_000  # of Python functions: 73,597 when this was written, 128 times as many one by one
# half a unit of the largest results
TOLERANCES = {"mma_f16_epi": 2e-2, "wgmma_f16_nn": 1e-4, "wgmma_f16_nt": 0.05, "wgmma_tf32_nt": 1e-4}


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", BY_NAME)
def test_a_kernel_computes_the_product_without_races(name: str) -> None:
    simulation, c, expected = shuffled(name)
    np.testing.assert_allclose(c.astype(np.float64), expected, rtol=0, atol=TOLERANCES.get(name, 2e-5))
    assert simulation.races == ()
    if isinstance(matmul := BY_NAME[name], Matmul):
        assert simulation.hazards == ()
        assert simulation.blocks == np.prod(matmul.grid)


def test_accumulators_zeroed_after_the_fence_are_reported_but_do_no_harm() -> None:
    simulation, _, _ = shuffled("wgmma_f16_nn")
    assert {hazard.kind for hazard in simulation.benign} == {Defect.LATE_ACCUMULATOR}


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
