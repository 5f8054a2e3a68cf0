import numpy as np
import pytest

from tests.fakes import PROBLEM, FakeTarget, UntimedTarget, bind, candidate, time_of
from tuner.core.errors import CandidateError, Failure, Stage
from tuner.core.record import Verdict
from tuner.core.target import Effort
from tuner.workers.judge import Judgement, judge, work_seed


class StepClock:
    """Each look at it is a second after the one before."""

    def __init__(self) -> None:
        self._looks = 0.0

    def __call__(self) -> float:
        self._looks += 1.0
        return self._looks


def judged(x: int, deed: str = "", at: str = "", heard: list[str] | None = None) -> Judgement:
    target = FakeTarget()
    artifact = target.compile(PROBLEM, bind(candidate(x, deed, at)))
    notes = [] if heard is None else heard
    rng = np.random.default_rng(0)
    return judge(target, PROBLEM, artifact, Effort(), rng, lambda: notes.append("quiet"), StepClock())


def test_a_correct_artifact_has_verdict_time_and_the_seconds_of_its_stages() -> None:
    judgement = judged(3)
    assert judgement.verdict == Verdict(0.25, 64)
    assert judgement.measurement is not None
    assert judgement.measurement.median_s == time_of(3)
    assert judgement.stage_s == (("load", 1.0), ("verify", 1.0), ("measure", 1.0))


def test_the_caller_quiets_the_machine_once_before_the_clock() -> None:
    heard: list[str] = []
    judged(3, heard=heard)
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
        judged(3, deed, at, heard)
    assert caught.value.failure == failure
    assert heard == []


def test_a_failure_while_timing_has_its_stage() -> None:
    with pytest.raises(CandidateError, match="fails at measure") as caught:
        judged(3, "fail", "measure")
    assert caught.value.stage == Stage.MEASURE


def test_where_there_is_no_clock_a_correct_artifact_has_a_verdict_only() -> None:
    target, heard = UntimedTarget(), list[str]()
    artifact = target.compile(PROBLEM, bind(candidate(5)))
    rng = np.random.default_rng(0)
    judgement = judge(target, PROBLEM, artifact, Effort(), rng, lambda: heard.append("quiet"), StepClock())
    assert judgement == Judgement(
        Verdict(0.25, 64, ("1 of 1 blocks",)), None, (("load", 1.0), ("verify", 1.0))
    )
    assert heard == []


def test_each_piece_of_work_has_its_seed_in_whatever_process() -> None:
    seeds = [work_seed(seed, number) for seed in (0, 1) for number in (-2, -1, 0, 1, 2)]
    assert len(set(seeds)) == len(seeds)
    assert seeds == [work_seed(seed, number) for seed in (0, 1) for number in (-2, -1, 0, 1, 2)]
