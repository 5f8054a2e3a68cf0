"""What can be done for GPUs, with a GPU that is described and one that is not there."""

from dataclasses import replace

import pytest

from tests.targets.simulated_cuda import FACTS, HERE
from tuner.device import DeviceError
from tuner.errors import TunerError
from tuner.problem import Matmul
from tuner.runtime import gpu_probe
from tuner.runtime.gpu_probe import GpuHere
from tuner.target import Effort
from tuner.target_name import TargetName
from tuner.tuning.gpu_parts import gpu_roofline, gpu_statuses, gpu_vendor, limits_of, machine_of

NEEDS_NONE = pytest.mark.skipif("not _has_none()", reason="there is a GPU here")


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing() -> GpuHere:
        raise DeviceError("no CUDA driver: libcuda.so.1 cannot be loaded")

    monkeypatch.setattr(gpu_probe, "describe_gpu", nothing)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_probe, "describe_gpu", lambda: HERE)


def _has_none() -> bool:
    try:
        gpu_probe.describe_gpu()
    except DeviceError:
        return True
    return False


def test_without_a_gpu_code_is_made_and_the_reason_told(no_gpu: None) -> None:
    cuda, simulator = gpu_statuses()
    assert (cuda.name, cuda.is_available, cuda.can_compile, cuda.is_timed) == ("cuda", False, True, False)
    assert cuda.reason.startswith("compiles only: no CUDA driver: libcuda.so.1 cannot be loaded; ")
    assert "ptxas" in cuda.reason
    assert (cuda.chip, simulator.chip) == ("", "")
    assert (simulator.name, simulator.is_available, simulator.is_timed) == ("simulator", True, False)


def test_a_gpu_is_told_with_all_that_is_known_of_it(gpu: None) -> None:
    cuda, simulator = gpu_statuses()
    assert (cuda.is_available, cuda.is_timed, cuda.chip) == (True, True, "sm_90")
    assert cuda.reason.startswith("Simulated GPU, sm_90, 4 multiprocessors, 1 GiB, CUDA driver 13.0; ")
    assert "no clocks or temperatures: " in cuda.reason or "by NVML" in cuda.reason
    assert not simulator.is_timed


def test_a_gpu_that_no_code_can_be_made_for_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    old = GpuHere(replace(FACTS, name="Tesla T4", chip="sm_75"), HERE.bus)
    monkeypatch.setattr(gpu_probe, "describe_gpu", lambda: old)
    cuda, _ = gpu_statuses()
    assert (cuda.is_available, cuda.can_compile, cuda.chip) == (False, True, "")
    assert "Tesla T4 is sm_75, allowed sm_80, sm_86" in cuda.reason


def test_the_machine_of_a_target_is_the_gpu_here_if_it_is_of_the_chip(gpu: None) -> None:
    assert machine_of(TargetName("cuda", "sm_90")).name == "Simulated GPU"
    assert machine_of(TargetName("cuda", "sm_90a")).name == "Simulated GPU"
    assert machine_of(TargetName("cuda", "sm_80")).name == "cuda sm_80"
    assert machine_of(TargetName("simulator", "sm_90")).name == "simulator sm_90"


def test_without_a_gpu_the_machine_of_a_target_is_its_chip(no_gpu: None) -> None:
    assert machine_of(TargetName("cuda", "sm_90")).name == "cuda sm_90"


def test_a_hanging_kernel_is_ended_sooner_than_a_slow_simulation() -> None:
    problem, effort = Matmul(4096, 4096, 4096), Effort()
    first, later = (
        limits_of(TargetName("cuda", "sm_90"), 1 << 30).judge_within_s(problem, effort, call_s)
        for call_s in (None, 1e-3)
    )
    assert first < 600
    assert later < 120
    assert limits_of(TargetName("simulator", "sm_90"), 1 << 30).judge_timeout_s == 300


@NEEDS_NONE
@pytest.mark.parametrize("work", ["vendor", "roofline"])
def test_without_a_gpu_nothing_of_it_is_measured(work: str) -> None:
    problem = Matmul(64, 64, 64, "f16")
    with pytest.raises(TunerError, match=f"^{work}: no (CUDA|cuBLAS)"):
        gpu_vendor(problem, Effort(), 0) if work == "vendor" else gpu_roofline(problem)
