from pathlib import Path

import pytest

from benchmarks.history_rows import SHAPES, TRIALS_PER_RUN, write_history
from tuner.core.queries import TaskQuery, TrialQuery
from tuner.db.database import Database
from tuner.db.store import Store
from tuner.results.past_runs import past_trials

TRIALS = 60 * TRIALS_PER_RUN


@pytest.mark.slow
def test_a_history_has_as_many_trials_as_wanted_and_its_least_times(tmp_path: Path) -> None:
    url = str(tmp_path / "history.db")
    database = Database.open(url)
    write_history(database, TRIALS)
    database.close()
    store = Store.open(url)
    info = store.info()
    assert (info.runs, info.trials, len(info.problems)) == (60, TRIALS, len(SHAPES))
    found: dict[str, list[float]] = {}
    for bound in store.run_bounds(TrialQuery(TaskQuery(shape=SHAPES[0]))):
        found.setdefault(bound.group.machine, []).append(bound.least_s)
    assert len(found) == len(past_trials(store, TrialQuery(TaskQuery(shape=SHAPES[0]), best=True))) == 3
    for machine, least_s in found.items():
        trials = store.trials(TrialQuery(TaskQuery(shape=SHAPES[0], machine=machine)))
        assert min(least_s) == min(trial.final.median_s for trial in trials if trial.final is not None)
