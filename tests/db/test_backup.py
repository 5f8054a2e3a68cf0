"""A copy of a database that others write to."""

import time
from pathlib import Path

import pytest

from tests.db.processes import facts, start
from tests.db.test_merge import fill, given
from tests.db.values import add, begin, outcome, timed
from tuner.core.errors import UsageError
from tuner.core.runs import Counts, TrialQuery
from tuner.db.store import Store


@pytest.mark.slow
def test_the_copy_holds_all_and_is_one_file(store: Store, tmp_path: Path) -> None:
    fill(store)
    folder = tmp_path / "copies"
    folder.mkdir()
    store.backup(folder / "copy.db")
    assert [path.name for path in folder.iterdir()] == ["copy.db"]
    with Store.open(str(folder / "copy.db")) as copy:
        assert given(copy) == given(store)
        begin(copy)  # it is a database like any other


@pytest.mark.slow
def test_a_copy_while_another_process_writes_is_one_state(url: str, tmp_path: Path) -> None:
    with Store.open(url) as store:
        run = begin(store)
        add(store, run, 0, outcome(timed(0.5)))
        writer = start("write", url, "40")
        copies = [tmp_path / f"copy{number}.db" for number in range(4)]
        for written, file in enumerate(copies, start=1):
            while store.info().trials < 5 * written and writer.poll() is None:
                time.sleep(0.005)
            store.backup(file)
        assert store.counts(facts(writer)["run"]) == Counts(proposed=40, measured=40)
    for file in copies:
        with Store.open(str(file)) as copy:
            trials = copy.trials(TrialQuery())
            assert {trial.number for trial in trials if trial.run == run} == {0}
            later = sorted(trial.number for trial in trials if trial.run != run)
            assert later == list(range(len(later)))  # none is missing in between


def test_a_file_that_is_there_is_not_replaced(store: Store, tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_text("mine")
    with pytest.raises(UsageError, match=r"copy\.db: exists already"):
        store.backup(tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_text() == "mine"


def test_a_directory_that_is_not_there_is_reported(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such directory"):
        store.backup(tmp_path / "none" / "copy.db")


def test_a_place_that_takes_no_file_is_reported(store: Store) -> None:
    with pytest.raises(UsageError, match=r"/proc/\S*copy\.db\S*: "):
        store.backup(Path("/proc/copy.db"))
