import numpy as np
import pytest

from tests.fakes import BEST_X, PROBLEM, FakeTarget, bind, candidate, fake_factory, time_of
from tuner.core.errors import CandidateError, Stage, TunerError
from tuner.core.interfaces import AbstractBaselineSource, Artifact, Effort, FinalTimes, LoadedLibrary
from tuner.core.problem import Problem
from tuner.core.records import Measurement
from tuner.runtime.workers.services import EvaluationService, Group, time_together


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
