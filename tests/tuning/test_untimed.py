"""Runs without a clock: what is right is verified, what cannot launch is refused, nothing is ranked."""

import pytest

from tests.fakes import TOO_MUCH_MEMORY
from tests.tuning import fakes
from tuner.core.candidate import TargetName
from tuner.core.errors import Failure, Stage, UsageError
from tuner.core.problem import Matmul
from tuner.core.records import Verdict
from tuner.core.runs import TrialQuery
from tuner.db.store import Store
from tuner.results.best_trials import best_result
from tuner.tuning.events import Event, Interruption, RunStarted, TrialDone
from tuner.tuning.run import begin, resume

SETTINGS = fakes.settings(
    20,
    target=TargetName("simulator", "sm_90"),
    sampler="exhaustive",
    problem=Matmul(8, 8, 8, "f16", output="f16"),
)


def test_without_a_clock_what_is_right_is_verified_and_what_cannot_launch_is_refused(store: Store) -> None:
    events: list[Event] = []
    tuned = begin(SETTINGS, fakes.untimed_backends(), store, Interruption(), events.append)
    counts = tuned.counts
    # x = 3 is refused with either comment; equal code is reused, twenty scripts are ten programs
    assert (counts.proposed, counts.measured, counts.verified, counts.failed) == (20, 0, 18, 2)
    assert counts.reused == 9
    assert (tuned.selected, tuned.best, tuned.run.roofline, tuned.run.baseline) == (None, None, None, None)
    assert tuned.has_worked
    assert tuned.run.status == "done"
    assert {type(event) for event in events} == {RunStarted, TrialDone}
    verified = store.trials(TrialQuery(run=tuned.run.id, status="verified", sort="number"))
    for trial in verified:
        assert isinstance(trial.record.outcome, Verdict)
        assert trial.record.outcome.notes == ("1 of 1 blocks",)
        assert (trial.best_s, trial.record.verdict) == (None, None)
        assert [each.registers for each in trial.record.resources] == [32]
        program = store.program(trial.id)
        assert program is not None
        assert program.launches[0].kernel == "k"
    spilled = [each.spilled_bytes for trial in verified for each in trial.record.resources]
    assert spilled.count(100) == 2  # what spills is verified like any other, with either comment
    (refused, _) = store.trials(TrialQuery(run=tuned.run.id, status="failed"))
    assert refused.record.outcome == Failure(Stage.RESOURCES, TOO_MUCH_MEMORY)
    assert [each.dynamic_shared_bytes for each in refused.record.resources] == [2**18]
    assert [stage for stage, _ in refused.record.stage_s] == ["bind", "transform", "lower"]


def test_another_run_reuses_the_verdicts_and_there_is_no_best(store: Store) -> None:
    begin(SETTINGS, fakes.untimed_backends(), store, Interruption())
    again = begin(SETTINGS, fakes.untimed_backends(), store, Interruption())
    assert (again.counts.verified, again.counts.reused) == (18, 20)
    (reused,) = store.trials(TrialQuery(run=again.run.id, status="verified", limit=1))
    assert [each.registers for each in reused.record.resources] == [32]
    given = r"matmul 8x8x8 f16 nn none simulator: nothing measured, only verified, .* is (\d+) of run \d; "
    with pytest.raises(UsageError, match=f"{given}tuner export --trial \\1$"):
        best_result(store, SETTINGS.problem, "fake", "simulator")


def test_an_interrupted_run_without_a_clock_goes_on(store: Store) -> None:
    interruption = Interruption()

    def stop(event: Event) -> None:
        if isinstance(event, TrialDone) and event.number == 4:
            interruption.ask()

    broken = begin(SETTINGS, fakes.untimed_backends(), store, interruption, stop)
    assert broken.is_interrupted
    whole = resume(broken.run.id, fakes.untimed_backends(), store, Interruption())
    assert (whole.counts.proposed, whole.counts.verified) == (20, 18)
