import ctypes
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.gpu_check.stub_driver import StubDriver
from tests.runtime.cuda.stub_cublas import stub_cublas
from tests.targets.gpu.simulated_cuda import COOL, FACTS, HERE, device_with_a_clock
from tests.targets.gpu.small_matmul import small_matmul
from tuner.core.errors import CandidateError, Stage, TunerError, UsageError
from tuner.core.gpu import DeviceError
from tuner.core.gpu_code import KernelBuffer, KernelProgram, Launch, buffers_of
from tuner.core.interfaces import Artifact, Effort
from tuner.core.machine import Conditions, Span
from tuner.core.problem import LAYOUTS, BatchMatmul, Matmul, Problem
from tuner.core.records import Verdict
from tuner.core.runs import Baseline
from tuner.payload import reference
from tuner.payload.reference import Array, Inputs
from tuner.runtime.cuda import cublas
from tuner.runtime.cuda.probe import GpuHere
from tuner.targets.arrays import Compare
from tuner.targets.gpu import evaluator as gpu_evaluator
from tuner.targets.gpu import event_timing
from tuner.targets.gpu.evaluator import GpuEvaluator, LocalGpu, time_cublas

PROBLEM = Matmul(4, 4, 4)


NOTHING = ".visible .entry nothing(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 calls) { ret; }"


def artifact_of(kernel: str, name: str) -> Artifact:
    ptx = f"//\n.version 8.0\n.target sm_90\n.address_size 64\n{kernel}\n"
    launch = Launch(name, (1, 1, 1), (16, 1, 1), 0, ("a", "b", "c", "calls"))
    buffers = (*buffers_of(PROBLEM), KernelBuffer("calls", 64, "scratch"))
    return Artifact("", "", program=KernelProgram("sm_90", ptx, b"", (launch,), buffers))


ARTIFACT = artifact_of(NOTHING, "nothing")


RIGHT = artifact_of(small_matmul(), "small")


def opened(here: GpuHere) -> LocalGpu:
    return LocalGpu(device_with_a_clock(), FACTS.l2_bytes)


def test_nothing_is_opened_before_the_first_program() -> None:
    def refused(here: GpuHere) -> LocalGpu:
        raise AssertionError("opened")

    assert GpuEvaluator("sm_90", lambda: HERE, refused).usable() == HERE


def test_code_for_another_chip_is_not_loaded() -> None:
    evaluator = GpuEvaluator("sm_80", lambda: HERE, opened)
    message = r"^compiled only: code is for sm_80, the GPU here is Simulated GPU, sm_90; verify with"
    with pytest.raises(CandidateError, match=message) as failed:
        evaluator.load(PROBLEM, ARTIFACT)
    assert failed.value.stage is Stage.LOAD
    with pytest.raises(DeviceError, match="code is for sm_80"):
        evaluator.usable()


def test_a_chip_that_is_not_known_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^chip: found 'sm_1', allowed sm_80"):
        GpuEvaluator("sm_1")


def test_clocks_held_down_between_the_rounds_mark_the_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_timing, "MIN_SAMPLES", 2)
    monkeypatch.setattr(event_timing, "COLD_SAMPLES", 2)
    hot = replace(COOL, sm_clock_hz=1.2e9, slowdowns=("power cap",))
    states = iter([COOL, COOL, hot, COOL, COOL, COOL])  # before, two warm rounds, two cold ones, after
    gpu = LocalGpu(device_with_a_clock(), FACTS.l2_bytes, lambda: next(states))
    evaluator = GpuEvaluator("sm_90", lambda: HERE, lambda here: gpu)
    loaded = (evaluator.load(PROBLEM, RIGHT), evaluator.load(PROBLEM, RIGHT))
    times = evaluator.measure_together(PROBLEM, loaded, Effort(0.0, 2), np.random.default_rng(0))
    expected = Conditions(COOL, COOL, Span(4, 1.2e9, COOL.sm_clock_hz, ("power cap",)))
    assert [each.conditions for each in times] == [expected] * 2
    assert expected.slowdowns == ("power cap",)


def library_evaluator(compare: Compare = reference.compare) -> GpuEvaluator:
    """Returns an evaluator on stand-ins for the driver and cuBLAS; every sample seems to take 20 ms."""
    device = StubDriver().open()
    setattr(device, "elapsed_s", lambda start, stop: 0.02)  # noqa: B010 - never kept
    return GpuEvaluator("sm_90", lambda: HERE, lambda here: LocalGpu(device, 4096), compare, stub_cublas)


@pytest.mark.parametrize("epilogue", ["none", "bias_relu"])
def test_cublas_are_interleaved_on_the_stream_and_the_arrays_of_the_programs(
    monkeypatch: pytest.MonkeyPatch, epilogue: str
) -> None:
    monkeypatch.setattr(event_timing, "MIN_SAMPLES", 3)
    monkeypatch.setattr(event_timing, "COLD_SAMPLES", 2)
    monkeypatch.setattr(gpu_evaluator, "MIN_SAMPLES", 10**6)  # no sample is judged
    problem = Matmul(4, 4, 4, epilogue=epilogue)
    evaluator, rng = library_evaluator(), np.random.default_rng(0)
    (library,) = evaluator.load_baselines(problem, rng)
    assert library.name == "cuBLAS 13.1.2"
    stub = ctypes.CDLL(stub_cublas())
    calls, stream = (ctypes.c_int.in_dll(stub, "stub_calls"), ctypes.c_void_p.in_dll(stub, "stub_stream"))
    checked, calls.value = calls.value, 0
    assert checked >= 1
    assert not stream.value
    loaded = evaluator.load(problem, ARTIFACT)
    times = evaluator.measure_together(problem, (loaded, library.work), Effort(0.0, 3), rng)
    assert [len(each.samples_s) for each in times] == [3, 3]
    assert [each.cold_median_s for each in times] == [0.02, 0.02]
    assert calls.value == 1 + 2  # captured once, run cold twice
    assert stream.value  # the timer's


def test_cublas_multiplies_all_matrices_of_a_batch_by_one_call() -> None:
    calls = ctypes.c_int.in_dll(ctypes.CDLL(stub_cublas()), "stub_calls")
    for layout in LAYOUTS:
        calls.value = 0
        library_evaluator().load_baselines(BatchMatmul(3, 4, 5, 6, layout=layout), np.random.default_rng(0))
        assert calls.value == 3  # of the stand-in, by itself


def test_cublas_that_is_wrong_takes_no_turn() -> None:
    def strict(inputs: Inputs, result: Array) -> tuple[Verdict, str]:
        return Verdict(2.0, 16), "element (0, 0) is wrong"

    with pytest.raises(CandidateError, match=r"^cuBLAS 13\.1\.2: element \(0, 0\) is wrong$") as failed:
        library_evaluator(strict).load_baselines(PROBLEM, np.random.default_rng(0))
    assert failed.value.stage is Stage.VERIFY


def test_cublas_that_refuses_is_reported_by_its_words() -> None:
    result = ctypes.c_int.in_dll(ctypes.CDLL(stub_cublas()), "stub_multiply_result")
    result.value = 15
    try:
        with pytest.raises(TunerError, match=r"^cuBLAS: cublasGemmEx: not supported$"):
            library_evaluator().load_baselines(PROBLEM, np.random.default_rng(0))
    finally:
        result.value = 0


def test_c_is_compared_as_the_judge_was_reported() -> None:
    def agreeable(inputs: Inputs, result: Array) -> tuple[Verdict, str]:
        return Verdict(0.0, 7, ("not looked at",)), ""

    rng = np.random.default_rng(0)
    strict, blind = (
        GpuEvaluator("sm_90", lambda: HERE, opened),
        GpuEvaluator("sm_90", lambda: HERE, opened, agreeable),
    )
    with pytest.raises(CandidateError, match="16 of 16 elements are wrong"):
        strict.verify(PROBLEM, strict.load(PROBLEM, ARTIFACT), rng)
    assert blind.verify(PROBLEM, blind.load(PROBLEM, ARTIFACT), rng) == Verdict(0.0, 7, ("not looked at",))


def test_a_program_is_evaluated_with_every_sign_turned_and_again_on_inputs_that_were_not_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_timing, "MIN_SAMPLES", 2)
    monkeypatch.setattr(event_timing, "COLD_SAMPLES", 2)
    monkeypatch.setattr(gpu_evaluator, "MIN_SAMPLES", 10**6)  # no sample is judged
    seen: list[tuple[Array, Array]] = []

    def watched(inputs: Inputs, result: Array) -> tuple[Verdict, str]:
        seen.append((inputs.a.copy(), result.copy()))
        return Verdict(0.0, 16), ""

    evaluator, rng = GpuEvaluator("sm_90", lambda: HERE, opened, watched), np.random.default_rng(0)
    loaded = evaluator.load(PROBLEM, ARTIFACT)  # which leaves C as it finds it
    evaluator.verify(PROBLEM, loaded, rng)
    (first, was), (second, now) = seen
    assert np.array_equal(second, -first)
    assert np.isnan(was).all()
    assert (now == 1).all()
    evaluator.measure(PROBLEM, loaded, Effort(0.0, 2), rng)
    last, c = seen[-1]
    assert not np.array_equal(last, second)
    assert np.isnan(c).all()


# cuBLAS beside our kernels, by stand-ins for it and for libcuda that compute on host memory.

SIZES = (5, 7, 3)  # nothing fits by chance


BRIEF = Effort(budget_s=0.0, min_samples=1)


def baseline_opened(_here: GpuHere) -> LocalGpu:
    device = StubDriver().open()
    setattr(device, "elapsed_s", lambda start, stop: 0.02)  # noqa: B010 - never kept
    return LocalGpu(device, 4096, lambda: COOL)


def timed(problem: Problem, effort: Effort = BRIEF, find: Callable[[], str] = stub_cublas) -> Baseline:
    evaluator = GpuEvaluator("sm_90", lambda: HERE, baseline_opened, find_library=find)
    return time_cublas(evaluator, problem, effort, 0)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "tf32"])
def test_the_answer_is_that_of_the_problem(dtype: str, layout: str) -> None:
    timed(Matmul(*SIZES, dtype, layout))  # raises for any element that is wrong


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_narrow_results_are_stored_narrow(dtype: str) -> None:
    timed(Matmul(*SIZES, dtype, output=dtype))


@pytest.mark.parametrize(
    ("dtype", "compute"),
    [
        ("f16", cublas.COMPUTE_32F),
        ("bf16", cublas.COMPUTE_32F),
        ("f32", cublas.COMPUTE_32F),
        ("tf32", cublas.COMPUTE_32F_FAST_TF32),
        ("f64", cublas.COMPUTE_64F),
    ],
)
def test_tf32_is_allowed_exactly_where_the_problem_is_tf32(dtype: str, compute: int) -> None:
    timed(Matmul(*SIZES, dtype))
    assert ctypes.c_int.in_dll(ctypes.CDLL(stub_cublas()), "stub_compute").value == compute


def test_the_library_is_timed_as_kernels_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_timing, "MIN_SAMPLES", 3)
    baseline = timed(Matmul(*SIZES, "f16", epilogue="bias_relu"))
    assert (baseline.name, baseline.threads) == ("cuBLAS 13.1.2", 0)
    assert (baseline.measurement.median_s, baseline.measurement.cold_median_s) == (0.02, 0.02)
    assert len(baseline.measurement.samples_s) == 3
    assert baseline.measurement.conditions == Conditions(COOL, COOL)


def test_a_library_that_is_wrong_is_no_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cublas, "OP_T", cublas.OP_N)  # what our call would ask for if it were wrong
    with pytest.raises(TunerError, match=r"^cuBLAS 13\.1\.2: \d+ of 15 elements are wrong"):
        timed(Matmul(5, 3, 5, layout="nt"))


def test_a_library_that_refuses_is_reported_by_its_words() -> None:
    result = ctypes.c_int.in_dll(ctypes.CDLL(stub_cublas()), "stub_create_result")
    result.value = 1
    try:
        with pytest.raises(TunerError, match=r"^cuBLAS: cublasCreate_v2: not initialized"):
            timed(Matmul(*SIZES))
    finally:
        result.value = 0


def test_a_library_that_does_not_load_is_reported() -> None:
    with pytest.raises(TunerError, match=r"^cuBLAS: libcublas-of-nobody\.so: cannot open"):
        timed(Matmul(*SIZES), find=lambda: "libcublas-of-nobody.so")


def test_without_a_library_it_is_reported_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    pathfinder = pytest.importorskip("cuda.pathfinder")

    def nothing(name: str) -> None:
        raise pathfinder.DynamicLibNotFoundError(name)

    monkeypatch.setattr(pathfinder, "load_nvidia_dynamic_lib", nothing)
    with pytest.raises(TunerError, match=r"no cuBLAS found \(pip install nvidia-cublas\)"):
        cublas.find_cublas()
