"""A run that is killed anywhere, and gone on with, ends with the trials of one that was not."""

import contextlib
import dataclasses
import functools
import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import costly
from tests.space.recorded.values import write_recording
from tests.tuning import fakes
from tuner.core.requests import RunRequest
from tuner.core.runs import RunSettings, StoredTrial, TrialQuery
from tuner.db.store import Store
from tuner.results.differences import differences
from tuner.search.samplers import SAMPLERS
from tuner.targets import replay
from tuner.targets.backends import Backends
from tuner.targets.replay import ReplayCompiler, ReplayEvaluator, replay_settings
from tuner.tuning.events import Interruption
from tuner.tuning.run import begin, resume
from tuner.tuning.run_steps import choose_top_trials

RUNS = costly(25, 60)
TRIALS = 12
TOP_TRIALS = 3  # enough to be killed between two of them
MOMENTS = (
    (replay, "bind_recorded"),
    (ReplayCompiler, "compile"),
    *((ReplayEvaluator, name) for name in ("load", "verify", "measure", "measure_together")),
)
WRITES = (
    "begin_run",
    "propose",
    "record",
    "add_round",
    "set_baseline",
    "add_search",
    "finish_run",
    "resume_run",
)


class KilledError(BaseException):
    """What SIGKILL is to a process: nothing after it happens."""


class Life:
    """Counts what a session does and ends it at one of these moments, by a kill or by Ctrl-C."""

    def __init__(self, ends_at: int | None = None, is_polite: bool = False) -> None:
        self.moments = 0
        self.interruption = Interruption()
        self._ends_at = ends_at
        self._is_polite = is_polite

    def go_on(self) -> None:
        """Marks a moment. Raises KilledError when it is the last one, and ever after."""
        self.moments += 1
        if self._ends_at is None or self.moments <= self._ends_at:
            return
        if not self._is_polite:
            raise KilledError
        self.interruption.ask()

    def around(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the work with a moment before and one after it."""

        def lived(*options: Any, **more: Any) -> Any:
            self.go_on()
            done = work(*options, **more)
            self.go_on()
            return done

        return lived


class MortalStore:
    """A store whose writes are moments: a kill comes before the commit or after it, never inside."""

    def __init__(self, store: Store, life: Life, writes: tuple[str, ...] = WRITES) -> None:
        self._store = store
        self._life = life
        self._writes = writes

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return self._life.around(found) if name in self._writes else found


@dataclasses.dataclass
class Bed:
    """A recording, a database for all runs on it, and what unbroken runs did."""

    file: Path
    store: Store
    uninterrupted: dict[RunSettings, tuple[tuple[StoredTrial, ...], int]]

    def settings(self, sampler: str, workers: int) -> RunSettings:
        problem, target = fakes.settings().problem, f"replay:{self.file}"
        return replay_settings(RunRequest(problem, target, sampler=sampler, trials=TRIALS), workers)

    def trials(self, run: int) -> tuple[StoredTrial, ...]:
        return self.store.trials(TrialQuery(run=run, sort="number"))

    def lived(self, life: Life, session: Callable[[Backends, Store, Interruption], Any]) -> None:
        """Runs a session whose every lookup and every write is a moment of its life."""
        with pytest.MonkeyPatch.context() as patch:
            for owner, name in MOMENTS:
                patch.setattr(owner, name, life.around(getattr(owner, name)))
            with contextlib.suppress(KilledError):
                session(fakes.backends(), cast(Store, MortalStore(self.store, life)), life.interruption)

    def reference(self, settings: RunSettings) -> tuple[tuple[StoredTrial, ...], int]:
        """Returns the trials of an unbroken run, and how many moments it had."""
        if settings not in self.uninterrupted:
            life = Life()
            self.lived(life, lambda parts, store, stop: begin(settings, parts, store, stop))
            self.uninterrupted[settings] = (self.trials(self.store.runs(1)[0].id), life.moments)
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
    share, is_polite = ends[0]
    first = Life(int(share * moments), is_polite)
    bed.lived(first, lambda parts, store, stop: begin(settings, parts, store, stop))
    run = bed.store.runs(1)[0].id
    if run in before:  # killed before it was stored
        return
    for share, is_polite in ends[1:]:
        life = Life(int(share * moments), is_polite)
        bed.lived(life, lambda parts, store, stop: resume(run, parts, store, stop))
    done = resume(run, fakes.backends(), bed.store, Interruption())
    assert done.run.status == "done"
    assert [each.text for each in differences(uninterrupted, bed.trials(run))] == []


@pytest.mark.drawn(1)
@pytest.mark.parametrize("sampler", sorted(SAMPLERS))
def test_a_time_budget_ends_a_killed_run_somewhere_in_the_same_list(bed: Bed, sampler: str) -> None:
    """Seconds decide how many trials there are, never which."""
    settings = dataclasses.replace(bed.settings(sampler, 2), trials=None, budget_s=0.2)
    life = Life(20)
    bed.lived(life, lambda parts, store, stop: begin(settings, parts, store, stop))
    run = bed.store.runs(1)[0].id
    resume(run, fakes.backends(), bed.store, Interruption())
    trials = without_remeasurement(bed.trials(run))
    longer = dataclasses.replace(settings, trials=len(trials), budget_s=None)
    uninterrupted = begin(longer, fakes.backends(), bed.store, Interruption()).run.id
    assert differences(without_remeasurement(bed.trials(uninterrupted)), trials) == ()


def without_remeasurement(trials: tuple[StoredTrial, ...]) -> tuple[StoredTrial, ...]:
    return tuple(dataclasses.replace(trial, final=None) for trial in trials)


@pytest.mark.parametrize("kills", [1, 3])
def test_the_seconds_of_killed_sessions_count_for_the_budget(bed: Bed, kills: int) -> None:
    """However often it is killed, a run does not get its time again."""
    settings = dataclasses.replace(bed.settings("random", 1), trials=None, budget_s=1e9)
    bed.lived(Life(30), lambda parts, store, stop: begin(settings, parts, store, stop))
    run = bed.store.runs(1)[0].id
    seconds = [bed.store.run(run).seconds or 0.0]
    for _ in range(kills):
        bed.lived(Life(60), lambda parts, store, stop: resume(run, parts, store, stop))
        seconds.append(bed.store.run(run).seconds or 0.0)
    assert seconds[0] > 0.0
    assert all(before < after for before, after in itertools.pairwise(seconds))


@pytest.fixture(scope="module")
def seeded(bed: Bed) -> Path:
    """Gives a closed database in which an earlier run has tried half of the points."""
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


def lived_on_copy(
    bed: Bed, seeded: Path, settings: RunSettings, ends_at: int | None
) -> tuple[StoredTrial, ...]:
    """Returns the trials of a run, killed or not, in a copy of a database: ids are the same in each."""
    path = shutil.copy(seeded, seeded.with_name(f"copy_{ends_at}.db"))
    with Store.open(str(path)) as store:
        copied = Bed(bed.file, store, {})
        copied.lived(Life(ends_at), lambda parts, mortal, stop: begin(settings, parts, mortal, stop))
        if ends_at is not None:
            assert store.run(2).status == "running"  # nobody told the store of the kill
            resume(2, fakes.backends(), store, Interruption())
        return copied.trials(2)
