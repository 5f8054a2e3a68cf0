"""CUDA programs: on a simulated GPU all of it, without one code and a clear word instead of a result."""

import gc
import re
from dataclasses import replace

import numpy as np
import pytest

from tests.mlir.gpu_matmul import gpu_script
from tests.targets.gpu.simulated_cuda import COOL, FACTS, HERE, SAMPLE_S, device_with_a_clock, evaluator_on
from tuner.core.candidate import TargetName
from tuner.core.errors import CandidateError, Stage, TunerError
from tuner.core.gpu import DeviceError, chip_of
from tuner.core.gpu_code import KernelProgram
from tuner.core.interfaces import Artifact, Effort, Script
from tuner.core.machine import Conditions, Span
from tuner.core.problem import Matmul
from tuner.core.records import Verdict
from tuner.mlir.fingerprint import GPU_SOURCES, sources_sha256
from tuner.runtime.cuda import probe
from tuner.runtime.cuda.probe import GpuHere
from tuner.simulator.device.simulated_device import SimulatedDevice
from tuner.targets.gpu import event_timing
from tuner.targets.gpu.arrays import GpuProblemArrays
from tuner.targets.gpu.compiler import GpuCompiler
from tuner.targets.gpu.cuda import KIND, cuda_limits
from tuner.targets.gpu.evaluator import GpuEvaluator
from tuner.targets.gpu.simulator_target import simulator_limits

PROBLEM = Matmul(16, 8, 8)

SCRIPT = gpu_script(block=8, depth=8, tile=2)

COMPILER = GpuCompiler(chip_of("sm_90"), lambda: None)  # without ptxas: PTX is what is simulated

BRIEF = Effort(budget_s=0.0, min_samples=2)


def nothing_here() -> GpuHere:
    raise DeviceError("no CUDA driver: libcuda.so.1 cannot be loaded")


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    return COMPILER.compile(PROBLEM, Script.of(SCRIPT))


@pytest.fixture
def few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated runs are slow, and what they take is not looked at."""
    monkeypatch.setattr(event_timing, "MIN_SAMPLES", 2)
    monkeypatch.setattr(event_timing, "COLD_SAMPLES", 2)


@pytest.fixture
def device() -> SimulatedDevice:
    return device_with_a_clock()


def edited(artifact: Artifact, old: str, new: str) -> Artifact:
    """Returns the artifact with its PTX broken."""
    program = program_of(artifact)
    assert re.search(old, program.ptx), old
    return replace(artifact, program=replace(program, ptx=re.sub(old, new, program.ptx, count=1)))


def program_of(artifact: Artifact) -> KernelProgram:
    assert artifact.program is not None
    return artifact.program


def with_workspace(artifact: Artifact, role: str) -> Artifact:
    """Returns the artifact with one more buffer."""
    program = program_of(artifact)
    workspace = replace(program.buffers[0], name="workspace", role=role)
    return replace(artifact, program=replace(program, buffers=(*program.buffers, workspace)))


@pytest.mark.mlir
def test_a_right_program_is_verified_on_every_element_and_timed(
    device: SimulatedDevice, artifact: Artifact, few_samples: None
) -> None:
    evaluator = evaluator_on(device)
    loaded = evaluator.load(PROBLEM, artifact)
    verdict = evaluator.verify(PROBLEM, loaded, rng())
    assert verdict.max_error <= 1.0
    assert verdict.elements == 16 * 8
    found = evaluator.measure(PROBLEM, loaded, BRIEF, rng())
    assert (found.median_s, found.cold_median_s, found.inner_calls) == (SAMPLE_S, SAMPLE_S, 1)
    assert found.conditions == Conditions(COOL, COOL)
    assert device.reports == ()  # nothing that only luck had ordered


@pytest.mark.mlir
def test_top_trials_are_timed_on_the_same_arrays(
    device: SimulatedDevice, artifact: Artifact, few_samples: None
) -> None:
    evaluator = evaluator_on(device)
    loaded = (evaluator.load(PROBLEM, artifact), evaluator.load(PROBLEM, artifact))
    times = evaluator.measure_together(PROBLEM, loaded, BRIEF, rng())
    assert [len(each.samples_s) for each in times] == [2, 2]
    between = Span(4, COOL.sm_clock_hz, COOL.sm_clock_hz)  # two rounds warm, two cold
    assert {each.conditions for each in times} == {Conditions(COOL, COOL, between)}
    assert device.counts.modules_loaded == 1
    assert device.counts.allocations == 3 + 1  # A, B, C, and what a flush fills
    assert device.reports == ()  # nothing was verified here before: inputs are uploaded all the same


@pytest.mark.mlir
def test_what_a_program_holds_is_given_back_when_it_is_forgotten(
    device: SimulatedDevice, artifact: Artifact
) -> None:
    evaluator = evaluator_on(device)
    loaded = evaluator.load(PROBLEM, with_workspace(artifact, "scratch"))
    evaluator.verify(PROBLEM, loaded, rng())
    kept = device.counts.allocations - device.counts.frees
    del loaded
    gc.collect()
    assert device.counts.allocations - device.counts.frees == kept - 1
    assert device.counts.modules_unloaded == 1


@pytest.mark.mlir
def test_another_problem_takes_the_memory_of_the_one_before(
    device: SimulatedDevice, artifact: Artifact
) -> None:
    evaluator = evaluator_on(device)
    evaluator.verify(PROBLEM, evaluator.load(PROBLEM, artifact), rng())
    other = Matmul(8, 8, 8)
    evaluator.verify(other, evaluator.load(other, COMPILER.compile(other, Script.of(SCRIPT))), rng())
    assert device.counts.allocations - device.counts.frees == 3


@pytest.mark.mlir
def test_a_wrong_program_fails_with_an_element(device: SimulatedDevice, artifact: Artifact) -> None:
    evaluator, program = evaluator_on(device), program_of(artifact)
    half = replace(program, launches=(replace(program.launches[0], grid=(1, 1, 1)),))
    for wrong, message in (
        (edited(artifact, r"mul\.rn\.f32", "add.rn.f32"), r"^\d+ of 128 elements are wrong; worst at"),
        (replace(artifact, program=half), r"^64 of 128 elements are wrong; .*: found nan"),
    ):
        with pytest.raises(CandidateError, match=message) as caught:
            evaluator.verify(PROBLEM, evaluator.load(PROBLEM, wrong), rng())
        assert caught.value.stage is Stage.VERIFY


@pytest.mark.mlir
@pytest.mark.slow
def test_a_run_that_leaves_other_bits_is_evaluated_element_by_element(
    device: SimulatedDevice, artifact: Artifact, few_samples: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[GpuProblemArrays] = []
    evaluate = GpuProblemArrays.evaluate

    def watched(arrays: GpuProblemArrays) -> Verdict:
        looked_at.append(arrays)
        return evaluate(arrays)

    monkeypatch.setattr(GpuProblemArrays, "evaluate", watched)
    evaluator = evaluator_on(device)
    loaded = evaluator.load(PROBLEM, artifact)
    evaluator.verify(PROBLEM, loaded, rng())
    evaluator.measure(PROBLEM, loaded, BRIEF, rng())
    assert len(looked_at) == 3  # two draws before, one after; what was timed left the bits that were right
    wrong = evaluator.load(PROBLEM, edited(artifact, r"mul\.rn\.f32", "add.rn.f32"))
    with pytest.raises(CandidateError, match="elements are wrong"):
        evaluator.measure(PROBLEM, wrong, BRIEF, rng())
    assert len(looked_at) == 4


@pytest.mark.mlir
def test_what_timed_runs_left_is_evaluated(
    device: SimulatedDevice, artifact: Artifact, few_samples: None
) -> None:
    evaluator = evaluator_on(device)
    evaluator.verify(PROBLEM, evaluator.load(PROBLEM, artifact), rng())
    loaded = evaluator.load(PROBLEM, edited(artifact, r"mul\.rn\.f32", "add.rn.f32"))
    with pytest.raises(CandidateError, match=r"elements (looked at )?are wrong") as caught:
        evaluator.measure(PROBLEM, loaded, BRIEF, rng())
    assert caught.value.stage is Stage.VERIFY


@pytest.mark.mlir
def test_code_that_the_driver_refuses_fails_to_load_and_a_lost_context_fails_the_run(
    device: SimulatedDevice, artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = replace(artifact, program=replace(program_of(artifact), cubin=b"\x7fELF of another GPU"))
    with pytest.raises(CandidateError, match="CUDA_ERROR_NO_BINARY_FOR_GPU") as caught:
        evaluator_on(device).load(PROBLEM, other)
    assert caught.value.stage is Stage.LOAD

    def lost(image: bytes) -> int:
        raise DeviceError("cuModuleLoadData: CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_ILLEGAL_ADDRESS")

    monkeypatch.setattr(device, "load_module", lost)
    with pytest.raises(CandidateError, match="CUDA_ERROR_ILLEGAL_ADDRESS") as caught:
        evaluator_on(device).load(PROBLEM, artifact)
    assert caught.value.stage is Stage.RUN  # at whatever stage it shows


@pytest.mark.mlir
@pytest.mark.parametrize(("role", "stage"), [("scratch", Stage.LOAD), ("input", Stage.RUN)])
def test_a_lack_of_memory_reports_how_much_was_wanted(
    device: SimulatedDevice, artifact: Artifact, monkeypatch: pytest.MonkeyPatch, role: str, stage: Stage
) -> None:
    def full(size_bytes: int, stream: int) -> int:
        raise DeviceError("cuMemAllocAsync: CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_OUT_OF_MEMORY")

    monkeypatch.setattr(device, "allocate", full)
    evaluator = evaluator_on(device)
    with pytest.raises(
        CandidateError, match=r"GiB of GPU memory for .* are not free: CUDA_ERROR_O"
    ) as caught:
        evaluator.verify(PROBLEM, evaluator.load(PROBLEM, with_workspace(artifact, role)), rng())
    assert caught.value.stage is stage


@pytest.mark.mlir
def test_without_a_gpu_code_is_made_and_nothing_is_run() -> None:
    evaluator = GpuEvaluator("sm_80", describe=nothing_here)
    artifact = GpuCompiler(chip_of("sm_80")).compile(PROBLEM, Script.of(SCRIPT))
    assert ".target sm_80" in artifact.code
    with pytest.raises(
        CandidateError,
        match=r"^compiled only: no CUDA driver: libcuda\S+ cannot be loaded; verify with --target simulator",
    ) as caught:
        evaluator.load(PROBLEM, artifact)
    assert caught.value.stage is Stage.LOAD


# NVIDIA GPUs as a kind of target, with a GPU that is described and one that is not there.

NEEDS_NONE = pytest.mark.skipif("not _has_none()", reason="there is a GPU here")


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "describe_gpu", nothing_here)


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
    assert KIND.outcomes.machine(TargetName("cuda", "sm_90")).name == "cuda sm_90"


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


def test_the_machine_is_described_by_the_gpu_here_if_it_is_of_the_chip(gpu: None) -> None:
    machine = KIND.outcomes.machine(TargetName("cuda", "sm_90"))
    assert (machine.name, machine.chip, machine.physical_cores) == ("Simulated GPU", "sm_90", 4)
    assert machine.processor == "Simulated GPU, CUDA driver 13.0"
    assert (machine.l3_bytes, machine.memory_bytes) == (FACTS.l2_bytes, FACTS.memory_bytes)
    assert dict(machine.limits())["sm_count"] == 4
    assert KIND.outcomes.machine(TargetName("cuda", "sm_90a")).name == "Simulated GPU"
    assert KIND.outcomes.machine(TargetName("cuda", "sm_80")).name == "cuda sm_80"


@pytest.mark.mlir
def test_the_compiler_is_the_wheel_the_assembler_and_what_makes_code() -> None:
    compiler = KIND.outcomes.compiler(TargetName("cuda", "sm_80"))
    assert "ptxas" in dict(compiler.packages)
    assert compiler.pipeline_sha256 == sources_sha256(GPU_SOURCES)


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
