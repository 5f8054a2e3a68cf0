"""cuBLAS beside our kernels, by stand-ins for it and for libcuda that compute on host memory."""

import ctypes
from collections.abc import Callable

import pytest

from benchmarks.gpu_check.stub_driver import StubDriver
from tests.runtime.cuda.stub_cublas import stub_cublas
from tests.targets.gpu.simulated_cuda import COOL, HERE
from tuner.core.errors import TunerError
from tuner.core.interfaces import Effort
from tuner.core.machine import Conditions
from tuner.core.problem import LAYOUTS, Matmul, Problem
from tuner.core.runs import Baseline
from tuner.runtime.cuda import cublas
from tuner.runtime.cuda.probe import GpuHere
from tuner.targets.gpu import event_timing
from tuner.targets.gpu.evaluator import GpuEvaluator, LocalGpu, time_cublas

SIZES = (5, 7, 3)  # nothing fits by chance
BRIEF = Effort(budget_s=0.0, min_samples=1)


def opened(_here: GpuHere) -> LocalGpu:
    device = StubDriver().open()
    setattr(device, "elapsed_s", lambda start, stop: 0.02)  # noqa: B010 - never kept
    return LocalGpu(device, 4096, lambda: COOL)


def timed(problem: Problem, effort: Effort = BRIEF, find: Callable[[], str] = stub_cublas) -> Baseline:
    return time_cublas(GpuEvaluator("sm_90", lambda: HERE, opened, find_library=find), problem, effort, 0)


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
