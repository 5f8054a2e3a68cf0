import itertools
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.fakes import BEST_X, PROBLEM, FakeTarget, UntimedTarget, bind, candidate, fake_factory, time_of
from tests.forwarding import ForwardingTarget
from tests.tuning.fakes import present
from tuner.core.candidate import TargetName
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import CandidateError, Failure, Stage, TunerError, failing_as_member
from tuner.core.interfaces import Artifact, BoundRecord, Effort, FinalTimes, LoadedLibrary
from tuner.core.problem import Problem
from tuner.core.records import Measurement, Record, Verdict
from tuner.core.runs import Baseline
from tuner.runtime.workers import services
from tuner.runtime.workers.protocol import Reply


def artifact_of(x: int, deed: str = "", at: str = "") -> Artifact:
    return FakeTarget().compile(PROBLEM, bind(candidate(x, deed, at)))


def median_of(measurement: Measurement | Failure | None) -> float | None:
    return measurement.median_s if isinstance(measurement, Measurement) else None


def test_timing_is_announced_once_and_what_takes_its_process_with_it_ends_the_remeasurement() -> None:
    heard: list[str] = []
    service = services.EvaluationService(heard.append, fake_factory())
    with pytest.raises(CandidateError, match="found 2, expected 1"):
        service.evaluate(PROBLEM, artifact_of(3, "wrong", "verify"), Effort(), seed=1)
    nothing = service.remeasure(PROBLEM, services.Group((artifact_of(1, "fail", "load"),)), Effort(), seed=1)
    assert nothing == FinalTimes((Failure(Stage.LOAD, "fails at load"),))
    assert heard == []
    reply = service.evaluate(PROBLEM, artifact_of(3), Effort(), seed=1)
    assert heard == ["timing"]
    assert median_of(reply.value) == time_of(3)
    both = services.Group((artifact_of(3), artifact_of(BEST_X)))
    found = service.remeasure(PROBLEM, both, Effort(), seed=1)
    assert heard == ["timing", "timing"]
    assert [median_of(time) for time in found.times] == [time_of(3), time_of(BEST_X)]

    class LostTarget(FakeTarget):
        def load(self, problem: Problem, artifact: Artifact) -> object:
            raise CandidateError(Stage.RUN, "CUDA_ERROR_ILLEGAL_ADDRESS")

    for target in (LostTarget(), Libraries(CandidateError(Stage.RUN, "CUDA_ERROR_ILLEGAL_ADDRESS"))):
        with pytest.raises(CandidateError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
            together(target)


class Libraries(FakeTarget):
    """Has libraries that take as long as some x; one of them fails to load, others end while timed."""

    baseline_threads = 3

    def __init__(self, refusal: Exception | None = None, ending: str = "") -> None:
        self._refusal, self._ending = refusal, ending
        self.sessions: list[int] = []  # programs timed together

    def load_baselines(self, problem: Problem, rng: np.random.Generator) -> tuple[LoadedLibrary, ...]:
        if self._refusal is not None:
            raise self._refusal
        return (LoadedLibrary("missing", "", failure="no such library"), *(map(self._library, "abc")))

    def _library(self, name: str) -> LoadedLibrary:
        work = self.load(PROBLEM, artifact_of({"a": 5, "b": 6, "c": 4}[name]))
        return LoadedLibrary(name, f"lib{name} 1.0", work, has_ended=lambda: name in self._ending)

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[Measurement, ...]:
        self.sessions.append(len(loaded))
        if len(self.sessions) == 1 and self._ending:
            raise CandidateError(Stage.RUN, "its process has ended")
        return super().measure_together(problem, loaded, effort, rng)


def together(target: FakeTarget, *, has_baseline: bool = True) -> Baseline | None:
    """Times an artifact, next to one that does not load, with a target's libraries; returns the baseline."""
    group = services.Group((artifact_of(1, "fail", "load"), artifact_of(2)), has_baseline=has_baseline)
    found = services.time_together(target, PROBLEM, group, Effort(), np.random.default_rng(0))
    assert [median_of(time) for time in found.times] == [None, time_of(2)]
    return found.baseline


def test_the_fastest_of_several_libraries_is_the_interleaved_baseline_and_all_are_listed() -> None:
    one = present(together(FakeTarget()))
    assert (one.name, one.threads, one.measurement.median_s) == ("FakeBLAS 1.0", 1, time_of(8))
    assert together(Libraries(), has_baseline=False) is None
    best = present(together(Libraries()))
    assert (best.name, best.threads, best.measurement.median_s) == ("libb 1.0", 3, time_of(6))
    listed = [(each.library, each.median_s, each.failure) for each in best.libraries]
    timed = [("b", time_of(6), ""), ("a", time_of(5), ""), ("c", time_of(4), "")]
    assert listed == [*timed, ("missing", None, "no such library")]


WRONG = CandidateError(Stage.VERIFY, "4 elements are wrong")


@pytest.mark.parametrize("refusal", [TunerError("no cuBLAS found"), WRONG])
def test_without_a_baseline_library_that_works_the_others_are_timed(refusal: Exception) -> None:
    assert together(Libraries(refusal)) is None


def test_a_library_whose_process_ends_fails_alone_and_the_others_or_the_kernels_are_timed_anew() -> None:
    target = Libraries(ending="b")
    best = present(together(target))
    assert target.sessions == [4, 3]  # the kernel with three libraries, then with two
    assert best.name == "liba 1.0"
    failed = {each.library: each.failure for each in best.libraries if each.failure}
    assert failed == {"missing": "no such library", "b": "its process has ended"}
    assert together(Libraries(ending="abc")) is None


# What a judge finds of a candidate, and of several that are timed together.


def evaluated(heard: list[str], x: int, *misdeed: str, target: Any = None) -> Reply:
    target = target or FakeTarget()
    artifact = target.compile(PROBLEM, bind(candidate(x, *misdeed)))
    rng, clock = np.random.default_rng(0), partial(next, itertools.count(1.0))
    return services.evaluate(target, PROBLEM, artifact, Effort(), rng, lambda: heard.append("quiet"), clock)


def test_a_correct_artifact_has_verdict_stages_and_a_time_on_a_quiet_machine_where_there_is_a_clock() -> None:
    heard: list[str] = []
    reply = evaluated(heard, 5, target=UntimedTarget())
    verdict = Verdict(0.25, 64, ("1 of 1 blocks",))
    assert reply == Reply(verdict, stage_s=(("load", 1.0), ("verify", 1.0)))
    assert heard == []
    reply = evaluated(heard, 3)
    assert reply.verdict == Verdict(0.25, 64)
    assert median_of(reply.value) == time_of(3)
    assert reply.stage_s == (("load", 1.0), ("verify", 1.0), ("measure", 1.0))
    assert heard == ["quiet"]


@pytest.mark.parametrize(
    ("deed", "at", "failure", "is_timed"),
    [
        ("fail", "load", Failure(Stage.LOAD, "fails at load"), False),
        ("wrong", "verify", Failure(Stage.VERIFY, "element (0, 1): found 2, expected 1"), False),
        ("fail", "measure", Failure(Stage.MEASURE, "fails at measure"), True),
    ],
)
def test_what_is_wrong_is_never_timed(deed: str, at: str, failure: Failure, is_timed: bool) -> None:
    heard: list[str] = []
    with pytest.raises(CandidateError, match=re.escape(failure.reason)) as caught:
        evaluated(heard, 3, deed, at)
    assert caught.value.failure == failure
    assert heard == ["quiet"] * is_timed


def test_each_piece_of_work_has_its_seed_in_whatever_process() -> None:
    seeds = [services.work_seed(seed, number) for seed in (0, 1) for number in (-2, -1, 0, 1, 2)]
    assert len(set(seeds)) == len(seeds)
    assert seeds == [services.work_seed(seed, number) for seed in (0, 1) for number in (-2, -1, 0, 1, 2)]


A, B, C = (Artifact(KernelCode.of_host(code), code) for code in "ABC")
SLOW = Measurement((1.0,), 1, 1.0, (1.0, 1.0))
BROKEN = Failure(Stage.RUN, "killed by SIGKILL")
FAILED = partial(FinalTimes, reason=BROKEN.reason)
Artifacts = tuple[Artifact | None, ...]
BASELINE = Baseline("cuBLAS 13.1.2", 0, SLOW)


@pytest.mark.parametrize(
    ("artifacts", "breaks", "expected", "groups"),  # in their order, + with the baseline
    [
        ((None, A, None), lambda _: False, FinalTimes((None, SLOW, None), BASELINE), "A+"),
        ((A, None, B), lambda _: False, FinalTimes((SLOW, None, SLOW), BASELINE), "AB+"),
        ((A, A), lambda _: False, FinalTimes((SLOW, SLOW), BASELINE), "AA+"),
        ((None, None), lambda _: False, FinalTimes((None, None), reason="nothing compiles any more"), ""),
        # the one that breaks the others is left out, the baseline library, and those that only break together
        ((A, B, C), lambda group: B in group.artifacts, FAILED((SLOW, BROKEN, SLOW)), "ABC+ A B C AC"),
        ((A, B), lambda group: group.has_baseline, FAILED((SLOW, SLOW)), "AB+ A B AB"),
        ((A, B), lambda group: len(group.artifacts) > 1, FAILED((None, None)), "AB+ A B AB"),
    ],
)
def test_all_are_timed_together_in_one_call_but_those_that_break_the_others(
    artifacts: Artifacts, breaks: Callable[[services.Group], bool], expected: FinalTimes, groups: str
) -> None:
    asked = []

    def together(group: services.Group) -> FinalTimes | Failure:
        asked.append("".join(each.code.text for each in group.artifacts) + "+" * group.has_baseline)
        if breaks(group):
            return BROKEN
        return FinalTimes((SLOW,) * len(group.artifacts), BASELINE if group.has_baseline else None)

    assert services.time_finals(artifacts, together) == expected
    assert asked == groups.split()


WRONG_CODE = Failure(Stage.VERIFY, "4 elements are wrong")
FAULTY = Failure(Stage.RUN, "killed by SIGSEGV, as by an access outside of its operands")


@pytest.mark.parametrize("defect", [WRONG_CODE, FAULTY])
def test_nothing_is_timed_together_with_code_that_is_wrong_or_faults(defect: Failure) -> None:
    """Which of several it is shows where each runs alone; the caller goes on without it."""
    asked = []

    def together(group: services.Group) -> FinalTimes | Failure:
        asked.append(group.artifacts)
        return defect if B in group.artifacts else FinalTimes((SLOW,) * len(group.artifacts))

    found = services.time_finals((A, B, C), together)
    assert found == FinalTimes((None, defect, None), reason=defect.reason)
    assert asked == [(A, B, C), (A,), (B,), (C,)]


def test_a_failure_that_names_its_kernel_is_that_of_its_trial_and_costs_its_process() -> None:
    class Picky(FakeTarget):
        def measure_together(self, problem: Problem, loaded: tuple[object, ...], *_: Any) -> Any:
            with failing_as_member(1):
                raise CandidateError(Stage.VERIFY, "4 elements are wrong")

    group = services.Group((artifact_of(1, "fail", "load"), artifact_of(2), artifact_of(3)))
    found = services.time_together(Picky(), PROBLEM, group, Effort(), np.random.default_rng(0))
    unloaded = Failure(Stage.LOAD, "fails at load")
    assert found == FinalTimes((unloaded, None, WRONG_CODE), reason="4 elements are wrong")
    assert services.is_of_a_broken_process(found)
    assert not services.is_of_a_broken_process(FinalTimes((unloaded, SLOW)))


class NotingEffort(ForwardingTarget):
    def __init__(self) -> None:
        super().__init__(FakeTarget(), FakeTarget())
        self.efforts: list[Effort] = []

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[Measurement, ...]:
        self.efforts.append(effort)
        return self._evaluator.measure_together(problem, loaded, effort, rng)


def test_compiling_again_and_loading_count_for_the_time_of_what_is_timed_together() -> None:
    target = NotingEffort()
    script = bind(candidate(7))
    seconds = itertools.count()  # one passes between two looks

    def timed(
        group: services.Group, effort: Effort, seed: int, _slowest_s: float | None
    ) -> FinalTimes | Failure:
        rng = np.random.default_rng(seed)
        clock = partial(next, seconds)
        return services.time_together(target, PROBLEM, group, effort, rng, clock=clock)

    rounds = services.RemeasurementRounds(
        0, lambda scripts: [target.compile(PROBLEM, each) for each in scripts], timed, partial(next, seconds)
    )
    trial = BoundRecord(Record(PROBLEM, candidate(7), TargetName("fake"), Failure(Stage.RUN, "x")), script)
    rounds.times((trial,), Effort(within_s=10.0))
    rounds.times((trial,), Effort())
    assert [effort.within_s for effort in target.efforts] == [10.0 - 1 - 1, None]
