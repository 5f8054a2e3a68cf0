"""cuBLAS beside our kernels, by stand-ins for it and for libcuda that compute on host memory."""

import ctypes

import pytest

from tests.runtime.stub_cublas import stub_cublas
from tests.runtime.stub_driver import StubDriver
from tests.targets.simulated_cuda import COOL
from tuner.conditions import Conditions
from tuner.errors import TunerError
from tuner.problem import LAYOUTS, Matmul, Problem
from tuner.runtime import cublas
from tuner.target import Effort
from tuner.targets import gpu_timing
from tuner.targets.cublas import CublasService
from tuner.targets.gpu_here import Gpu

SIZES = (5, 7, 3)  # nothing fits by chance


def opened() -> Gpu:
    device = StubDriver().open()
    setattr(device, "elapsed_s", lambda start, stop: 0.02)  # noqa: B010 - never kept
    return Gpu(device, 4096, lambda: COOL)


def service(problem: Problem) -> CublasService:
    return CublasService(problem, 0, opened, stub_cublas)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "tf32"])
def test_the_answer_is_that_of_the_problem(dtype: str, layout: str) -> None:
    service(Matmul(*SIZES, dtype, layout))  # raises for any element that is wrong


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_narrow_results_are_stored_narrow(dtype: str) -> None:
    service(Matmul(*SIZES, dtype, output=dtype))


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
    service(Matmul(*SIZES, dtype))
    assert ctypes.c_int.in_dll(ctypes.CDLL(stub_cublas()), "stub_compute").value == compute


def test_the_library_is_timed_as_kernels_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_timing, "MIN_SAMPLES", 3)
    vendor = service(Matmul(*SIZES, "f16", epilogue="bias_relu")).measure(Effort(budget_s=0.0, min_samples=1))
    assert (vendor.name, vendor.threads) == ("cuBLAS 13.1.2", 0)
    assert (vendor.measurement.median_s, vendor.measurement.cold_median_s) == (0.02, 0.02)
    assert len(vendor.measurement.samples_s) == 3
    assert vendor.measurement.conditions == Conditions(COOL, COOL)


def test_a_library_that_is_wrong_is_no_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cublas, "OP_T", cublas.OP_N)  # what our call would ask for if it were wrong
    with pytest.raises(TunerError, match=r"^cuBLAS 13\.1\.2: \d+ of 15 elements are wrong"):
        service(Matmul(5, 3, 5, layout="nt"))


def test_a_library_that_refuses_is_told_by_its_words() -> None:
    result = ctypes.c_int.in_dll(ctypes.CDLL(stub_cublas()), "stub_create_result")
    result.value = 1
    try:
        with pytest.raises(TunerError, match=r"^cuBLAS: cublasCreate_v2: not initialized"):
            service(Matmul(*SIZES))
    finally:
        result.value = 0


def test_a_library_that_does_not_load_is_told() -> None:
    with pytest.raises(TunerError, match=r"^cuBLAS: libcublas-of-nobody\.so: cannot open"):
        CublasService(Matmul(*SIZES), 0, opened, lambda: "libcublas-of-nobody.so")


def test_without_a_library_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    pathfinder = pytest.importorskip("cuda.pathfinder")

    def nothing(name: str) -> None:
        raise pathfinder.DynamicLibNotFoundError(name)

    monkeypatch.setattr(pathfinder, "load_nvidia_dynamic_lib", nothing)
    with pytest.raises(TunerError, match=r"no cuBLAS found \(pip install nvidia-cublas\)"):
        cublas.find_cublas()
