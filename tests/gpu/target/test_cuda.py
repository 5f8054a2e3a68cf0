"""CUDA programs: on a simulated GPU, without one, in processes on a stand-in for libcuda, as callables."""

import gc
import pickle
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from tests.gpu.target.simulated_cuda import COOL, SAMPLE_S, download, evaluator_on, nothing_here, upload
from tests.gpu.target.stub_cuda import FEW, stub_factory
from tests.mlir.gpu_matmul import gpu_script
from tests.targets.evaluation import fails, rng
from tests.tuning.fakes import present
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import CandidateError, DeviceError, Failure, Stage, UsageError
from tuner.core.gpu import chip_of
from tuner.core.interfaces import Artifact, BoundRecord, Effort, Script
from tuner.core.matmul import Matmul
from tuner.core.records import Conditions, Measurement, Record, Span, Verdict
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.gpu.target import event_timing
from tuner.gpu.target.arrays import GpuProblemArrays
from tuner.gpu.target.callables import GpuCallable
from tuner.gpu.target.compiler import GpuCompiler
from tuner.gpu.target.evaluator import GpuEvaluator
from tuner.runtime.workers.limits import Limits
from tuner.runtime.workers.runner import RunnerOrder, RunnerProcesses, TrialRunner
from tuner.runtime.workers.services import compile_spec, evaluation_spec

pytestmark = pytest.mark.mlir

PROBLEM = Matmul(16, 8, 8)
SCRIPT = gpu_script(block=8, depth=8, tile=2)
COMPILER = GpuCompiler(chip_of("sm_90"), lambda: None)  # without ptxas: PTX is what is simulated
BRIEF = Effort(budget_s=0.0, min_samples=2)


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    return COMPILER.compile(PROBLEM, Script.of(SCRIPT))


@pytest.fixture
def few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated runs are slow, and what they take is not looked at."""
    monkeypatch.setattr(event_timing, "MIN_SAMPLES", 2)
    monkeypatch.setattr(event_timing, "COLD_SAMPLES", 2)


def edited(artifact: Artifact, old: str, new: str) -> Artifact:
    program = artifact.code
    assert re.search(old, program.text), old
    return replace(artifact, code=replace(program, text=re.sub(old, new, program.text, count=1)))


def with_workspace(artifact: Artifact, role: str) -> Artifact:
    program = artifact.code
    workspace = replace(program.buffers[0], name="workspace", role=role)
    return replace(artifact, code=replace(program, buffers=(*program.buffers, workspace)))


@pytest.mark.usefixtures("few_samples")
def test_a_right_program_is_verified_and_timed(device: SimulatedDevice, artifact: Artifact) -> None:
    evaluator = evaluator_on(device)
    loaded = evaluator.load(PROBLEM, artifact)
    verdict = evaluator.verify(PROBLEM, loaded, rng())
    assert verdict.max_error <= 1.0
    assert verdict.elements == 16 * 8
    found = evaluator.measure(PROBLEM, loaded, BRIEF, rng())
    assert (found.median_s, found.cold_median_s, found.inner_calls) == (SAMPLE_S, SAMPLE_S, 1)
    assert found.conditions == Conditions(COOL, COOL)
    assert device.reports == ()  # nothing that only luck had ordered


@pytest.mark.usefixtures("few_samples")
def test_top_trials_are_timed_on_the_same_arrays(device: SimulatedDevice, artifact: Artifact) -> None:
    evaluator = evaluator_on(device)
    loaded = (evaluator.load(PROBLEM, artifact), evaluator.load(PROBLEM, artifact))
    times = evaluator.measure_together(PROBLEM, loaded, BRIEF, rng())
    assert [len(each.samples_s) for each in times] == [2, 2]
    between = Span(4, COOL.sm_clock_hz, COOL.sm_clock_hz)  # two rounds warm, two cold
    assert {each.conditions for each in times} == {Conditions(COOL, COOL, between)}
    assert device.counts.modules_loaded == 1
    assert device.counts.allocations == 3 + 1  # A, B, C, and what a flush fills
    assert device.reports == ()  # nothing was verified here before: inputs are uploaded all the same


def test_memory_is_given_back_or_goes_to_the_next(device: SimulatedDevice, artifact: Artifact) -> None:
    evaluator = evaluator_on(device)
    loaded = evaluator.load(PROBLEM, with_workspace(artifact, "scratch"))
    evaluator.verify(PROBLEM, loaded, rng())
    kept = device.counts.allocations - device.counts.frees
    del loaded
    gc.collect()
    assert device.counts.allocations - device.counts.frees == kept - 1
    assert device.counts.modules_unloaded == 1
    other = Matmul(8, 8, 8)
    evaluator.verify(other, evaluator.load(other, COMPILER.compile(other, Script.of(SCRIPT))), rng())
    assert device.counts.allocations - device.counts.frees == 3


def test_a_wrong_program_fails_with_an_element(device: SimulatedDevice, artifact: Artifact) -> None:
    evaluator, program = evaluator_on(device), artifact.code
    half = replace(program, launches=(replace(program.launches[0], grid=(1, 1, 1)),))
    for wrong, message in (
        (edited(artifact, r"mul\.rn\.f32", "add.rn.f32"), r"^\d+ of 128 elements are wrong; worst at"),
        (replace(artifact, code=half), r"^64 of 128 elements are wrong; .*: found 1,"),
    ):
        with fails(Stage.VERIFY, match=message):
            evaluator.verify(PROBLEM, evaluator.load(PROBLEM, wrong), rng())


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
    draws = len(looked_at)
    evaluator.measure(PROBLEM, loaded, BRIEF, rng())
    assert len(looked_at) == draws + 1  # a draw after; what was timed left the bits that were right
    wrong = evaluator.load(PROBLEM, edited(artifact, r"mul\.rn\.f32", "add.rn.f32"))
    with pytest.raises(CandidateError, match="elements are wrong"):
        evaluator.measure(PROBLEM, wrong, BRIEF, rng())
    assert len(looked_at) == draws + 2


def test_code_that_the_driver_refuses_fails_to_load_and_a_lost_context_fails_the_run(
    device: SimulatedDevice, artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = replace(artifact, code=replace(artifact.code, binary=b"\x7fELF of another GPU"))
    with fails(Stage.LOAD, match="CUDA_ERROR_NO_BINARY_FOR_GPU"):
        evaluator_on(device).load(PROBLEM, other)

    def lost(image: bytes) -> int:
        raise DeviceError("cuModuleLoadData: CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_ILLEGAL_ADDRESS")

    monkeypatch.setattr(device, "load_module", lost)
    with fails(Stage.RUN, match="CUDA_ERROR_ILLEGAL_ADDRESS"):  # at whatever stage it shows
        evaluator_on(device).load(PROBLEM, artifact)


@pytest.mark.parametrize(("role", "stage"), [("scratch", Stage.LOAD), ("input", Stage.RUN)])
def test_a_lack_of_memory_reports_how_much_was_wanted(
    device: SimulatedDevice, artifact: Artifact, monkeypatch: pytest.MonkeyPatch, role: str, stage: Stage
) -> None:
    def full(size_bytes: int, stream: int) -> int:
        raise DeviceError("cuMemAllocAsync: CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_OUT_OF_MEMORY")

    monkeypatch.setattr(device, "allocate", full)
    evaluator = evaluator_on(device)
    with fails(stage, match=r"GiB of GPU memory for .* are not free: CUDA_ERROR_O"):
        evaluator.verify(PROBLEM, evaluator.load(PROBLEM, with_workspace(artifact, role)), rng())


def test_without_a_gpu_code_is_made_and_nothing_is_run() -> None:
    evaluator = GpuEvaluator("sm_80", describe=nothing_here)
    artifact = GpuCompiler(chip_of("sm_80")).compile(PROBLEM, Script.of(SCRIPT))
    assert ".target sm_80" in artifact.code.text
    reason = r"no CUDA driver: libcuda\S+ cannot be loaded; verify with --target simulator"
    with fails(Stage.LOAD, match=f"^compiled only: {reason}"):
        evaluator.load(PROBLEM, artifact)


# In processes, on a stand-in for libcuda: a lost context takes only its candidate.
CUDA = TargetName("cuda", "sm_90")
LIMITS = Limits(compile_timeout_s=60.0, evaluation_timeout_s=60.0, memory_bytes=2 << 30)


def candidate(deed: str = "", number: int = 0) -> Candidate:
    return Candidate.of("by_hand", {"deed": deed, "number": number})


def bind(chosen: Candidate) -> Script:
    knobs = dict(chosen.choices)
    deed = f"// deed: {knobs['deed']}\n" * bool(knobs["deed"])
    return Script.of(f"{deed}// number: {knobs['number']}\n{SCRIPT}")


def bound(record: Record) -> BoundRecord:
    return BoundRecord(record, bind(record.candidate))


@pytest.fixture(scope="module")
def runner() -> Iterator[TrialRunner]:
    order = RunnerOrder(PROBLEM, CUDA, bind, lambda _s, _c: None)
    factory = stub_factory()
    made = TrialRunner.in_children(
        order, RunnerProcesses(compile_spec(factory), evaluation_spec(factory), 1, LIMITS), 0
    )
    yield made
    made.close()


def run(runner: TrialRunner, *candidates: Candidate) -> list[Record]:
    for number, chosen in enumerate(candidates):
        runner.start(number, chosen, BRIEF)
    return [runner.finish().record for _ in candidates]


@pytest.mark.slow
def test_a_right_program_is_verified_and_timed_through_the_driver(runner: TrialRunner) -> None:
    (record,) = run(runner, candidate())
    assert isinstance(record.outcome, Measurement), record.outcome
    assert present(record.verdict).elements == 16 * 8
    assert present(record.outcome.cold_median_s) > 0
    assert record.resources == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("deed", "reason"),
    [
        ("beyond", "CUDA_ERROR_LAUNCH_FAILED"),
        ("lost at load", "cuModuleLoadData: .*CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("lost while timed", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("no memory", r"^0\.00 GiB of GPU memory for matmul 16x8x8 .* not free: CUDA_ERROR_OUT_OF_MEMORY$"),
    ],
)
def test_a_lost_context_or_lack_of_memory_spares_others(runner: TrialRunner, deed: str, reason: str) -> None:
    if deed == "no memory":  # in a new process: in this one the problem has its memory
        run(runner, candidate("beyond"))
    failed, honest = run(runner, candidate(deed), candidate(number=1))
    assert isinstance(failed.outcome, Failure), failed.outcome
    assert failed.outcome.stage is Stage.RUN
    assert re.search(reason, failed.outcome.reason), failed.outcome.reason
    assert isinstance(honest.outcome, Measurement), honest.outcome


@pytest.mark.slow
def test_top_trials_are_interleaved_and_a_broken_one_takes_no_other_with_it(runner: TrialRunner) -> None:
    (right,) = run(runner, candidate(number=2))
    broken = Record(PROBLEM, candidate("beyond"), CUDA, right.outcome)
    found = runner.remeasure((bound(right), bound(broken)), BRIEF)
    assert [time is None for time in found.measured] == [False, True]
    assert found.baseline is None  # it did not take part again


@pytest.mark.slow
def test_cublas_are_interleaved_with_the_top_trials(runner: TrialRunner) -> None:
    (right,) = run(runner, candidate(number=3))
    found = runner.remeasure((bound(right), bound(right)), BRIEF)
    baseline = present(found.baseline)
    assert baseline.name == "cuBLAS 13.1.2"
    assert [len(present(time).samples_s) for time in (*found.measured, baseline.measurement)] == [FEW] * 3
    assert baseline.measurement.cold_median_s is not None


# As callables: nothing is left allocated, nothing unordered.
M, N, K = PROBLEM.sizes
A = np.arange(M * K, dtype=np.float32).reshape(M, K) / 64
B = np.arange(K * N, dtype=np.float32).reshape(K, N) / 32


@dataclass(frozen=True)
class OnDevice:
    address: int
    shape: tuple[int, ...]
    is_read_only: bool = False

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        data = (self.address, self.is_read_only)
        return {"data": data, "shape": self.shape, "typestr": "<f4", "version": 3}


def on_device(device: SimulatedDevice, host: Any) -> OnDevice:
    address = device.allocate(host.nbytes, 0)
    upload(device, address, host)
    return OnDevice(address, host.shape)


@pytest.fixture
def matmul(artifact: Artifact, device: SimulatedDevice) -> GpuCallable:
    return GpuCallable(PROBLEM, artifact.code, device)


def test_numpy_arrays_are_multiplied(matmul: GpuCallable, device: SimulatedDevice) -> None:
    out = np.empty((M, N), np.float32)
    np.testing.assert_allclose(matmul(A, B), A @ B, rtol=1e-5)
    assert matmul(A, B, out=out) is out
    np.testing.assert_allclose(out, A @ B, rtol=1e-5)
    assert not device.reports


def test_arrays_on_the_device_are_multiplied_there(matmul: GpuCallable, device: SimulatedDevice) -> None:
    a, b, c = (on_device(device, host) for host in (A, B, np.zeros((M, N), np.float32)))
    stream = device.create_stream()
    assert matmul(a, b, out=c, stream=stream) is c
    device.synchronize_stream(stream)
    np.testing.assert_allclose(download(device, c.address, np.empty((M, N), np.float32)), A @ B, rtol=1e-5)
    assert not device.reports


def test_arrays_that_do_not_fit_are_refused(matmul: GpuCallable, device: SimulatedDevice) -> None:
    a, b, c = (on_device(device, host) for host in (A, B, np.zeros((M, N), np.float32)))
    read_only = np.zeros((M, N), np.float32)
    read_only.flags.writeable = False
    calls: tuple[tuple[Callable[[], Any], str], ...] = (
        (lambda: matmul(A), "found 1 arrays, allowed a, b"),
        (lambda: matmul(B, A), r"a: found float32 of shape \(8, 8\), allowed float32 of shape \(16, 8\)"),
        (lambda: matmul(A.astype(np.float64), B), "a: found float64"),
        (lambda: matmul(np.asfortranarray(A), B), "a: found strides .*, allowed a C-contiguous array; copy"),
        (lambda: matmul(A, np.ma.masked_array(B)), "b: masked arrays are not supported"),
        (lambda: matmul(A, B, out=a), "out: found OnDevice, allowed a numpy array; convert it"),
        (lambda: matmul(A, B, out=read_only), "out: is read-only, but is written to"),
        (lambda: matmul(a, b), r"out: missing: it needs an array on the device, of float32 \(16, 8\)"),
        (lambda: matmul(a, B, out=a), "b: found ndarray, allowed DLPack"),
        (lambda: matmul(a, b, out=b), r"out: found float32 of shape \(8, 8\)"),
        (lambda: matmul(A, B, stream="main"), "stream: found str"),
        (lambda: matmul(a, b, out=replace(c, is_read_only=True)), "^out: is read-only, but is written to$"),
        (lambda: matmul(a, b, out=a), "^out: is written to, but shares memory with a$"),
    )
    for call, message in calls:
        with pytest.raises(UsageError, match=message):
            call()
    assert matmul(replace(a, is_read_only=True), b, out=c) is c


def test_a_program_is_not_pickled(matmul: GpuCallable) -> None:
    with pytest.raises(TypeError, match=r"load it in the other process: tuner\.load_best\(problem\)$"):
        pickle.dumps(matmul)
