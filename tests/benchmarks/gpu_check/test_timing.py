"""Judging times, on a scripted clock; a program beside cuBLAS, on stand-ins for it and for the driver."""

import numpy as np
import pytest

from benchmarks.gpu_check.device_under_test import CUDA, SIMULATOR, STUB, Bed
from benchmarks.gpu_check.gpu_point import GpuPoint, feasible_set
from benchmarks.gpu_check.stub_driver import StubDriver
from benchmarks.gpu_check.timing import checks, clocks_agree, same, versus
from tests.runtime.cuda.stub_cublas import stub_cublas
from tests.targets.gpu.scripted_device import ScriptedDevice
from tuner.core.errors import CandidateError, TunerError
from tuner.core.interfaces import Effort
from tuner.core.problem import Matmul
from tuner.core.records import Measurement
from tuner.runtime.timing import summarize
from tuner.targets.gpu import event_timing
from tuner.targets.gpu.evaluator import LocalGpu
from tuner.targets.gpu.event_timing import GpuTimer

PROBLEM = Matmul(16, 16, 16)
SAMPLE_S = 0.02  # that everything seems to take
SHORT = Effort(budget_s=0.0, min_samples=1)


def timed(*samples_s: float) -> Measurement:
    return summarize(list(samples_s), 1, np.random.default_rng(0))


def test_without_a_clock_nothing_is_timed() -> None:
    for device in (SIMULATOR, STUB):
        (check,) = checks(Bed(device, "sm_90"))
        assert check.ask().status == "skipped"
    assert len(checks(Bed(CUDA, "sm_90"))) == 6


def test_the_same_code_takes_the_same_time() -> None:
    assert same(timed(1.0, 1.0), timed(1.01, 1.01), 1.0, None).status == "passed"
    outcome = same(timed(1.0, 1.0), timed(1.1, 1.1), 1.0, None)
    assert outcome.status == "failed"
    assert outcome.facts["noise"] == pytest.approx(0.1)


def test_nothing_is_faster_than_the_chip() -> None:
    outcome = same(timed(1.0, 1.0), timed(1.0, 1.0), 3e12, 2e12)
    assert outcome.status == "failed"
    assert outcome.words == "faster than the chip: 3.0 TFLOP/s, documented 2.0"
    assert same(timed(1.0, 1.0), timed(1.0, 1.0), 2e12, 2e12).facts["peak_share"] == 1.0


@pytest.mark.parametrize(("skew", "status"), [(1.0, "passed"), (1.2, "failed"), (0.9, "failed")])
def test_events_must_agree_with_the_host(skew: float, status: str) -> None:
    device = ScriptedDevice()
    timer = GpuTimer(device, 0)
    outcome = clocks_agree(timer, device.work(1e-3), lambda: skew * device.now_s)
    assert outcome.status == status
    assert outcome.facts["ratio"] == pytest.approx(skew)
    assert outcome.facts["events_s"] == pytest.approx(0.2)
    timer.close()
    assert device.alive == set()


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> LocalGpu:
    for name in ("MIN_SAMPLES", "COLD_SAMPLES"):
        monkeypatch.setattr(event_timing, name, 2)
    device = StubDriver().open()
    setattr(device, "elapsed_s", lambda start, stop: SAMPLE_S)  # noqa: B010 - never kept
    return LocalGpu(device, 4096)


def point() -> GpuPoint:
    return GpuPoint(PROBLEM, feasible_set(PROBLEM, "matmul_gpu_naive").candidate(0))


@pytest.mark.mlir
def test_a_program_and_the_library_are_timed_on_the_same_arrays(gpu: LocalGpu) -> None:
    outcome = versus(gpu, PROBLEM, point().program(), stub_cublas, SHORT)
    assert outcome.status == "passed"
    assert outcome.facts["baseline"] == {
        "name": "cuBLAS 13.1.2",
        "median_s": SAMPLE_S,
        "cold_median_s": SAMPLE_S,
    }
    assert outcome.facts["ratio"] == 1.0
    assert outcome.words == "20000.0 us, 0.0 TFLOP/s, cuBLAS 13.1.2 / ours 1.000"


@pytest.mark.mlir
def test_without_the_library_the_program_is_timed_alone(gpu: LocalGpu) -> None:
    def nowhere() -> str:
        raise TunerError("no cuBLAS found")

    outcome = versus(gpu, PROBLEM, point().program(), nowhere, SHORT)
    assert outcome.words.endswith("no cuBLAS found")
    assert "ratio" not in outcome.facts


@pytest.mark.mlir
def test_a_wrong_program_is_not_timed(gpu: LocalGpu) -> None:
    half = GpuPoint(Matmul(16, 16, 8), point().candidate).program()
    with pytest.raises(CandidateError, match="elements are wrong"):
        versus(gpu, PROBLEM, half, stub_cublas)
