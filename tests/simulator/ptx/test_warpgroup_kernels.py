"""Whole Hopper kernels out of the compiler; broken ones are in test_mutations."""

import numpy as np
import pytest

from tests.simulator.ptx.warpgroups import BY_NAME, shuffled
from tuner.simulator.ptx.defects import Defect

TOLERANCES = {"wgmma_f16_nn": 1e-4, "wgmma_f16_nt": 0.05, "wgmma_tf32_nt": 1e-4}  # f16 results: half a unit


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", BY_NAME)
def test_a_kernel_computes_the_product_without_races(name: str) -> None:
    simulation, c, expected = shuffled(name)
    np.testing.assert_allclose(c, expected, rtol=0, atol=TOLERANCES[name])
    assert simulation.races == ()


def test_accumulators_zeroed_after_the_fence_are_reported_but_do_no_harm() -> None:
    simulation, _, _ = shuffled("wgmma_f16_nn")
    assert {hazard.kind for hazard in simulation.benign} == {Defect.LATE_ACCUMULATOR}
