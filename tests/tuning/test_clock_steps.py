"""The wall clock is set back and forward by an hour while runs go on: only dates change."""

import dataclasses
import datetime
import itertools
import time
from collections.abc import Iterator
from typing import Self

import pytest

from tests.tuning import fakes
from tests.tuning.test_resume import Bed, Life, bed
from tuner.core.runs import StoredTrial, TrialQuery
from tuner.db import store as store_file
from tuner.db.store import Store
from tuner.fleet import node_children
from tuner.tuning.events import Interruption
from tuner.tuning.run import begin, resume

__all__ = ["bed"]

HOUR = datetime.timedelta(hours=1)
STEPS = (0 * HOUR, -HOUR, HOUR, 0 * HOUR, HOUR, -2 * HOUR)
HELD = 3  # looks at the clock between two steps


class SteppedClock(datetime.datetime):
    """The wall clock of a machine that is set again and again, to an hour before or after the true time."""

    looks = itertools.count()

    @classmethod
    def now(cls, zone: datetime.tzinfo | None = None) -> Self:
        """Returns the moment by a clock that is set at every third look."""
        return super().now(zone) + STEPS[next(cls.looks) // HELD % len(STEPS)]


class SteppedModule:
    """What a file that imports ``datetime`` finds."""

    datetime, timedelta, UTC, date = SteppedClock, datetime.timedelta, datetime.UTC, datetime.date


@pytest.fixture
def stepped(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets the wall clock jump, wherever it is looked at."""
    SteppedClock.looks = itertools.count()
    for file in (store_file, node_children):
        monkeypatch.setattr(file, "datetime", SteppedModule)
    true_s = time.time
    monkeypatch.setattr(
        time, "time", lambda: true_s() + STEPS[next(SteppedClock.looks) % len(STEPS)].total_seconds()
    )
    yield
    assert next(SteppedClock.looks) > 0  # somebody looked


def undated(trials: tuple[StoredTrial, ...]) -> list[tuple[object, ...]]:
    """Returns what a trial is, without ids, dates and seconds, which differ between any two runs."""
    return [(trial.number, trial.row, trial.record.candidate, trial.record.status) for trial in trials]


@pytest.mark.slow
def test_a_run_has_the_same_trials_in_the_same_order_and_its_seconds(bed: Bed, stepped: None) -> None:
    settings = bed.settings("random", 2)
    with pytest.MonkeyPatch.context() as true:
        true.setattr(store_file, "datetime", datetime)
        expected = undated(bed.trials(begin(settings, fakes.backends(), bed.store, Interruption()).run.id))
    started_s = time.monotonic()
    run = begin(settings, fakes.backends(), bed.store, Interruption()).run
    took_s = time.monotonic() - started_s
    assert run.seconds is not None
    assert 0.0 < run.seconds <= took_s
    listed = bed.store.trials(TrialQuery(run=run.id))  # sorted by what ``history`` sorts by
    assert undated(listed) == expected
    assert listed[::-1] == bed.store.trials(TrialQuery(run=run.id, sort="-created"))
    assert next(SteppedClock.looks) > HELD * len(STEPS)  # the clock had each of its steps


def test_a_step_of_the_clock_does_not_spend_the_budget_of_a_killed_run(
    bed: Bed, stepped: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed after its first proposals, before an outcome says how long it took."""
    monkeypatch.setattr(SteppedClock, "looks", itertools.chain([0], itertools.repeat(2 * HELD)))  # forward
    settings = bed.settings("random", 1)
    life = Life(7)
    half_an_hour = dataclasses.replace(settings, budget_s=1800.0)
    bed.lived(life, lambda parts, store, stop: begin(half_an_hour, parts, store, stop))
    run = bed.store.runs(1)[0]
    assert bed.store.proposals(run.id)
    assert bed.trials(run.id) == ()
    done = resume(run.id, fakes.backends(), bed.store, Interruption())
    assert done.counts.proposed == settings.trials


@pytest.mark.slow
def test_the_latest_run_is_the_one_that_was_stored_last(stepped: None, tmp_path: object) -> None:
    with Store.open(f"{tmp_path}/history.db") as store:
        begun = [begin(fakes.settings(), fakes.backends(), store, Interruption()).run.id for _ in range(4)]
        found = store.runs()
        assert [run.id for run in found] == begun[::-1]
        assert [run.id for run in store.runs(2)] == begun[:1:-1]
        dates = [run.created for run in found]
    assert dates != sorted(dates, reverse=True)


def test_a_node_s_intervals_are_as_long_as_they_were(stepped: None) -> None:
    for _ in range(HELD * len(STEPS)):
        started_s = time.monotonic()
        interval = node_children.began()()
        assert 0.0 <= (interval.ended - interval.began).total_seconds() <= time.monotonic() - started_s + 1e-6
