"""Timing on a GPU, against a device whose clock moves only as far as its work says."""

from itertools import pairwise

import pytest

from tests.gpu.target.scripted_device import ScriptedDevice
from tests.targets.evaluation import rng
from tuner.core.errors import DeviceError
from tuner.core.interfaces import Effort
from tuner.gpu.target import event_timing
from tuner.gpu.target.event_timing import COLD_SAMPLES, MIN_SAMPLES, GpuTimer
from tuner.runtime.timing import SAMPLE_S

CACHE_BYTES = 50 << 20
EFFORT = Effort()


@pytest.fixture
def device() -> ScriptedDevice:
    return ScriptedDevice()


@pytest.fixture
def timer(device: ScriptedDevice) -> GpuTimer:
    return GpuTimer(device, CACHE_BYTES)


@pytest.mark.parametrize("call_s", [2e-6, 35e-6, 4e-4, 3e-3, 0.2])
def test_times_are_those_of_the_work(device: ScriptedDevice, timer: GpuTimer, call_s: float) -> None:
    found = timer.measure(device.work(call_s, cold_s=5e-6), EFFORT, rng())
    assert (found.median_s, found.cold_median_s) == pytest.approx((call_s, call_s + 5e-6), rel=1e-6)
    assert found.inner_calls * call_s >= SAMPLE_S
    assert len(found.samples_s) >= MIN_SAMPLES
    assert found.is_complete


def test_samples_go_on_until_the_budget_is_spent(device: ScriptedDevice, timer: GpuTimer) -> None:
    long = timer.measure(device.work(1e-3), Effort(budget_s=0.1), rng())
    assert len(long.samples_s) == 50  # and as many that lead them
    assert len(timer.measure(device.work(1e-3), Effort(budget_s=1.0, max_samples=30), rng()).samples_s) == 30


def test_an_early_stopped_work_is_never_run_cold(device: ScriptedDevice, timer: GpuTimer) -> None:
    found = timer.measure(device.work(0.05), Effort(stop_above_s=0.02), rng())
    assert not found.is_complete
    assert len(found.samples_s) == 1
    assert found.cold_median_s is None
    assert device.runs <= 5
    assert not any(line.startswith("fill") for line in device.log)


def test_a_flush_fills_twice_the_cache_or_a_large_one(device: ScriptedDevice, timer: GpuTimer) -> None:
    timer.measure(device.work(1e-3), EFFORT, rng())
    assert device.log.count(f"allocate {2 * CACHE_BYTES}") == 1
    assert device.log.count(f"fill {2 * CACHE_BYTES}") == COLD_SAMPLES
    GpuTimer(device, 0).cold_s(device.work(1e-3))
    assert f"fill {2 * event_timing.UNKNOWN_CACHE_BYTES}" in device.log


def test_short_samples_follow_equal_ones_long_ones_run_once(device: ScriptedDevice, timer: GpuTimer) -> None:
    found = timer.measure(device.work(10e-6), EFFORT, rng())
    assert device.log.count(f"launch {found.inner_calls}") >= 2 * len(found.samples_s)
    device.log.clear()
    found = timer.measure(device.work(0.02), EFFORT, rng())
    warm_ups = 1 + 1 + 2  # as the graph is uploaded, to raise the clocks, to calibrate
    assert device.log.count("launch 1") == warm_ups + len(found.samples_s)


def test_a_gpu_is_warmed_up_for_a_while_first() -> None:
    calls: list[int] = []

    def take(inner: int) -> float:
        calls.append(inner)
        return 1e-3

    event_timing.warm_up(take)
    assert calls == [1] * 10


def test_top_trials_are_interleaved_and_keep_their_own_times(device: ScriptedDevice, timer: GpuTimer) -> None:
    works = tuple(device.work(call_s, cold_s=1e-5) for call_s in (1e-3, 2e-3, 20e-6))
    found = timer.measure_together(works, Effort(budget_s=0.02, min_samples=5), rng())
    assert [each.median_s for each in found] == pytest.approx([1e-3, 2e-3, 20e-6], rel=1e-6)
    assert [each.cold_median_s for each in found] == pytest.approx([1.01e-3, 2.01e-3, 30e-6], rel=1e-6)
    assert {len(each.samples_s) for each in found} == {MIN_SAMPLES}


def test_between_rounds_all_have_run_and_nothing_is_timed(device: ScriptedDevice, timer: GpuTimer) -> None:
    runs: list[int] = []

    def look() -> None:
        runs.append(device.runs)
        device.now_s += 1.0  # would show in any time that it fell into

    found = timer.measure_together((device.work(0.02), device.work(0.03)), Effort(budget_s=0.0), rng(), look)
    assert [each.median_s for each in found] == pytest.approx([0.02, 0.03])
    assert [max(each.samples_s) for each in found] == pytest.approx([0.02, 0.03])
    assert len(runs) == MIN_SAMPLES + COLD_SAMPLES
    assert {after - before for before, after in pairwise(runs)} == {2}


def test_drift_hits_all_top_trials_alike(device: ScriptedDevice, timer: GpuTimer) -> None:
    works = (device.work(0.02, drift_s=1e-4), device.work(0.02, drift_s=1e-4))
    one, other = timer.measure_together(works, EFFORT, rng())
    assert one.median_s == pytest.approx(other.median_s, rel=0.02)
    apart = [timer.measure(work, EFFORT, rng()).median_s for work in works]
    assert apart[1] > 1.1 * apart[0]


def test_everything_is_given_back(device: ScriptedDevice, timer: GpuTimer) -> None:
    timer.measure(device.work(1e-5), EFFORT, rng())
    timer.measure_together((device.work(1e-3), device.work(2e-3)), EFFORT, rng())
    timer.close()
    assert device.alive == set()


@pytest.mark.parametrize("fail_after", [0, 1, 7, 30])
def test_a_work_that_fails_leaves_no_graph(device: ScriptedDevice, timer: GpuTimer, fail_after: int) -> None:
    before = set(device.alive)
    device.fail_after = fail_after
    with pytest.raises(DeviceError, match="CUDA_ERROR_LAUNCH_FAILED"):
        timer.measure(device.work(2e-3), EFFORT, rng())
    assert device.alive - before <= {max(device.alive)}  # at most the memory to flush with, kept for the next


def test_a_work_that_cannot_be_captured_ends_the_capture(device: ScriptedDevice, timer: GpuTimer) -> None:
    def refused(stream: int) -> None:
        raise DeviceError("cuLaunchKernel: CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_INVALID_VALUE")

    before = set(device.alive)
    with pytest.raises(DeviceError, match="CUDA_ERROR_INVALID_VALUE"):
        timer.measure(refused, EFFORT, rng())
    assert device.alive == before
    assert timer.measure(device.work(1e-3), EFFORT, rng()).is_complete


def test_a_device_without_a_clock_gives_no_time(device: ScriptedDevice, timer: GpuTimer) -> None:
    with pytest.raises(DeviceError, match=r"scripted: 0\.0 s between two events: it has no clock"):
        timer.measure(device.work(0.0), EFFORT, rng())
