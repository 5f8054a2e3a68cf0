"""Kernels that cheat, through the judge and wherever a timing ends: none gets a time, right ones do."""

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tests.targets.cpu.dishonest_kernels import KERNELS, dishonest_code
from tuner.core.errors import CandidateError, Stage
from tuner.core.interfaces import Artifact, Effort
from tuner.core.problem import Matmul, Problem
from tuner.core.records import Measurement
from tuner.payload.cpu import partition
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.runtime.workers.services import Evaluation, evaluate
from tuner.targets.arrays import ProblemArrays
from tuner.targets.cpu import evaluator
from tuner.targets.cpu.evaluator import CpuEvaluator, LoadedKernel
from tuner.targets.cpu.timing_checks import TimingChecks

pytestmark = pytest.mark.mlir

SMALL = Matmul(4, 16, 8)  # many calls a sample
LARGE = Matmul(192, 192, 192)  # one call a sample
PANELS = partition(SMALL, 1, "none", 1)
EFFORT = Effort(budget_s=0.02)
# Right in the first calls, or only where inputs change within a sample: a large problem has too few calls.
OF_MANY_CALLS = ("lazy_after_20", "lazy_at_random", "packs_b_once", "wrong_from_15")
ELSEWHERE = ("honest", "small_is_zero", "starts_a_process")
CHEATS = [name for name in KERNELS if name not in ELSEWHERE]


def evaluated(name: str, problem: Problem, seed: int = 0) -> Evaluation:
    artifact = Artifact(dishonest_code(name, problem), name, partition(problem, 1, "none", 1))
    return evaluate(CpuEvaluator(1), problem, artifact, EFFORT, np.random.default_rng(seed))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", CHEATS)
def test_a_kernel_that_cheats_gets_no_time(name: str) -> None:
    stage = Stage.RUN if name == "starts_a_thread" else Stage.VERIFY
    reason = r"elements are wrong|left an element of C unwritten in \d+ of \d+ calls|started 1 threads"
    with pytest.raises(CandidateError, match=reason) as caught:
        evaluated(name, SMALL)
    assert caught.value.stage == stage


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", [name for name in CHEATS if name not in OF_MANY_CALLS])
def test_nor_does_it_where_a_sample_is_one_call(name: str) -> None:
    with pytest.raises(CandidateError, match=r"elements are wrong|unwritten in|started 1 threads"):
        evaluated(name, LARGE)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", CHEATS)
def test_nor_does_it_where_caches_are_cold(name: str) -> None:
    with pytest.raises(CandidateError, match=r"elements are wrong|unwritten in|started 1 threads"):
        evaluated(name, replace(SMALL, cache="cold"))


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    "problem", [SMALL, LARGE, replace(SMALL, cache="cold")], ids=["small", "large", "cold"]
)
def test_an_honest_kernel_does(problem: Problem) -> None:
    measurement = evaluated("honest", problem).measurement
    assert measurement is not None
    assert measurement.median_s > 0


def loaded_pair(name: str) -> tuple[CpuEvaluator, tuple[object, ...]]:
    target = CpuEvaluator(1)
    kernels = (Artifact(dishonest_code(each, SMALL), each, PANELS) for each in (name, "honest"))
    return target, tuple(target.load(SMALL, kernel) for kernel in kernels)


@pytest.mark.slow
def test_a_top_trial_that_reads_small_numbers_as_zeros_is_found_out() -> None:
    assert evaluated("small_is_zero", SMALL).measurement is not None  # usual draws have none
    target, loaded = loaded_pair("small_is_zero")
    with pytest.raises(CandidateError, match="elements looked at are wrong") as caught:
        target.measure_together(SMALL, loaded, EFFORT, np.random.default_rng(0))
    assert caught.value.stage == Stage.VERIFY


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", ["filled_is_done", "lazy_after_20", "wrong_each_7th", "packs_b_once"])
def test_a_top_trial_that_cheats_gets_no_time(name: str) -> None:
    target, loaded = loaded_pair(name)
    with pytest.raises(CandidateError, match=r"elements (looked at )?are wrong|unwritten in|NaN or infinite"):
        target.measure_together(SMALL, loaded, EFFORT, np.random.default_rng(0))


def test_honest_top_trials_do() -> None:
    target, loaded = loaded_pair("honest")
    assert len(target.measure_together(SMALL, loaded, EFFORT, np.random.default_rng(0))) == 2


PROBLEM = Matmul(5, 16, 8)


def watched(name: str, problem: Problem = PROBLEM) -> TimingChecks:
    """Times a kernel by a clock that goes on by a second with each look."""
    artifact = Artifact(dishonest_code(name, problem), name, partition(problem, 1, "none", 1))
    kernel = CpuEvaluator(1).load(problem, artifact)
    assert isinstance(kernel, LoadedKernel)
    rng = np.random.default_rng(0)
    arrays = ProblemArrays(problem, rng)
    looks = [0.0]

    def clock() -> float:
        looks.append(looks[-1] + 1.0)
        return looks[-1]

    return TimingChecks(ThreadTeam(1), kernel.calls(problem, arrays.operands), arrays, rng, clock)


def test_a_sample_is_the_time_of_its_calls_and_of_nothing_next_to_it() -> None:
    take = watched("honest")
    assert [take(1) for _ in range(30)] == [1.0] * 30


def test_the_number_of_calls_is_not_foreseen() -> None:
    take = watched("honest")
    assert len({take(1000) for _ in range(5)}) > 1


def test_a_kernel_that_leaves_c_as_it_is_is_seen_in_any_call() -> None:
    take = watched("filled_is_done")
    with pytest.raises(
        CandidateError, match=r"^left an element of C unwritten in \d+ of \d+ calls$"
    ) as caught:
        take(1000)
    assert caught.value.stage == Stage.VERIFY


def test_a_result_that_is_wrong_after_many_samples_is_seen() -> None:
    take = watched("wrong_from_15")
    for _ in range(5):
        take(1)
    with pytest.raises(CandidateError, match=r"^1 of 80 elements are wrong"):
        take(20)


CALIBRATING = 3  # calls before the first sample: one that leads, two that are looked at
SECOND = 1.0  # that every sample seems to take
ENDS = {
    "stopped at 1": (Effort(stop_above_s=SECOND / 3), 1),
    "stopped at 3": (Effort(stop_above_s=SECOND * 0.9), 3),
    "out of time at once": (Effort(budget_s=0.0, min_samples=1), 1),
    "least samples": (Effort(budget_s=0.0, min_samples=5), 5),
    "most samples": (Effort(budget_s=99.0, max_samples=17), 17),
    "out of time at 18": (Effort(budget_s=17.5, min_samples=1), 18),
}


def timed(name: str, end: str, monkeypatch: pytest.MonkeyPatch, seed: int = 0) -> Measurement:
    """Times a kernel, then verifies it on the same arrays."""
    ticks = partial(next, itertools.count(0.0, SECOND))
    monkeypatch.setattr(evaluator, "TimingChecks", partial(TimingChecks, clock=ticks))
    rng, target = np.random.default_rng(seed), CpuEvaluator(1)
    loaded = target.load(
        PROBLEM, Artifact(dishonest_code(name, PROBLEM), name, partition(PROBLEM, 1, "none", 1))
    )
    found = target.measure(PROBLEM, loaded, ENDS[end][0], rng)
    if name == "honest":
        target.verify(PROBLEM, loaded, rng)
    return found


@pytest.mark.drawn(2)
@pytest.mark.parametrize("end", ENDS)
def test_a_right_kernel_is_timed_wherever_the_timing_ends(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = timed("honest", end, monkeypatch)
    assert len(found.samples_s) == ENDS[end][1]
    assert found.is_complete == (not end.startswith("stopped"))


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_a_kernel_that_has_grown_lazy_by_then_gets_no_time(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, limit in (("lazy_after_2", 2), ("lazy_after_20", 20)):
        if CALIBRATING + ENDS[end][1] <= limit:  # each of its calls was a right one
            assert timed(name, end, monkeypatch).samples_s
            continue
        with pytest.raises(CandidateError, match=r"elements are wrong|unwritten in 1 of 1 calls") as refused:
            timed(name, end, monkeypatch)
        assert refused.value.stage is Stage.VERIFY
