"""The CUDA target without a driver: code, and a clear word instead of a result."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.mlir.gpu_matmul import gpu_script
from tuner.errors import CandidateError, Stage, UsageError
from tuner.problem import Matmul
from tuner.target import Effort, Script
from tuner.targets.cuda import COMPILED_ONLY, CudaTarget

pytestmark = pytest.mark.mlir

PROBLEM = Matmul(64, 64, 32)


def test_code_is_made_and_nothing_is_run() -> None:
    target, rng = CudaTarget("sm_80"), np.random.default_rng(0)
    artifact = target.compile(PROBLEM, Script.of(gpu_script()))
    assert ".target sm_80" in artifact.code
    assert target.machine().name == "cuda sm_80"
    assert "ptxas" in dict(target.compiler().packages)
    calls: tuple[Callable[[], object], ...] = (
        lambda: target.load(PROBLEM, artifact),
        lambda: target.verify(PROBLEM, None, rng),
        lambda: target.measure(PROBLEM, None, Effort(), rng),
        lambda: target.measure_together(PROBLEM, (None,), Effort(), rng),
    )
    for call in calls:
        with pytest.raises(CandidateError, match="compiled only: kernels are not run on GPUs here") as caught:
            call()
        assert (caught.value.stage, caught.value.reason) == (Stage.LOAD, COMPILED_ONLY)


def test_a_chip_that_is_not_known_is_refused() -> None:
    with pytest.raises(UsageError, match="chip: found 'sm_1', allowed sm_80"):
        CudaTarget("sm_1")
