import pytest

from benchmarks.history_rows import SHAPES, TRIALS_PER_RUN, write_history
from tuner.core.runs import TrialQuery
from tuner.db.database import Database
from tuner.db.store import Store

TRIALS = 60 * TRIALS_PER_RUN


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    url = str(tmp_path_factory.mktemp("history") / "history.db")
    database = Database.open(url)
    write_history(database, TRIALS)
    database.close()
    return Store.open(url)


def test_there_are_as_many_trials_as_wanted_of_every_shape(store: Store) -> None:
    info = store.info()
    assert (info.runs, info.trials, len(info.problems)) == (60, TRIALS, len(SHAPES))


def test_the_best_is_the_fastest_of_all_that_were_timed(store: Store) -> None:
    best = store.trials(TrialQuery(best=True, shape=SHAPES[0]))
    assert len({trial.machine.name for trial in best}) == len(best) == 3
    for found in best:
        times = [
            trial.best_s
            for trial in store.trials(TrialQuery(shape=SHAPES[0], machine=found.machine.name))
            if trial.best_s is not None
        ]
        assert found.best_s == min(times)
