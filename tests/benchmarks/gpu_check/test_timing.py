"""Times on a scripted clock, next to cuBLAS on stand-ins; predictions and times; runs that are tuned."""

import dataclasses
import math

import numpy as np
import pytest

from benchmarks.gpu_check import ranking, timing, tuning
from benchmarks.gpu_check.checks import passed
from benchmarks.gpu_check.device_under_test import CUDA, SIMULATOR, STUB, Bed
from benchmarks.gpu_check.ranking import LEAST_POINTS, PredictedTime, compared_pairs, drawn_points
from benchmarks.gpu_check.timing import clocks_agree, same, timed_after, versus
from benchmarks.gpu_check.tuning import LEAST_SEARCH_S, PROBLEMS, joined, recompiled, share_s
from tests.gpu.driver.stub_cublas import stub_cublas
from tests.gpu.target.scripted_device import ScriptedDevice
from tests.support.gpu_point import GpuPoint, feasible_set
from tests.support.stub_driver import StubDriver
from tests.tuning.fakes import backends, settings
from tuner.core.errors import CandidateError, TunerError
from tuner.core.interfaces import Effort
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.records import Measurement
from tuner.db.store import Store
from tuner.gpu.target import event_timing
from tuner.gpu.target.evaluator import LocalGpu
from tuner.gpu.target.event_timing import GpuTimer
from tuner.runtime.timing import summarize
from tuner.tuning.events import Interruption
from tuner.tuning.run import begin

PROBLEM = Matmul(16, 16, 16)
SAMPLE_S = 0.02  # that everything seems to take
SHORT = Effort(budget_s=0.0, min_samples=1)


def timed(*samples_s: float) -> Measurement:
    return summarize(list(samples_s), 1, np.random.default_rng(0))


def test_without_a_clock_nothing_is_timed_and_the_same_code_takes_the_same_time() -> None:
    for part, devices in ((timing, (SIMULATOR, STUB)), (ranking, (SIMULATOR,)), (tuning, (STUB,))):
        for device in devices:
            (check,) = part.checks(Bed(device, "sm_90"))
            assert check.ask().status == "skipped"
    assert len(timing.checks(Bed(CUDA, "sm_90"))) == 7
    one = timed(1.0, 1.0)
    assert same(one, timed(1.01, 1.01), 1.0, None).status == "passed"
    outcome = same(one, timed(1.1, 1.1), 1.0, None)
    assert (outcome.status, outcome.facts["noise"]) == ("failed", pytest.approx(0.1))
    outcome = same(one, one, 3e12, 2e12)
    assert (outcome.status, outcome.words) == ("failed", "faster than the chip: 3.0 TFLOP/s, documented 2.0")
    assert same(one, one, 2e12, 2e12).facts["peak_share"] == 1.0


@pytest.mark.parametrize(("skew", "status"), [(1.0, "passed"), (1.2, "failed"), (0.9, "failed")])
def test_events_must_agree_with_the_host(skew: float, status: str) -> None:
    device = ScriptedDevice()
    timer = GpuTimer(device, 0)
    assert timed_after(timer, device.work(1e-3), 0.0, 2) == pytest.approx(1e-3)
    outcome = clocks_agree(timer, device.work(1e-3), lambda: skew * device.now_s)
    assert outcome.status == status
    assert [outcome.facts[name] for name in ("ratio", "events_s")] == pytest.approx([skew, 0.2])
    timer.close()
    assert device.alive == set()


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> LocalGpu:
    for name in ("MIN_SAMPLES", "COLD_SAMPLES"):
        monkeypatch.setattr(event_timing, name, 2)
    device = StubDriver().open()
    setattr(device, "elapsed_s", lambda start, stop: SAMPLE_S)  # noqa: B010 - never kept
    return LocalGpu(device, 4096)


def point(problem: Problem = PROBLEM) -> GpuPoint:
    return GpuPoint(problem, feasible_set(problem, "matmul_gpu_naive").candidate(0))


@pytest.mark.mlir
def test_a_program_is_timed_with_the_library_alone_without_it_and_a_wrong_one_not(gpu: LocalGpu) -> None:
    outcome = versus(gpu, PROBLEM, point().program(), stub_cublas, SHORT)
    times = {"median_s": SAMPLE_S, "cold_median_s": SAMPLE_S}
    assert outcome.facts["baseline"] == {"name": "cuBLAS 13.1.2", **times}
    assert (outcome.status, outcome.facts["ratio"]) == ("passed", 1.0)
    assert outcome.words == "20000.0 us, 0.0 TFLOP/s, cuBLAS 13.1.2 / ours 1.000"

    def nowhere() -> str:
        raise TunerError("no cuBLAS found")

    outcome = versus(gpu, PROBLEM, point().program(), nowhere, SHORT)
    assert outcome.words.endswith("no cuBLAS found")
    assert "ratio" not in outcome.facts
    with pytest.raises(CandidateError, match="elements are wrong"):
        versus(gpu, PROBLEM, GpuPoint(Matmul(16, 16, 8), point().candidate).program(), stub_cublas)


def pairs(count: int, sign: float = 1.0) -> list[PredictedTime]:
    return [PredictedTime(sign * number, math.nan, 1e-3 * (number + 1)) for number in range(count)]


def test_the_best_of_a_run_is_reported_where_models_order_as_the_times_do(store: Store) -> None:
    outcome, other = compared_pairs(pairs(40)), compared_pairs(pairs(40, sign=-1.0))
    assert (outcome.status, len(outcome.facts["pairs"])) == ("passed", 40)
    assert "40 points; by_knobs: rank correlation 1.00, regret 0% after 1," in outcome.words
    assert outcome.words.endswith("accepted; by_machine_code: none")
    assert outcome.facts["by_knobs"]["is_accepted"]
    assert (other.status, other.facts["by_knobs"]["is_accepted"]) == ("passed", False)
    assert "not accepted" in other.words
    few = compared_pairs(pairs(LEAST_POINTS - 1))
    assert (few.status, few.words) == ("failed", "found 7 points with times, allowed 8 or more")
    tuned = begin(settings(trials=4), backends(), store, Interruption())
    outcome = joined(tuned, passed("1 us", median_s=1e-6))
    assert outcome.words.startswith("1 us; 4 tried, 4 right, 0 failed; ")
    facts = outcome.facts
    assert (facts["strategy"], facts["median_s"], facts["measured"]) == ("fake", 1e-6, 4)
    assert set(facts["knobs"]) == {"x", "comment"}
    assert facts["baseline_of_run_s"] is not None
    without = dataclasses.replace(tuned, run=dataclasses.replace(tuned.run, baseline=None))
    assert joined(without, passed()).facts["baseline_of_run_s"] is None


@pytest.mark.slow
@pytest.mark.mlir
def test_on_the_simulator_candidates_are_verified_and_points_predicted_by_their_knobs() -> None:
    drawn = drawn_points(Bed(SIMULATOR, "sm_80"), "matmul_gpu_simt", Matmul(256, 256, 256))
    first, second = next(drawn), next(drawn)
    assert first.point.candidate != second.point.candidate
    assert first.by_knobs > 0
    assert math.isnan(first.by_machine_code)  # PTX has none
    (check,) = tuning.checks(Bed(SIMULATOR, "sm_90"))
    outcome = check.ask()
    assert (outcome.status, outcome.facts["verified"]) == ("passed", 2)


def test_on_a_gpu_the_five_problems_are_tuned_each_for_its_part_of_what_is_left() -> None:
    names = [check.name for check in tuning.checks(Bed(CUDA, "sm_90", limit_s=100.0))]
    assert names == [problem.key for problem in PROBLEMS]
    assert {problem.dtype for problem in PROBLEMS[:4]} == {"f16", "bf16", "tf32", "f32"}
    assert PROBLEMS[4].sizes == (5376, 2048, 5376)
    assert share_s(110.0, 10.0, 5) == share_s(110.0, 90.0, 1) == pytest.approx(10.0)
    assert share_s(110.0, 200.0, 2) == LEAST_SEARCH_S


@pytest.mark.mlir
def test_the_best_script_is_compiled_again() -> None:
    best = point(Matmul(8, 33, 4))
    assert recompiled("sm_90", best.problem, best.script()).launches == best.program().launches
