"""What a judge finds of a candidate, and of several that are timed together."""

import numpy as np
import pytest

from tests.fakes import PROBLEM, FakeTarget, UntimedTarget, bind, candidate, time_of
from tuner.core.errors import CandidateError, Failure, Stage
from tuner.core.interfaces import Artifact, Effort, FinalTimes
from tuner.core.records import Measurement, Verdict
from tuner.core.runs import Baseline
from tuner.runtime.workers.services import Evaluation, Group, evaluate, time_finals, work_seed


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
