import numpy as np
import pytest

from tests.fakes import BEST_X, PROBLEM, FakeTarget, UntimedTarget, bind, candidate, fake_factory, time_of
from tuner.core.errors import CandidateError, Failure, Stage, TunerError
from tuner.core.interfaces import AbstractBaselineSource, Artifact, Effort, FinalTimes, LoadedLibrary
from tuner.core.problem import Problem
from tuner.core.records import Measurement, Verdict
from tuner.core.runs import Baseline
from tuner.runtime.workers.services import (
    Evaluation,
    EvaluationService,
    Group,
    evaluate,
    time_finals,
    time_together,
    work_seed,
)


def artifact_of(x: int, deed: str = "", at: str = "") -> Artifact:
    return FakeTarget().compile(PROBLEM, bind(candidate(x, deed, at)))


def test_timing_is_announced_once_for_a_candidate_and_once_for_the_remeasurement() -> None:
    heard: list[str] = []
    service = EvaluationService(heard.append, fake_factory())
    evaluation = service.evaluate(PROBLEM, artifact_of(3), Effort(), seed=1)
    assert heard == ["timing"]
    assert evaluation.measurement is not None
    assert evaluation.measurement.median_s == time_of(3)
    found = service.remeasure(PROBLEM, Group((artifact_of(3), artifact_of(BEST_X))), Effort(), seed=1)
    assert heard == ["timing", "timing"]
    assert [time.median_s for time in found.times if time is not None] == [time_of(3), time_of(BEST_X)]


def test_a_wrong_candidate_is_never_announced() -> None:
    heard: list[str] = []
    service = EvaluationService(heard.append, fake_factory())
    with pytest.raises(CandidateError, match="found 2, expected 1"):
        service.evaluate(PROBLEM, artifact_of(3, "wrong", "verify"), Effort(), seed=1)
    assert heard == []


def test_times_keep_their_places_next_to_what_does_not_load() -> None:
    artifacts = (artifact_of(1, "fail", "load"), artifact_of(2), artifact_of(3, "fail", "load"))
    found = time_together(FakeTarget(), PROBLEM, Group(artifacts), Effort(), np.random.default_rng(0))
    assert [None if time is None else time.median_s for time in found.times] == [None, time_of(2), None]


def test_what_takes_its_process_with_it_while_it_loads_ends_the_remeasurement() -> None:
    class LostTarget(FakeTarget):
        def load(self, problem: Problem, artifact: Artifact) -> object:
            raise CandidateError(Stage.RUN, "CUDA_ERROR_ILLEGAL_ADDRESS")

    with pytest.raises(CandidateError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        time_together(LostTarget(), PROBLEM, Group((artifact_of(2),)), Effort(), np.random.default_rng(0))


class LibraryTarget(FakeTarget, AbstractBaselineSource):
    """Has a library that takes as long as x = 5, or none."""

    baseline_threads = 3

    def __init__(self, refusal: Exception | None = None) -> None:
        self._refusal = refusal

    def load_baselines(self, problem: Problem, rng: np.random.Generator) -> tuple[LoadedLibrary, ...]:
        if self._refusal is not None:
            raise self._refusal
        return (LoadedLibrary("fake", "FakeBLAS 1.0", self.load(problem, artifact_of(5))),)


def together(refusal: Exception | None, *, has_baseline: bool = True) -> FinalTimes:
    artifacts = (artifact_of(1, "fail", "load"), artifact_of(2))
    group = Group(artifacts, has_baseline=has_baseline)
    return time_together(LibraryTarget(refusal), PROBLEM, group, Effort(), np.random.default_rng(0))


def median_of(measurement: Measurement | None) -> float | None:
    return None if measurement is None else measurement.median_s


def test_the_baseline_library_are_interleaved_and_has_a_time_of_its_own() -> None:
    found = together(None)
    assert [median_of(time) for time in found.times] == [None, time_of(2)]
    assert found.baseline is not None
    assert (found.baseline.name, found.baseline.threads) == ("FakeBLAS 1.0", 3)
    assert found.baseline.measurement.median_s == time_of(5)


def test_the_baseline_library_does_not_are_interleaved_where_that_is_not_wanted() -> None:
    assert together(None, has_baseline=False).baseline is None


@pytest.mark.parametrize(
    "refusal", [TunerError("no cuBLAS found"), CandidateError(Stage.VERIFY, "4 elements are wrong")]
)
def test_without_a_baseline_library_that_works_the_others_are_timed(refusal: Exception) -> None:
    found = together(refusal)
    assert [median_of(time) for time in found.times] == [None, time_of(2)]
    assert found.baseline is None


def test_a_baseline_library_that_takes_its_process_with_it_ends_the_remeasurement() -> None:
    with pytest.raises(CandidateError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        together(CandidateError(Stage.RUN, "CUDA_ERROR_ILLEGAL_ADDRESS"))


class SeveralLibraries(FakeTarget, AbstractBaselineSource):
    """Has libraries that take as long as some x; one of them fails to load, others end while timed."""

    baseline_threads = 1

    def __init__(self, ending: tuple[str, ...] = ()) -> None:
        self._ending = ending
        self.sessions: list[int] = []  # programs timed together

    def load_baselines(self, problem: Problem, rng: np.random.Generator) -> tuple[LoadedLibrary, ...]:
        return (LoadedLibrary("missing", "", failure="no such library"), *(map(self._library, "abc")))

    def _library(self, name: str) -> LoadedLibrary:
        work = self.load(PROBLEM, artifact_of({"a": 5, "b": 6, "c": 4}[name]))
        return LoadedLibrary(name, f"lib{name} 1.0", work, has_ended=lambda: name in self._ending)

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[Measurement, ...]:
        self.sessions.append(len(loaded))
        if len(self.sessions) == 1 and self._ending:
            raise CandidateError(Stage.RUN, "baseline: its process has ended")
        return super().measure_together(problem, loaded, effort, rng)


def with_several(target: SeveralLibraries) -> FinalTimes:
    group = Group((artifact_of(2),), has_baseline=True)
    return time_together(target, PROBLEM, group, Effort(), np.random.default_rng(0))


def test_the_fastest_of_several_libraries_is_the_baseline_and_all_are_listed() -> None:
    found = with_several(SeveralLibraries())
    assert [median_of(time) for time in found.times] == [time_of(2)]
    assert found.baseline is not None
    assert (found.baseline.name, found.baseline.measurement.median_s) == ("libb 1.0", time_of(6))
    assert [(each.library, each.median_s, each.failure) for each in found.baseline.libraries] == [
        ("b", time_of(6), ""),
        ("a", time_of(5), ""),
        ("c", time_of(4), ""),
        ("missing", None, "no such library"),
    ]


def test_a_library_whose_process_ends_fails_alone_and_the_others_are_timed_anew() -> None:
    target = SeveralLibraries(ending=("b",))
    found = with_several(target)
    assert target.sessions == [4, 3]  # the kernel with three libraries, then with two
    assert [median_of(time) for time in found.times] == [time_of(2)]
    assert found.baseline is not None
    assert found.baseline.name == "liba 1.0"
    failed = {each.library: each.failure for each in found.baseline.libraries if each.failure}
    assert failed == {"missing": "no such library", "b": "baseline: its process has ended"}


def test_kernels_are_timed_where_every_library_has_ended() -> None:
    found = with_several(SeveralLibraries(ending=("a", "b", "c")))
    assert [median_of(time) for time in found.times] == [time_of(2)]
    assert found.baseline is None


def test_nothing_is_announced_when_nothing_loads() -> None:
    heard: list[str] = []
    service = EvaluationService(heard.append, fake_factory())
    found = service.remeasure(PROBLEM, Group((artifact_of(1, "fail", "load"),)), Effort(), seed=1)
    assert found == FinalTimes((None,))
    assert heard == []


# What a judge finds of a candidate, and of several that are timed together.


class StepClock:
    """Each look at it is a second after the one before."""

    def __init__(self) -> None:
        self._looks = 0.0

    def __call__(self) -> float:
        self._looks += 1.0
        return self._looks


def evaluated(x: int, deed: str = "", at: str = "", heard: list[str] | None = None) -> Evaluation:
    target = FakeTarget()
    artifact = target.compile(PROBLEM, bind(candidate(x, deed, at)))
    notes = [] if heard is None else heard
    rng = np.random.default_rng(0)
    return evaluate(target, PROBLEM, artifact, Effort(), rng, lambda: notes.append("quiet"), StepClock())


def test_a_correct_artifact_has_verdict_time_and_the_seconds_of_its_stages() -> None:
    evaluation = evaluated(3)
    assert evaluation.verdict == Verdict(0.25, 64)
    assert evaluation.measurement is not None
    assert evaluation.measurement.median_s == time_of(3)
    assert evaluation.stage_s == (("load", 1.0), ("verify", 1.0), ("measure", 1.0))


def test_the_caller_quiets_the_machine_once_before_the_clock() -> None:
    heard: list[str] = []
    evaluated(3, heard=heard)
    assert heard == ["quiet"]


@pytest.mark.parametrize(
    ("deed", "at", "failure"),
    [
        ("fail", "load", Failure(Stage.LOAD, "fails at load")),
        ("wrong", "verify", Failure(Stage.VERIFY, "element (0, 1): found 2, expected 1")),
    ],
)
def test_what_does_not_load_or_is_wrong_is_never_timed(deed: str, at: str, failure: Failure) -> None:
    heard: list[str] = []
    with pytest.raises(
        CandidateError, match=failure.reason.replace("(", r"\(").replace(")", r"\)")
    ) as caught:
        evaluated(3, deed, at, heard)
    assert caught.value.failure == failure
    assert heard == []


def test_a_failure_while_timing_has_its_stage() -> None:
    with pytest.raises(CandidateError, match="fails at measure") as caught:
        evaluated(3, "fail", "measure")
    assert caught.value.stage == Stage.MEASURE


def test_where_there_is_no_clock_a_correct_artifact_has_a_verdict_only() -> None:
    target, heard = UntimedTarget(), list[str]()
    artifact = target.compile(PROBLEM, bind(candidate(5)))
    rng = np.random.default_rng(0)
    evaluation = evaluate(
        target, PROBLEM, artifact, Effort(), rng, lambda: heard.append("quiet"), StepClock()
    )
    assert evaluation == Evaluation(
        Verdict(0.25, 64, ("1 of 1 blocks",)), None, (("load", 1.0), ("verify", 1.0))
    )
    assert heard == []


def test_each_piece_of_work_has_its_seed_in_whatever_process() -> None:
    seeds = [work_seed(seed, number) for seed in (0, 1) for number in (-2, -1, 0, 1, 2)]
    assert len(set(seeds)) == len(seeds)
    assert seeds == [work_seed(seed, number) for seed in (0, 1) for number in (-2, -1, 0, 1, 2)]


A, B, C = (Artifact(code, code, ()) for code in "abc")


SLOW = Measurement((1.0,), 1, 1.0, (1.0, 1.0))


BROKEN = Failure(Stage.RUN, "killed by SIGSEGV")


BASELINE = Baseline("cuBLAS 13.1.2", 0, SLOW)


def times(group: Group) -> FinalTimes:
    return FinalTimes((SLOW,) * len(group.artifacts))


def test_what_was_not_compiled_has_no_time() -> None:
    assert time_finals((None, A, None), times) == FinalTimes((None, SLOW, None))


def test_all_are_timed_together_in_one_call() -> None:
    groups = []

    def together(group: Group) -> FinalTimes:
        groups.append(group)
        return times(group)

    time_finals((A, None, B), together)
    assert groups == [Group((A, B), has_baseline=True)]


def test_the_one_that_breaks_the_others_is_left_out() -> None:
    groups = []

    def together(group: Group) -> FinalTimes | Failure:
        groups.append(group.artifacts)
        return BROKEN if B in group.artifacts else times(group)

    assert time_finals((A, B, C), together) == FinalTimes((SLOW, None, SLOW), reason=BROKEN.reason)
    assert groups == [(A, B, C), (A,), (B,), (C,), (A, C)]


def test_the_baseline_library_that_took_turns_is_reported() -> None:
    def together(group: Group) -> FinalTimes:
        return FinalTimes(times(group).times, BASELINE if group.has_baseline else None)

    assert time_finals((A, None), together) == FinalTimes((SLOW, None), BASELINE)


def test_a_baseline_library_that_breaks_the_others_is_left_out() -> None:
    def together(group: Group) -> FinalTimes | Failure:
        return BROKEN if group.has_baseline else times(group)

    assert time_finals((A, B), together) == FinalTimes((SLOW, SLOW), reason=BROKEN.reason)


def test_those_that_only_break_together_have_no_time() -> None:
    def together(group: Group) -> FinalTimes | Failure:
        return BROKEN if len(group.artifacts) > 1 else times(group)

    assert time_finals((A, B), together) == FinalTimes((None, None), reason=BROKEN.reason)


def test_nothing_is_asked_for_nothing() -> None:
    def together(group: Group) -> FinalTimes:
        raise AssertionError("nothing to time")

    found = time_finals((None, None), together)
    assert found == FinalTimes((None, None), reason="nothing compiles any more")


def test_the_same_code_twice_is_reported_twice() -> None:
    assert time_finals((A, A), times) == FinalTimes((SLOW, SLOW))
