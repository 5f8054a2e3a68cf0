import pytest

from benchmarks.history_rows import SHAPES, TRIALS_PER_RUN, write_history
from tuner.core.runs import TaskQuery, TrialQuery
from tuner.db.database import Database
from tuner.db.store import Store
from tuner.results.past_runs import past_trials

TRIALS = 60 * TRIALS_PER_RUN


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    url = str(tmp_path_factory.mktemp("history") / "history.db")
    database = Database.open(url)
    write_history(database, TRIALS)
    database.close()
    return Store.open(url)


@pytest.mark.slow
def test_there_are_as_many_trials_as_wanted_of_every_shape(store: Store) -> None:
    info = store.info()
    assert (info.runs, info.trials, len(info.problems)) == (60, TRIALS, len(SHAPES))


@pytest.mark.slow
def test_the_least_time_of_each_machine_is_the_least_of_all_top_trials(store: Store) -> None:
    found: dict[str, list[float]] = {}
    for bound in store.run_bounds(TrialQuery(TaskQuery(shape=SHAPES[0]))):
        found.setdefault(bound.group.machine, []).append(bound.least_s)
    assert len(found) == len(past_trials(store, TrialQuery(TaskQuery(shape=SHAPES[0]), best=True))) == 3
    for machine, least_s in found.items():
        trials = store.trials(TrialQuery(TaskQuery(shape=SHAPES[0], machine=machine)))
        assert min(least_s) == min(trial.final.median_s for trial in trials if trial.final is not None)
