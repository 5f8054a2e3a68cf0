"""A run that is extended ends with the trials of one that was started with the larger limit."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tuning import fakes
from tuner.core.errors import UsageError
from tuner.core.round_quality import StoredRound
from tuner.core.runs import StoredTrial, TrialQuery
from tuner.db.store import Store
from tuner.results.differences import differences
from tuner.search.samplers import SAMPLERS
from tuner.tuning.events import Event, Interruption, TrialDone
from tuner.tuning.request import RunLimit
from tuner.tuning.run import begin, resume
from tuner.tuning.tuned_run import TunedRun

PARTS = fakes.backends()
SHORT, LONG = 5, 12


def tune(store: Store, trials: int, sampler: str = "random", **more: object) -> TunedRun:
    return begin(fakes.settings(trials=trials, sampler=sampler, **more), PARTS, store, Interruption())


def extended(
    store: Store, limit: RunLimit, observe: Callable[[Event], None] = lambda _event: None
) -> TunedRun:
    return resume(1, PARTS, store, Interruption(), observe, limit=limit)


def trials_of(store: Store) -> tuple[StoredTrial, ...]:
    return store.trials(TrialQuery(run=1, sort="number"))


def opened(folder: Path, name: str) -> Store:
    return Store.open(str(folder / f"{name}.db"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "workers"), [*((name, 1) for name in SAMPLERS), ("random", 3), ("tpe", 3)]
)
def test_an_extended_run_has_the_trials_of_one_with_that_limit(
    tmp_path: Path, sampler: str, workers: int
) -> None:
    with opened(tmp_path, "whole") as whole, opened(tmp_path, "extended") as store:
        expected = tune(whole, LONG, sampler, workers=workers)
        tune(store, SHORT, sampler, workers=workers)
        done = extended(store, RunLimit(trials=LONG))
        assert differences(trials_of(whole), trials_of(store)) == ()
        assert done.run.settings == expected.run.settings
        assert (done.run.status, done.counts) == ("done", expected.counts)
        assert done.best is not None
        assert expected.best is not None
        assert done.best.number == expected.best.number


def test_the_best_of_all_trials_are_timed_again_and_only_that_round_answers(store: Store) -> None:
    tune(store, 3, "exhaustive")  # x = 0, 0, 1: the best, x = 7, comes later
    done = extended(store, RunLimit(trials=20))
    assert [(each.of_trials, each.is_answering) for each in done.rounds] == [(3, False), (20, True)]
    assert done.best is not None
    assert done.best.knobs["x"] == 7
    assert done.best.final is not None
    again = resume(1, PARTS, store, Interruption(), retime=True)  # of equally quiet ones the earlier stays
    assert [each.is_answering for each in again.rounds] == [False, True, False]


@pytest.mark.slow
def test_an_extension_that_is_interrupted_keeps_the_earlier_answer_until_it_is_done(store: Store) -> None:
    before = tune(store, 3, "exhaustive")
    interruption = Interruption()

    def interrupt(event: Event) -> None:
        if isinstance(event, TrialDone) and event.number == 9:
            interruption.ask()

    cut = resume(1, PARTS, store, interruption, interrupt, limit=RunLimit(trials=20))
    assert cut.is_interrupted
    assert 3 < cut.counts.proposed < 20
    assert cut.best == before.best
    done = resume(1, PARTS, store, Interruption())
    assert (done.counts.proposed, done.run.settings.trials) == (20, 20)
    assert [each.of_trials for each in done.rounds] == [3, 20]
    assert done.best is not None
    assert done.best.knobs["x"] == 7


@pytest.mark.slow
def test_where_all_trials_are_there_only_the_missing_round_is_timed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a kill between the last trial and the end of the final re-measurement."""
    tune(store, 3, "exhaustive")
    rounds: Callable[..., None] = store.add_round
    monkeypatch.setattr(store, "add_round", lambda *_text: None)
    extended(store, RunLimit(trials=6))
    monkeypatch.setattr(store, "add_round", rounds)
    store.finish_run(1, "interrupted", 0.0)
    done = resume(1, PARTS, store, Interruption())
    assert [each.of_trials for each in done.rounds] == [3, 6]


@pytest.mark.slow
def test_a_limit_of_time_counts_the_search_alone(store: Store) -> None:
    tune(store, 3, "exhaustive")
    store.finish_run(1, "done", 1000.0)  # as long as a final re-measurement may have taken
    done = extended(store, RunLimit(budget_s=600.0))
    assert done.counts.proposed == 20  # the whole space
    assert (done.run.settings.trials, done.run.settings.budget_s) == (None, 600.0)


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        (RunLimit(trials=4), "^trials: found 4, but run 1 has 5 trials already$"),
        (RunLimit(budget_s=1e-9), r"^budget: found 1e-09 s, but run 1 has searched for .* s already$"),
    ],
)
def test_a_limit_that_was_passed_is_refused_and_changes_nothing(
    store: Store, limit: RunLimit, message: str
) -> None:
    before = tune(store, SHORT)
    with pytest.raises(UsageError, match=message):
        extended(store, limit)
    assert (store.run(1), store.rounds(1)) == (before.run, before.rounds)


def test_a_limit_that_is_reached_already_times_nothing_again(store: Store) -> None:
    rounds: tuple[StoredRound, ...] = tune(store, SHORT).rounds
    assert extended(store, RunLimit(trials=SHORT)).rounds == rounds


@pytest.mark.slow
def test_a_pruned_run_is_not_extended(store: Store) -> None:
    tune(store, 20, "exhaustive")
    assert store.prune().trials > 0
    with pytest.raises(UsageError, match=r"^run 1: some of its trials were pruned; start a new run$"):
        extended(store, RunLimit(trials=30))


@pytest.mark.parametrize(("trials", "budget_s"), [(0, None), (True, None), (None, 0.0), (None, -1.0)])
def test_a_limit_is_a_number_or_a_time(trials: int | None, budget_s: float | None) -> None:
    with pytest.raises(UsageError, match=r"^(trials|budget): found"):
        RunLimit.of(trials, budget_s)
    assert RunLimit.of(None, None) is None
