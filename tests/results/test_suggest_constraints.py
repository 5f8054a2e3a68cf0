from dataclasses import replace

import pytest

from tests.trials import measurement, trial
from tests.tuning.fakes import OTHER_MACHINE, settings
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import Failure, Stage
from tuner.core.records import Measurement, Record, Verdict
from tuner.core.runs import StoredTrial
from tuner.results.explanations import observations, place

SPILLS = Failure(Stage.COMPILE, "spills")


def of(number: int, outcome: Measurement | Verdict | Failure, x: int) -> StoredTrial:
    made = trial(number, outcome)
    assert isinstance(made.record, Record)
    return replace(made, record=replace(made.record, candidate=Candidate.of("fake", {"x": x})))


def test_a_point_that_worked_once_is_a_success() -> None:
    tried = [of(0, SPILLS, 7), of(1, measurement(1e-3), 7), of(2, SPILLS, 7), of(3, SPILLS, 8)]
    assert [(each.failure, each.trials) for each in observations(tried)] == [(None, 3), (SPILLS, 1)]


def test_what_was_only_verified_worked() -> None:
    assert [each.failure for each in observations([of(0, Verdict(0.0, 1), 7)])] == [None]


def test_a_replay_is_no_evidence() -> None:
    told_again = of(0, SPILLS, 7)
    assert isinstance(told_again.record, Record)
    told_again = replace(
        told_again, record=replace(told_again.record, target=TargetName.parse("replay:space"))
    )
    assert observations([told_again]) == ()


def test_the_same_point_on_another_machine_is_another_one() -> None:
    tried = [
        of(0, SPILLS, 7),
        replace(of(1, SPILLS, 7), machine=OTHER_MACHINE),
        replace(of(2, SPILLS, 7), threads=2),
    ]
    assert len(observations(tried)) == 3


@pytest.mark.parametrize(
    ("name", "value"), [("x", 7), ("m", 8), ("input_bytes", 4), ("threads", 1), ("layout", "nn")]
)
def test_a_point_knows_its_knobs_sizes_and_limits(name: str, value: int | str) -> None:
    (seen,) = observations([of(0, SPILLS, 7)])
    assert dict(seen.values)[name] == value
    assert seen.problem == place(settings().problem, settings().target)
