"""The evaluator of CUDA programs on a simulated GPU: all is real but the hardware and its clock."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from tuner.core.compiled_code import KernelCode
from tuner.core.errors import DeviceError
from tuner.core.interfaces import Artifact, Effort
from tuner.core.problem import Problem
from tuner.core.records import GpuState
from tuner.gpu.driver.driver import CudaFacts
from tuner.gpu.driver.probe import GpuHere
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.gpu.target import evaluator as gpu_evaluator
from tuner.gpu.target import event_timing
from tuner.gpu.target.evaluator import GpuEvaluator, LocalGpu
from tuner.payload.reference import Array

FACTS = CudaFacts(
    name="Simulated GPU",
    chip="sm_90",
    multiprocessors=4,
    memory_bytes=2**30,
    l2_bytes=4096,
    max_shared_bytes=227 << 10,
    clock_hz=1.98e9,
    memory_clock_hz=2.6e9,
    driver_version="13.0",
    has_memory_pools=True,
)
HERE = GpuHere(FACTS, "00000000:3b:00.0")
SAMPLE_S = 0.02  # that every sample seems to take
COOL = GpuState(1.98e9, 2.6e9, 40.0, 100.0)


@dataclass(frozen=True)
class Reading:
    """Sensors of which each reading is made by a function."""

    read: Callable[[], GpuState | None]


def nothing_here() -> GpuHere:
    raise DeviceError("no CUDA driver: libcuda.so.1 cannot be loaded")


def device_with_a_clock() -> SimulatedDevice:
    """Returns a device on which any work seems to take SAMPLE_S; such times are never kept."""
    device = SimulatedDevice(FACTS.chip, order="random")
    setattr(device, "elapsed_s", lambda start, stop: SAMPLE_S)  # noqa: B010 - mypy: methods are not assigned
    return device


def download(device: SimulatedDevice, address: int, like: Array) -> Array:
    found = np.empty_like(like)
    device.copy(found.ctypes.data, address, found.nbytes, 0)
    device.synchronize_stream(0)
    return found


def upload(device: SimulatedDevice, address: int, array: Array) -> None:
    device.copy(address, array.ctypes.data, array.nbytes, 0)
    device.synchronize_stream(0)


def evaluator_on(device: SimulatedDevice, chip: str = "sm_90") -> GpuEvaluator:
    gpu = LocalGpu(device, FACTS.l2_bytes, Reading(lambda: COOL))
    return GpuEvaluator(chip, lambda: HERE, lambda here: gpu)


def require_watched(
    gpu: GpuEvaluator, problem: Problem, code: KernelCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requires that a kernel is right when it is verified, and in each sample while it is timed."""
    monkeypatch.setattr(event_timing, "MIN_SAMPLES", 2)
    monkeypatch.setattr(event_timing, "COLD_SAMPLES", 2)
    monkeypatch.setattr(gpu_evaluator, "MIN_SAMPLES", 1)  # each sample is verified
    rng = np.random.default_rng(0)
    loaded = gpu.load(problem, Artifact(code, ""))
    assert gpu.verify(problem, loaded, rng).max_error <= 1.0
    assert gpu.measure(problem, loaded, Effort(0.0, 2), rng).median_s == SAMPLE_S
