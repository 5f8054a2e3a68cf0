"""A recorded space answers as the machine did that it was recorded on."""

import dataclasses

import numpy as np
import pytest

from tests.space.recorded import values
from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError, Failure, Stage
from tuner.core.interfaces import Artifact, Effort
from tuner.core.machine import Compiler
from tuner.core.records import Measurement, Verdict
from tuner.space.recorded.reading import read_recorded
from tuner.space.recorded.recording import RecordedSpace, RecordedTime
from tuner.targets.replay import (
    ReplayCompiler,
    ReplayEvaluator,
    bind_recorded,
    recorded_compiler,
    recorded_machine,
)

PROBLEM = values.RUN.settings.problem
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> RecordedSpace:
    return read_recorded(values.write_recording(tmp_path_factory.mktemp("replay")))


def compiled(space: RecordedSpace, candidate: Candidate) -> Artifact:
    return ReplayCompiler(space).compile(PROBLEM, bind_recorded(space, candidate))


def selected(space: RecordedSpace, candidate: Candidate) -> tuple[Verdict, Measurement]:
    """Passes every stage, as a runner does."""
    evaluator = ReplayEvaluator(space)
    loaded = evaluator.load(PROBLEM, compiled(space, candidate))
    return evaluator.verify(PROBLEM, loaded, RNG), evaluator.measure(PROBLEM, loaded, Effort(), RNG)


def test_every_point_answers_as_recorded(space: RecordedSpace) -> None:
    for number, candidate in enumerate(values.candidates()):
        record = values.trial(number).record
        if isinstance(record.outcome, Failure):
            with pytest.raises(CandidateError) as error:
                selected(space, candidate)
            assert error.value.failure == record.outcome
        else:
            assert selected(space, candidate) == (record.verdict, record.outcome)


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
    failing = dataclasses.replace(space, outcomes=(Failure(stage, "no way"),) * space.rows)
    passed: list[object] = []
    with pytest.raises(CandidateError, match="no way"):
        _walk(failing, passed)
    assert len(passed) == stages


def _walk(space: RecordedSpace, passed: list[object]) -> None:
    """Passes every stage, noting each that it got beyond."""
    evaluator = ReplayEvaluator(space)
    passed.append(script := bind_recorded(space, values.candidates()[0]))
    passed.append(artifact := ReplayCompiler(space).compile(PROBLEM, script))
    passed.append(loaded := evaluator.load(PROBLEM, artifact))
    passed.append(evaluator.verify(PROBLEM, loaded, RNG))
    evaluator.measure(PROBLEM, loaded, Effort(), RNG)


def test_code_that_was_the_same_is_the_same_again(space: RecordedSpace) -> None:
    timed = [row for row in range(space.rows) if isinstance(space.outcomes[row], RecordedTime)]
    hashes = {row: compiled(space, space.feasible.candidate(row)).sha256 for row in timed}
    for row in timed[1:]:
        for other in timed[:5]:
            assert (hashes[row] == hashes[other]) == (space.codes[row] == space.codes[other])


def test_a_point_that_was_not_tried_cannot_be_bound(space: RecordedSpace) -> None:
    unknown = Candidate.of("fabricated", {"tile": 3, "unroll": 0, "order": "mn"})
    with pytest.raises(CandidateError, match=r"tile=3.* is not in recording fabricated"):
        bind_recorded(space, unknown)


def test_no_real_machine_has_its_name(space: RecordedSpace) -> None:
    assert recorded_machine(space) == dataclasses.replace(
        space.machine, name=f"replay of {space.machine.name}"
    )


def test_another_recording_is_another_compiler(space: RecordedSpace) -> None:
    other = dataclasses.replace(space, sha256="f" * 64)
    assert recorded_compiler(space) != recorded_compiler(other)
    assert isinstance(recorded_compiler(space), Compiler)


def test_an_interval_that_the_recording_lacks_comes_from_its_samples_alike_each_time(
    space: RecordedSpace,
) -> None:
    foreign = RecordedTime(2.0, (1.0, 2.0, 6.0))
    of_another = dataclasses.replace(space, outcomes=(foreign,) * space.rows)
    verdict, first = selected(of_another, values.candidates()[0])
    _, again = selected(of_another, values.candidates()[0])
    assert first == again
    assert (first.median_s, first.samples_s) == (2.0, (1.0, 2.0, 6.0))
    assert first.interval_s[0] <= 2.0 <= first.interval_s[1]
    assert verdict.elements == 0
    assert "does not say" in verdict.notes[0]


def test_remeasurement_report_the_first_times_again(space: RecordedSpace) -> None:
    evaluator = ReplayEvaluator(space)
    loaded = tuple(
        evaluator.load(PROBLEM, compiled(space, values.candidates()[number])) for number in (0, 2, 0)
    )
    times = evaluator.measure_together(PROBLEM, loaded, Effort(), RNG)
    assert times[0] == times[2] == values.outcome_of(0)
    assert times[1] == values.outcome_of(2)
