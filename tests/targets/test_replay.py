"""A recorded space answers as the machine did that it was recorded on."""

import dataclasses

import numpy as np
import pytest

from tests.recorded import values
from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError, Failure, Stage
from tuner.core.machine import Compiler
from tuner.core.record import Measurement, Verdict
from tuner.core.target import Effort
from tuner.recorded.reading import read_recorded
from tuner.recorded.space import RecordedSpace, RecordedTime
from tuner.targets.replay import ReplayTarget

PROBLEM = values.RUN.settings.problem
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> RecordedSpace:
    return read_recorded(values.write_recording(tmp_path_factory.mktemp("replay")))


def answer(target: ReplayTarget, candidate: Candidate) -> tuple[Verdict, Measurement]:
    """Passes every stage, as a bench does."""
    loaded = target.load(PROBLEM, target.compile(PROBLEM, target.bind(candidate)))
    return target.verify(PROBLEM, loaded, RNG), target.measure(PROBLEM, loaded, Effort(), RNG)


def test_every_point_answers_as_recorded(space: RecordedSpace) -> None:
    target = ReplayTarget(space)
    for number, candidate in enumerate(values.candidates()):
        record = values.trial(number).record
        assert record is not None
        if isinstance(record.outcome, Failure):
            with pytest.raises(CandidateError) as error:
                answer(target, candidate)
            assert error.value.failure == record.outcome
        else:
            assert answer(target, candidate) == (record.verdict, record.outcome)


@pytest.mark.parametrize(
    ("stage", "stages"),
    [
        (Stage.BIND, 0),
        (Stage.COMPILE, 1),
        (Stage.RESOURCES, 1),
        (Stage.LOAD, 2),
        (Stage.RUN, 3),
        (Stage.VERIFY, 3),
        (Stage.MEASURE, 4),
    ],
)
def test_a_failure_comes_at_its_own_stage(space: RecordedSpace, stage: Stage, stages: int) -> None:
    target = ReplayTarget(dataclasses.replace(space, outcomes=(Failure(stage, "no way"),) * space.rows))
    passed: list[object] = []
    with pytest.raises(CandidateError, match="no way"):
        _walk(target, passed)
    assert len(passed) == stages


def _walk(target: ReplayTarget, passed: list[object]) -> None:
    """Passes every stage, noting each that it got beyond."""
    passed.append(script := target.bind(values.candidates()[0]))
    passed.append(artifact := target.compile(PROBLEM, script))
    passed.append(loaded := target.load(PROBLEM, artifact))
    passed.append(target.verify(PROBLEM, loaded, RNG))
    target.measure(PROBLEM, loaded, Effort(), RNG)


def test_code_that_was_the_same_is_the_same_again(space: RecordedSpace) -> None:
    target = ReplayTarget(space)
    timed = [row for row in range(space.rows) if isinstance(space.outcomes[row], RecordedTime)]
    hashes = {
        row: target.compile(PROBLEM, target.bind(space.feasible.candidate(row))).sha256 for row in timed
    }
    for row in timed[1:]:
        for other in timed[:5]:
            assert (hashes[row] == hashes[other]) == (space.codes[row] == space.codes[other])


def test_a_point_that_was_not_tried_cannot_be_bound(space: RecordedSpace) -> None:
    unknown = Candidate.of("fabricated", {"tile": 3, "unroll": 0, "order": "mn"})
    with pytest.raises(CandidateError, match=r"tile=3.* is not in recording fabricated"):
        ReplayTarget(space).bind(unknown)


def test_no_real_machine_has_its_name(space: RecordedSpace) -> None:
    target = ReplayTarget(space)
    assert target.machine() == dataclasses.replace(space.machine, name=f"replay of {space.machine.name}")


def test_another_recording_is_another_compiler(space: RecordedSpace) -> None:
    other = dataclasses.replace(space, sha256="f" * 64)
    assert ReplayTarget(space).compiler() != ReplayTarget(other).compiler()
    assert isinstance(ReplayTarget(space).compiler(), Compiler)


def test_an_interval_that_the_recording_lacks_comes_from_its_samples_alike_each_time(
    space: RecordedSpace,
) -> None:
    foreign = RecordedTime(2.0, (1.0, 2.0, 6.0))
    target = ReplayTarget(dataclasses.replace(space, outcomes=(foreign,) * space.rows))
    verdict, first = answer(target, values.candidates()[0])
    _, again = answer(target, values.candidates()[0])
    assert first == again
    assert (first.median_s, first.samples_s) == (2.0, (1.0, 2.0, 6.0))
    assert first.interval_s[0] <= 2.0 <= first.interval_s[1]
    assert verdict.elements == 0
    assert "does not say" in verdict.notes[0]


def test_finals_tell_the_first_times_again(space: RecordedSpace) -> None:
    target = ReplayTarget(space)
    loaded = tuple(
        target.load(PROBLEM, target.compile(PROBLEM, target.bind(values.candidates()[number])))
        for number in (0, 2, 0)
    )
    times = target.measure_together(PROBLEM, loaded, Effort(), RNG)
    assert times[0] == times[2] == values.outcome_of(0)
    assert times[1] == values.outcome_of(2)
