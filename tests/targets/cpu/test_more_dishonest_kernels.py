"""Forty more kernels that cheat, as a run sees them: which are found, and by what."""

import pytest

from tests.targets.cpu.more_dishonest_kernels import FINAL, KERNELS, PASSES, SEARCH, TIMING
from tuner.core.errors import Stage
from tuner.runtime.workers.worker import Worker

pytestmark = pytest.mark.mlir

LIMIT_S = 120
SERVICE = "tests.targets.cpu.more_dishonest_kernels:ForkedEvaluation"  # of the fixture ``child``


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_found_by_the_step_that_is_named(child: Worker, name: str) -> None:
    """With time for more draws an earlier step may find it. The page of verification counts them."""
    steps = (SEARCH, TIMING, FINAL)
    who, _ = KERNELS[name]
    found = str(child.call("evaluate", name, stage=Stage.RUN, timeout_s=LIMIT_S))
    if who == PASSES:
        assert found == PASSES
    else:
        assert found.partition(":")[0] in steps[: steps.index(who) + 1], found
