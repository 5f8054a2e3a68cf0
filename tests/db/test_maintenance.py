"""A copy of a database that others write to."""

import datetime
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.db.processes import facts, start
from tests.db.test_merge import fill, given
from tests.db.test_rows import PROGRAM
from tests.db.values import CANDIDATE, SETTINGS, TOO_WIDE, add, begin, outcome, sha256, time_again, timed
from tuner.core.errors import UsageError
from tuner.core.problem import Matmul
from tuner.core.records import Verdict
from tuner.core.runs import Counts, Pruned, TrialQuery
from tuner.db.store import Store
from tuner.results.past_runs import past_trials


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


def prune_fill(store: Store, status: str = "done") -> int:
    """Stores a run of which two trials were timed again, and others failed, were slower or never ended."""
    run = begin(store)
    add(store, run, 0, outcome(TOO_WIDE, "// failed\n"), "// failed\n")
    for number, median_s in ((1, 0.3), (2, 0.2), (3, 0.5)):
        text = f"// {number}\n"
        trial = add(store, run, number, outcome(timed(median_s), text, f"c{number}"), text)
        if number < 3:
            time_again(store, run, (trial, timed(median_s)))
    add(store, run, 4, None)
    store.finish_run(run, status, 5.0)
    return run


def numbers(store: Store, run: int) -> list[int]:
    return [each.number for each in store.proposals(run)]


def test_top_trials_stay_and_others_go_with_their_scripts(store: Store) -> None:
    run = prune_fill(store)
    before = past_trials(store, TrialQuery(best=True))
    assert store.prune() == Pruned(trials=3, scripts=2, programs=0)
    assert numbers(store, run) == [1, 2]
    assert past_trials(store, TrialQuery(best=True)) == before
    assert store.prune() == Pruned(0, 0, 0)


def test_without_remeasurement_the_fastest_of_each_run_stays(store: Store) -> None:
    runs = []
    for size in (64, 128):
        run = begin(store, replace(SETTINGS, problem=Matmul(size, size, size)))
        for number in range(4):
            add(store, run, number, outcome(timed(0.1 * (4 - number))))
        store.finish_run(run, "done", 1.0)
        runs.append(run)
    before = past_trials(store, TrialQuery(best=True))
    assert store.prune().trials == 6
    assert past_trials(store, TrialQuery(best=True)) == before
    assert [numbers(store, run) for run in runs] == [[3], [3]]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("status", ["running", "interrupted"])
def test_runs_that_may_go_on_stay_whole(store: Store, status: str) -> None:
    run = prune_fill(store, status)
    assert store.prune() == Pruned(0, 0, 0)
    assert numbers(store, run) == [0, 1, 2, 3, 4]


def test_later_runs_stay_whole(store: Store) -> None:
    prune_fill(store)
    now = datetime.datetime.now(datetime.UTC)
    assert store.prune(now - datetime.timedelta(days=1)).trials == 0
    assert store.prune(now + datetime.timedelta(days=1)).trials == 3


def test_what_is_only_verified_stays(store: Store) -> None:
    run = begin(store)
    add(store, run, 0, outcome(Verdict(0.5, 4)))
    add(store, run, 1, outcome(TOO_WIDE))
    store.finish_run(run, "done", 1.0)
    assert store.prune().trials == 1
    assert numbers(store, run) == [0]


def test_an_outcome_that_stays_keeps_the_trial_that_it_is_from(store: Store) -> None:
    source_run = begin(store)
    slow = add(store, source_run, 0, outcome(timed(0.9), "// a\n"), "// a\n")
    add(store, source_run, 1, outcome(timed(0.1)))
    add(store, source_run, 2, replace(outcome(timed(0.9), "// b\n"), reused_from=slow), "// b\n")
    store.finish_run(source_run, "done", 1.0)
    reusing_run = begin(store)
    add(store, reusing_run, 0, replace(outcome(timed(0.9)), reused_from=slow))
    store.finish_run(reusing_run, "done", 1.0)
    assert store.prune().trials == 1
    assert numbers(store, source_run) == [0, 1]
    (reused,) = store.trials(TrialQuery(run=reusing_run))
    assert reused.record.reused_from == slow


def test_programs_that_no_trial_names_go(store: Store) -> None:
    run = begin(store)
    for number, sha in ((0, "a0"), (1, "a1")):
        trial = store.propose(run, number, 0, CANDIDATE)
        record = replace(outcome(timed(0.5 - 0.1 * number), artifact=sha), program=PROGRAM)
        store.record(trial, record, "module attributes {transform.with_named_sequence} {}\n")
    store.finish_run(run, "done", 1.0)
    assert store.prune() == Pruned(trials=1, scripts=0, programs=1)
    (kept,) = store.trials(TrialQuery())
    assert store.program(kept.id) == PROGRAM


@pytest.mark.slow
def test_a_pruned_database_takes_back_what_it_lost_by_a_merge(store: Store, tmp_path: Path) -> None:
    prune_fill(store)
    with Store.open(f"{tmp_path}/whole.db") as whole:
        prune_fill(whole)
        store.merge(f"{tmp_path}/whole.db")
        before = given(store)
        store.prune()
        store.merge(f"{tmp_path}/whole.db")
        assert len(given(store)[1]) == len(before[1]) - 2  # of our own run
    assert sha256("// 3\n") in {t.record.script_sha256 for t in store.trials(TrialQuery())}
