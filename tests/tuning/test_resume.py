"""A run that is killed anywhere, and gone on with, ends with the trials of one that was not."""

import contextlib
import dataclasses
import datetime
import functools
import itertools
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import costly
from tests.space.recorded.values import write_recording
from tests.support.run_differences import differences
from tests.tuning import fakes
from tuner.core.queries import TrialQuery
from tuner.core.requests import RunRequest
from tuner.core.runs import RunSettings
from tuner.core.trials import StoredTrial
from tuner.db import store as store_file
from tuner.db.store import Store
from tuner.elsewhere.fleet import node_children
from tuner.search.samplers import SAMPLERS
from tuner.targets import replay
from tuner.targets.backends import Backends
from tuner.targets.replay import ReplayCompiler, ReplayEvaluator, replay_settings
from tuner.tuning.events import Interruption
from tuner.tuning.remeasurement import choose_top_trials
from tuner.tuning.run import begin, resume

Trials = tuple[StoredTrial, ...]
RUNS = costly(25, 60)
TRIALS = 12
TOP_TRIALS = 3  # enough to be killed between two of them
MOMENTS = (
    (replay, "bind_recorded"),
    (ReplayCompiler, "compile"),
    *((ReplayEvaluator, name) for name in ("load", "verify", "measure", "measure_together")),
)
WRITES = (
    *("begin_run", "propose", "record", "add_round", "set_baseline"),
    *("add_search", "finish_run", "resume_run"),
)


class KilledError(BaseException):
    """What SIGKILL is to a process: nothing after it happens."""


class Life:
    def __init__(self, ends_at: int | None = None, is_polite: bool = False) -> None:
        self.moments, self.interruption = 0, Interruption()
        self._ends_at, self._is_polite = ends_at, is_polite

    def go_on(self) -> None:
        self.moments += 1
        if self._ends_at is None or self.moments <= self._ends_at:
            return
        if not self._is_polite:
            raise KilledError
        self.interruption.ask()

    def around(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def lived(*options: Any, **more: Any) -> Any:
            self.go_on()
            done = work(*options, **more)
            self.go_on()
            return done

        return lived


class MortalStore:
    """A store whose writes are moments: a kill comes before the commit or after it, never inside."""

    def __init__(self, store: Store, life: Life, writes: tuple[str, ...] = WRITES) -> None:
        self._store, self._life, self._writes = store, life, writes

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return self._life.around(found) if name in self._writes else found


@dataclasses.dataclass
class Bed:
    file: Path
    store: Store
    uninterrupted: dict[RunSettings, tuple[Trials, int]]

    def settings(self, sampler: str, workers: int) -> RunSettings:
        problem, target = fakes.settings().problem, f"replay:{self.file}"
        return replay_settings(RunRequest(problem, target, sampler=sampler, trials=TRIALS), workers)

    def trials(self, run: int) -> Trials:
        return fakes.trials_of(self.store, run)

    def lived(self, life: Life, session: Callable[[Backends, Store, Interruption], Any]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            for owner, name in MOMENTS:
                patch.setattr(owner, name, life.around(getattr(owner, name)))
            with contextlib.suppress(KilledError):
                session(fakes.backends(), cast(Store, MortalStore(self.store, life)), life.interruption)

    def begun(self, life: Life, settings: RunSettings) -> int:
        """Begins a run in a session; returns the latest run of the store."""
        self.lived(life, lambda parts, store, stop: begin(settings, parts, store, stop))
        return self.store.runs(1)[0].id

    def resumed(self, life: Life, run: int) -> None:
        self.lived(life, lambda parts, store, stop: resume(run, parts, store, stop))

    def reference(self, settings: RunSettings) -> tuple[Trials, int]:
        if settings not in self.uninterrupted:
            life = Life()
            self.uninterrupted[settings] = (self.trials(self.begun(life, settings)), life.moments)
        return self.uninterrupted[settings]


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    folder = tmp_path_factory.mktemp("resume")
    few = functools.partial(choose_top_trials, limit=TOP_TRIALS)
    with Store.open(str(folder / "results.db")) as store, pytest.MonkeyPatch.context() as patch:
        patch.setattr("tuner.tuning.run_steps.choose_top_trials", few)
        yield Bed(write_recording(folder), store, {})


@pytest.mark.slow
@RUNS
@given(
    sampler=st.sampled_from(sorted(SAMPLERS)),
    workers=st.sampled_from((1, 3)),
    ends=st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=2),
)
def test_a_run_killed_anywhere_resumes_to_the_same_trials(
    bed: Bed, sampler: str, workers: int, ends: list[tuple[float, bool]]
) -> None:
    settings = bed.settings(sampler, workers)
    uninterrupted, moments = bed.reference(settings)
    before = {run.id for run in bed.store.runs(1)}
    first, *later = (Life(int(share * moments), is_polite) for share, is_polite in ends)
    run = bed.begun(first, settings)
    if run in before:  # killed before it was stored
        return
    for life in later:
        bed.resumed(life, run)
    done = resume(run, fakes.backends(), bed.store, Interruption())
    assert done.run.status == "done"
    assert [each.text for each in differences(uninterrupted, bed.trials(run))] == []


@pytest.mark.drawn(1)
@pytest.mark.parametrize("sampler", sorted(SAMPLERS))
def test_a_time_budget_ends_a_killed_run_somewhere_in_the_same_list(bed: Bed, sampler: str) -> None:
    """Seconds decide how many trials there are, never which."""
    settings = dataclasses.replace(bed.settings(sampler, 2), trials=None, budget_s=0.2)
    run = bed.begun(Life(20), settings)
    resume(run, fakes.backends(), bed.store, Interruption())
    trials = without_remeasurement(bed.trials(run))
    longer = dataclasses.replace(settings, trials=len(trials), budget_s=None)
    uninterrupted = begin(longer, fakes.backends(), bed.store, Interruption()).run.id
    assert differences(without_remeasurement(bed.trials(uninterrupted)), trials) == ()


def without_remeasurement(trials: Trials) -> Trials:
    return tuple(dataclasses.replace(trial, final=None) for trial in trials)


@pytest.mark.parametrize("kills", [1, 3])
def test_the_seconds_of_killed_sessions_count_for_the_budget(bed: Bed, kills: int) -> None:
    """However often it is killed, a run does not get its time again."""
    settings = dataclasses.replace(bed.settings("random", 1), trials=None, budget_s=1e9)
    run = bed.begun(Life(30), settings)
    seconds = [bed.store.run(run).seconds or 0.0]
    for _ in range(kills):
        bed.resumed(Life(60), run)
        seconds.append(bed.store.run(run).seconds or 0.0)
    assert seconds[0] > 0.0
    assert all(before < after for before, after in itertools.pairwise(seconds))


@pytest.fixture(scope="module")
def seeded(bed: Bed) -> Path:
    path = bed.file.with_name("seeded.db")
    settings = dataclasses.replace(bed.settings("exhaustive", 1), trials=60, fresh=False)
    with Store.open(str(path)) as store:
        begin(settings, fakes.backends(), store, Interruption())
    return path


def test_a_run_that_reuses_an_earlier_one_resumes_to_the_same_trials(bed: Bed, seeded: Path) -> None:
    settings = dataclasses.replace(bed.settings("tpe", 2), fresh=False)
    uninterrupted, *broken = [lived_on_copy(bed, seeded, settings, ends_at) for ends_at in (None, 25, 55)]
    assert any(trial.record.reused_from for trial in uninterrupted)
    for trials in broken:
        assert [each.text for each in differences(uninterrupted, trials)] == []


def lived_on_copy(bed: Bed, seeded: Path, settings: RunSettings, ends_at: int | None) -> Trials:
    """Returns the trials of a run, killed or not, in a copy of a database: ids are the same in each."""
    path = shutil.copy(seeded, seeded.with_name(f"copy_{ends_at}.db"))
    with Store.open(str(path)) as store:
        copied = Bed(bed.file, store, {})
        copied.begun(Life(ends_at), settings)
        if ends_at is not None:
            assert store.run(2).status == "running"  # nobody told the store of the kill
            resume(2, fakes.backends(), store, Interruption())
        return copied.trials(2)


# The wall clock is set back and forward by an hour while runs go on: only dates change.

HOUR = datetime.timedelta(hours=1)
STEPS = (0 * HOUR, -HOUR, HOUR, 0 * HOUR, HOUR, -2 * HOUR)
HELD = 3  # looks at the clock between two steps


class SteppedClock(datetime.datetime):
    """The wall clock of a machine that is set again and again, to an hour before or after the true time."""

    looks = itertools.count()

    @classmethod
    def now(cls, zone: datetime.tzinfo | None = None) -> Self:
        return super().now(zone) + STEPS[next(cls.looks) // HELD % len(STEPS)]


class SteppedModule:
    """What a file that imports ``datetime`` finds."""

    datetime, timedelta, UTC, date = SteppedClock, datetime.timedelta, datetime.UTC, datetime.date


@pytest.fixture
def stepped(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    SteppedClock.looks = itertools.count()
    for file in (store_file, node_children):
        monkeypatch.setattr(file, "datetime", SteppedModule)
    true_s, seconds = time.time, [step.total_seconds() for step in STEPS]
    monkeypatch.setattr(time, "time", lambda: true_s() + seconds[next(SteppedClock.looks) % len(STEPS)])
    yield
    assert next(SteppedClock.looks) > 0  # somebody looked


def undated(trials: Trials) -> list[tuple[object, ...]]:
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


def test_a_step_of_the_clock_spends_no_budget(
    bed: Bed, stepped: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed after its first proposals, before an outcome says how long it took."""
    monkeypatch.setattr(SteppedClock, "looks", itertools.chain([0], itertools.repeat(2 * HELD)))  # forward
    settings = bed.settings("random", 1)
    run = bed.begun(Life(7), dataclasses.replace(settings, budget_s=1800.0))  # half an hour
    assert bed.store.proposals(run)
    assert bed.trials(run) == ()
    assert resume(run, fakes.backends(), bed.store, Interruption()).counts.proposed == settings.trials


@pytest.mark.slow
def test_the_latest_run_is_the_one_that_was_stored_last(stepped: None, store: Store) -> None:
    begun = [fakes.tune(store).run.id for _ in range(4)]
    assert [run.id for run in store.runs()] == begun[::-1]
    assert [run.id for run in store.runs(2)] == begun[:1:-1]
    dates = [run.created for run in store.runs()]
    assert dates != sorted(dates, reverse=True)


def test_a_node_s_intervals_are_as_long_as_they_were(stepped: None) -> None:
    for _ in range(HELD * len(STEPS)):
        started_s = time.monotonic()
        interval = node_children.began()()
        assert 0.0 <= (interval.ended - interval.began).total_seconds() <= time.monotonic() - started_s + 1e-6
