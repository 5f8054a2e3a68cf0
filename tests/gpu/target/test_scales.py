"""A matmul with scales of blocks on a GPU, simulated: verified, sampled, called, without a baseline."""

import ml_dtypes
import numpy as np
import pytest

from tests.gpu.driver.stub_cublas import stub_cublas
from tests.gpu.target.simulated_cuda import FACTS, HERE, SAMPLE_S, require_watched
from tests.gpu.target.strategies.points import compiled, wgmma
from tuner.core.errors import TunerError
from tuner.core.matmul import Matmul
from tuner.core.problem import SCALES
from tuner.gpu.driver.probe import GpuHere
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.gpu.target.callables import GpuCallable
from tuner.gpu.target.evaluator import GpuEvaluator, LocalGpu
from tuner.payload.comparison import compare
from tuner.payload.drawing import draw, draw_base

pytestmark = pytest.mark.mlir
CHIP = "sm_90a"
POINT = wgmma(Matmul(64, 72, 144, "e4m3", "nt", scales=SCALES), block_k=128)


def device() -> SimulatedDevice:
    simulated = SimulatedDevice(CHIP)
    setattr(simulated, "elapsed_s", lambda start, stop: SAMPLE_S)  # noqa: B010 - mypy: methods are not assigned
    return simulated


def evaluator() -> GpuEvaluator:
    def opened(_here: GpuHere) -> LocalGpu:
        return LocalGpu(device(), FACTS.l2_bytes)

    return GpuEvaluator(CHIP, lambda: HERE, opened, find_library=stub_cublas)


def test_a_kernel_is_verified_and_watched_while_it_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    require_watched(evaluator(), POINT.problem, compiled(POINT), monkeypatch)


def test_a_kernel_is_called_with_both_scales_after_a_and_b() -> None:
    rng = np.random.default_rng(0)
    inputs = draw(POINT.problem, draw_base(POINT.problem, rng), rng)
    a, b, *scales = inputs.arrays
    floats = [array.view(ml_dtypes.float8_e4m3fn) for array in (a, b)]
    c = GpuCallable(POINT.problem, compiled(POINT), device())(*floats, *scales)
    verdict, worst = compare(inputs, c)
    assert verdict.max_error <= 1.0, worst


def test_cublaslt_is_no_baseline_as_it_would_multiply_without_scales() -> None:
    problem = Matmul(64, 64, 128, "e4m3", "nt", scales=SCALES)
    with pytest.raises(TunerError, match=r"^cuBLASLt: scales of blocks are not compared$"):
        evaluator().load_baselines(problem, np.random.default_rng(0))
