"""Trials that were timed and then found wrong, in the final re-measurement: nobody sees their time."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import FakeTarget, time_of
from tests.tuning import fakes
from tests.tuning.fakes import present, trials_of
from tuner.core.errors import CandidateError, Failure, Stage
from tuner.core.problem import Problem
from tuner.core.queries import TaskQuery, TrialQuery
from tuner.db.store import Store
from tuner.results.best_trials import best_results
from tuner.results.past_runs import past_trials
from tuner.runtime.workers.runner import RunnerOrder, TrialRunner
from tuner.targets.backends import Backends
from tuner.targets.target import RunnerSettings
from tuner.tuning import events
from tuner.tuning.earlier_results import EarlierRuns
from tuner.tuning.events import Event, Interruption
from tuner.tuning.run import begin, resume
from tuner.tuning.tuned_run import TunedRun

WHY = "in the final re-measurement: 3 of 64 elements looked at are wrong"
WRONG = Failure(Stage.VERIFY, WHY)


class SlyTarget(FakeTarget):
    """Finds some codes wrong where they are timed together, and nowhere else."""

    def __init__(self, wrong: tuple[int, ...]) -> None:
        self._wrong = wrong

    def measure_together(self, problem: Problem, loaded: Any, *rest: Any) -> Any:
        for kernel in loaded:
            if kernel.call_s in map(time_of, self._wrong):
                raise CandidateError(Stage.VERIFY, "3 of 64 elements looked at are wrong")
        return super().measure_together(problem, loaded, *rest)


def sly(*wrong: int, **changes: Any) -> Backends:
    def runner(order: RunnerOrder, how: RunnerSettings) -> TrialRunner:
        return TrialRunner.local(order, SlyTarget(wrong), SlyTarget(wrong), how.seed)

    return fakes.backends(runner=runner, **changes)


def tuned(store: Store, backends: Backends, observed: list[Event] | None = None, **changes: Any) -> TunedRun:
    observe = events.ignore if observed is None else observed.append
    settings = fakes.settings(trials=20, **changes)
    return begin(settings, backends, store, Interruption(), observe)


def xs(store: Store, run: int, status: str) -> set[object]:
    return {
        dict(each.record.candidate.choices)["x"]
        for each in trials_of(store, run)
        if each.record.status == status
    }


@pytest.fixture
def store(tmp_path: object) -> Iterator[Store]:
    with Store.open(f"{tmp_path}/tuner.db") as opened:
        yield opened


def test_a_trial_that_is_found_wrong_in_the_final_fails_and_the_next_best_is_the_result(store: Store) -> None:
    observed: list[Event] = []
    result = tuned(store, sly(6, 7, 8), observed)
    best = present(result.best)
    assert best.best_s == time_of(5)
    assert best.final is not None
    assert result.run.noise is not None
    failed = [each for each in trials_of(store) if each.record.status == "failed"]
    # two trials of each x have equal code: they differ in a comment
    assert len(failed) == 6
    assert xs(store, 1, "failed") == {6, 7, 8}
    assert all(each.best_s is None and each.record.verdict is None for each in failed)
    reasons = {each.record.outcome.reason for each in failed if isinstance(each.record.outcome, Failure)}
    assert all(WHY in reason for reason in reasons)
    assert any(reason.startswith("equal code failed as trial ") for reason in reasons)
    assert result.counts.failed == 6
    refuted = [event for event in observed if isinstance(event, events.TrialRefuted)]
    assert [event.failure for event in refuted] == [WRONG] * 3
    assert present(refuted[-1].best).median_s == time_of(5)
    assert not any(isinstance(event, events.RoundLost) for event in observed)


def test_no_reader_of_times_sees_the_time_of_a_refuted_trial(store: Store) -> None:
    result = tuned(store, sly(7))
    problem = result.run.settings.problem
    query = TrialQuery(TaskQuery.of(problem), status="measured", sort="median")
    assert 7 not in {dict(each.record.candidate.choices)["x"] for each in past_trials(store, query)}
    (best,) = best_results(store, query).values()
    assert best.best.best_s == time_of(6)
    (known,) = EarlierRuns(store).known_tasks(fakes.settings(warm_start=True), fakes.MACHINE)
    assert 7 not in {dict(each.choices)["x"] for each, _ in known.points}
    assert 7 not in xs(store, 1, "measured")
    assert all(bound.least_s > time_of(7) for bound in store.run_bounds(query))
    # a later run, by a target that would not find out, knows the code for what it is
    later = tuned(store, sly(), seed=1)
    assert 7 in xs(store, later.run.id, "failed")
    assert dict(present(later.best).record.candidate.choices)["x"] in (6, 8)


def test_equal_code_of_earlier_runs_fails_too_and_elsewhere_its_time_is_stale(store: Store) -> None:
    tuned(store, sly())
    other = fakes.backends(runner=sly().targets["fake"].runner, machine=lambda _: fakes.OTHER_MACHINE)
    tuned(store, other)
    assert all(7 in xs(store, run, "measured") for run in (1, 2))
    tuned(store, sly(7), fresh=True)
    assert [7 in xs(store, run, "failed") for run in (1, 2, 3)] == [True, False, True]
    stale = [each for each in trials_of(store, 2) if each.stale]
    assert {dict(each.record.candidate.choices)["x"] for each in stale} == {7}
    assert all("equal code was wrong on another machine" in each.stale for each in stale)
    groups = best_results(store, TrialQuery(status="measured"))
    assert {each.best.best_s for each in groups.values()} == {time_of(6)}


def test_where_all_are_wrong_there_is_no_best(store: Store) -> None:
    result = tuned(store, sly(*range(10)))
    assert (result.best, result.has_worked, result.counts.failed) == (None, False, 20)
    assert not best_results(store, TrialQuery())
    again = resume(result.run.id, sly(*range(10)), store, Interruption(), retime=True)
    assert again.best is None


def test_a_later_round_that_finds_a_trial_wrong_takes_its_earlier_times(store: Store) -> None:
    first = tuned(store, sly())
    assert present(first.best).best_s == time_of(7)
    again = resume(first.run.id, sly(7), store, Interruption(), retime=True)
    assert present(again.best).best_s == time_of(6)
    assert 7 in xs(store, 1, "failed")


def test_a_trial_that_only_no_longer_runs_keeps_its_time(store: Store) -> None:
    class Cut(FakeTarget):
        def measure_together(self, *_: Any) -> Any:
            raise CandidateError(Stage.RUN, "exceeded 1500 MiB of memory")

    result = tuned(
        store, fakes.backends(runner=lambda order, how: TrialRunner.local(order, Cut(), Cut(), how.seed))
    )
    assert result.counts.failed == 0
    assert present(result.best).best_s == time_of(7)


def test_refuting_an_unknown_trial_is_one_error(store: Store) -> None:
    with pytest.raises(Exception, match=r"^trial: found 5, allowed none: the database has no trial$"):
        store.refute(5, WRONG)


def test_a_merge_with_a_copy_of_before_keeps_the_failure(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.db", tmp_path / "theirs.db"
    with Store.open(str(ours)) as store:
        fakes.tune(store, fakes.backends())
    shutil.copy(ours, theirs)
    failure = Failure(Stage.VERIFY, "wrong after all")
    with Store.open(str(ours)) as store:
        best = store.trials(TrialQuery(status="measured", sort="median"))[0]
        store.refute(best.id, failure)
        store.merge(str(theirs))
        refuted = store.trial(best.id)
        assert (refuted.record.outcome, refuted.best_s) == (failure, None)
