"""What a session keeps in mind between trials."""

from dataclasses import replace

from tests.trials import measurement, proposal, trial
from tuner.core.errors import Failure, Stage
from tuner.core.runs import Counts
from tuner.tuning.run_steps import Progress, evaluated_s

SLOW, FAST = (trial(0, measurement(seconds)).record for seconds in (2.0, 1.0))
FAILED = replace(SLOW, outcome=Failure(Stage.RUN, "crashed"))


def test_the_best_is_the_fastest_that_has_a_time() -> None:
    progress = Progress(())
    for number, record in enumerate((FAILED, SLOW, FAST, SLOW, FAILED)):
        progress.propose(number, 100 + number)
        progress.take(number, record)
    assert progress.best is FAST
    assert progress.counts == Counts(proposed=5, measured=3, failed=2)
    assert progress.trial_ids == {number: 100 + number for number in range(5)}


def test_an_outcome_of_an_earlier_session_counts_but_is_not_new() -> None:
    progress = Progress((proposal(0, trial(0, measurement(1.0))), proposal(1)))
    assert progress.counts == Counts(proposed=2)
    assert [progress.take(0, FAST), progress.take(1, SLOW)] == [False, True]
    assert progress.counts == Counts(proposed=2, measured=2)
    assert progress.evaluated_s == evaluated_s(SLOW) > 0


def test_the_measuring_worker_has_a_candidate_while_it_loads_verifies_and_times() -> None:
    stages = (
        ("bind", 1.0),
        ("transform", 2.0),
        ("lower", 4.0),
        ("load", 8.0),
        ("verify", 16.0),
        ("measure", 32.0),
    )
    record = replace(trial(0, measurement(1.0)).record, stage_s=stages)
    assert evaluated_s(record) == 56.0
    assert evaluated_s(replace(record, stage_s=(("compile", 1.0),))) == 0.0
    assert evaluated_s(replace(record, stage_s=(("bind", 1.0), ("run", 5.0)))) == 5.0  # a crash
