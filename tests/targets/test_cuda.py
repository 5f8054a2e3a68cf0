"""NVIDIA GPUs as a kind of target, with a GPU that is described and one that is not there."""

from dataclasses import replace

import pytest

from tests.targets.gpu.simulated_cuda import FACTS, HERE
from tuner.core.candidate import TargetName
from tuner.core.errors import TunerError
from tuner.core.gpu import DeviceError
from tuner.core.interfaces import Effort
from tuner.core.problem import Matmul
from tuner.mlir.fingerprint import GPU_SOURCES, sources_sha256
from tuner.runtime.cuda import probe
from tuner.runtime.cuda.probe import GpuHere
from tuner.targets.gpu.cuda import KIND, cuda_limits
from tuner.targets.gpu.simulator_target import simulator_limits

NEEDS_NONE = pytest.mark.skipif("not _has_none()", reason="there is a GPU here")


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing() -> GpuHere:
        raise DeviceError("no CUDA driver: libcuda.so.1 cannot be loaded")

    monkeypatch.setattr(probe, "describe_gpu", nothing)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "describe_gpu", lambda: HERE)


def _has_none() -> bool:
    try:
        probe.describe_gpu()
    except DeviceError:
        return True
    return False


def test_without_a_gpu_code_is_made_and_the_reason_told(no_gpu: None) -> None:
    cuda = KIND.status()
    assert (cuda.name, cuda.is_available, cuda.can_compile, cuda.is_timed) == ("cuda", False, True, False)
    assert cuda.reason.startswith("compiles only: no CUDA driver: libcuda.so.1 cannot be loaded; ")
    assert "ptxas" in cuda.reason
    assert cuda.chip == ""


def test_a_gpu_is_reported_with_all_that_is_known_of_it(gpu: None) -> None:
    cuda = KIND.status()
    assert (cuda.is_available, cuda.is_timed, cuda.chip) == (True, True, "sm_90")
    assert cuda.reason.startswith("Simulated GPU, sm_90, 4 multiprocessors, 1 GiB, CUDA driver 13.0; ")
    assert "no clocks or temperatures: " in cuda.reason or "by NVML" in cuda.reason


def test_a_gpu_that_no_code_can_be_made_for_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    old = GpuHere(replace(FACTS, name="Tesla T4", chip="sm_75"), HERE.bus)
    monkeypatch.setattr(probe, "describe_gpu", lambda: old)
    cuda = KIND.status()
    assert (cuda.is_available, cuda.can_compile, cuda.chip) == (False, True, "")
    assert "Tesla T4 is sm_75, allowed sm_80, sm_86" in cuda.reason


def test_the_machine_is_described_by_the_gpu_here(gpu: None) -> None:
    machine = KIND.outcomes.machine(TargetName("cuda", "sm_90"))
    assert (machine.name, machine.chip, machine.physical_cores) == ("Simulated GPU", "sm_90", 4)
    assert machine.processor == "Simulated GPU, CUDA driver 13.0"
    assert (machine.l3_bytes, machine.memory_bytes) == (FACTS.l2_bytes, FACTS.memory_bytes)
    assert dict(machine.limits())["sm_count"] == 4


@pytest.mark.mlir
def test_the_compiler_is_the_wheel_the_assembler_and_what_makes_code() -> None:
    compiler = KIND.outcomes.compiler(TargetName("cuda", "sm_80"))
    assert "ptxas" in dict(compiler.packages)
    assert compiler.pipeline_sha256 == sources_sha256(GPU_SOURCES)


def test_the_machine_of_a_target_is_the_gpu_here_if_it_is_of_the_chip(gpu: None) -> None:
    assert KIND.outcomes.machine(TargetName("cuda", "sm_90")).name == "Simulated GPU"
    assert KIND.outcomes.machine(TargetName("cuda", "sm_90a")).name == "Simulated GPU"
    assert KIND.outcomes.machine(TargetName("cuda", "sm_80")).name == "cuda sm_80"


def test_without_a_gpu_the_machine_of_a_target_is_its_chip(no_gpu: None) -> None:
    assert KIND.outcomes.machine(TargetName("cuda", "sm_90")).name == "cuda sm_90"


def test_a_hanging_kernel_is_ended_sooner_than_a_slow_simulation() -> None:
    problem, effort = Matmul(4096, 4096, 4096), Effort()
    limits = cuda_limits(1 << 30)
    first, later = (limits.evaluation_limit_s(problem, effort, call_s) for call_s in (None, 1e-3))
    assert first < 600
    assert later < 120
    assert simulator_limits(1 << 30).evaluation_timeout_s == 300


@NEEDS_NONE
@pytest.mark.parametrize("work", ["baseline", "roofline"])
def test_without_a_gpu_nothing_of_it_is_measured(work: str) -> None:
    problem = Matmul(64, 64, 64, "f16")
    with pytest.raises(TunerError, match=f"^{work}: no (CUDA|cuBLAS)"):
        KIND.outcomes.baseline(problem, 1, 0) if work == "baseline" else KIND.outcomes.roofline(problem, 1)
