"""One database into another, of either kind."""

import datetime
import itertools
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.db.test_rows import PROGRAM
from tests.db.values import (
    CANDIDATE,
    COMPILE_SECONDS,
    KEY,
    SCRIPT,
    SETTINGS,
    TOO_WIDE,
    add,
    begin,
    outcome,
    sha256,
    time_again,
    timed,
)
from tests.db.writer import facts, start
from tests.tuning.fakes import present
from tuner.core.candidate import Candidate
from tuner.core.errors import Failure, Stage, UsageError
from tuner.core.matmul import Matmul
from tuner.core.queries import Counts, Pruned, TrialQuery
from tuner.core.records import Verdict
from tuner.core.roofline import Roofline
from tuner.core.runs import Baseline, Run
from tuner.core.trials import StoredTrial
from tuner.db.store import Store
from tuner.results.past_runs import past_trials

Content = tuple[list[str], ...]  # runs, trials, proposals
Contents = tuple[list[Run], list[tuple[StoredTrial, StoredTrial | None]], list[tuple[int, int, Candidate]]]


@pytest.fixture
def other_url(tmp_path: Path) -> str:
    return str(tmp_path / "other.db")


@pytest.fixture
def other(other_url: str) -> Iterator[Store]:
    with Store.open(other_url) as opened:
        yield opened


def fill(store: Store) -> None:
    first = begin(store)
    second = begin(store, replace(SETTINGS, problem=Matmul(64, 64, 64)))
    add(store, second, 0, outcome(TOO_WIDE))
    original = add(store, second, 1, outcome(timed(0.5), "// a\n", "c0de"), "// a\n")
    add(store, first, 0, outcome(timed(0.2)))
    add(store, first, 1, replace(outcome(timed(0.5), "// b\n", "c0de"), reused_from=original), "// b\n")
    add(store, first, 2, outcome(Verdict(0.5, 4)))
    add(store, first, 3, None)
    time_again(store, second, (original, timed(0.4)))
    store.set_compile_seconds(original, COMPILE_SECONDS)
    store.set_baseline(first, Baseline("OpenBLAS", 1, timed(0.3)))
    store.set_roofline(first, Roofline(1e11, 1e10))
    store.add_search(first, 8.0, 2.0)
    store.finish_run(first, "done", 12.0)


def given(store: Store) -> Contents:
    """Returns all that a store holds, without its ids; a reused outcome comes with its original."""
    runs = [replace(run, id=0) for run in store.runs()]
    trials = []
    for trial in store.trials(TrialQuery()):
        reused_from = trial.record.reused_from
        original = None if reused_from is None else _without_ids(store.trial(reused_from))
        trials.append((_without_ids(trial), original))
    proposals = [each for run in store.runs() for each in store.proposals(run.id)]
    return runs, trials, [(each.number, each.row, each.candidate) for each in proposals]


def _without_ids(trial: StoredTrial) -> StoredTrial:
    return replace(trial, id=0, run=0, record=replace(trial.record, reused_from=None))


def test_all_arrives_and_a_second_merge_adds_nothing(store: Store, other: Store, other_url: str) -> None:
    fill(other)
    assert other.merge(other_url) == (0, 0)  # itself
    for added in ((2, 6), (0, 0)):
        assert (store.merge(other_url), given(store)) == (added, given(other))


def test_seconds_of_passes_arrive_where_the_trial_is(store: Store, other: Store, other_url: str) -> None:
    trial = add(other, begin(other), 0, outcome(timed(0.5)))
    store.merge(other_url)
    later = replace(COMPILE_SECONDS, machine="Zen 4 avx512")
    other.set_compile_seconds(trial, later)
    store.merge(other_url)
    assert given(store) == given(other)
    (ours,) = store.trials(TrialQuery())
    store.set_compile_seconds(ours.id, COMPILE_SECONDS)
    store.merge(other_url)
    chosen = store.trial(ours.id).compile_seconds
    assert chosen in (COMPILE_SECONDS, later)
    store.set_compile_seconds(ours.id, later)
    other.set_compile_seconds(trial, COMPILE_SECONDS)
    store.merge(other_url)
    assert store.trial(ours.id).compile_seconds == chosen, "whichever side has which"


@pytest.mark.slow
def test_a_run_continued_elsewhere_takes_what_it_lacks(store: Store, other: Store, other_url: str) -> None:
    run = begin(other)
    timed_again = add(other, run, 0, outcome(timed(0.5)))
    pending = add(other, run, 1, None)
    other.finish_run(run, "interrupted", 1.0)
    assert (store.merge(other_url), store.runs()[0].status) == ((1, 2), "interrupted")

    other.record(pending, replace(outcome(timed(0.5)), reused_from=timed_again), SCRIPT)
    add(other, run, 2, outcome(TOO_WIDE))
    openblas = Baseline("OpenBLAS", 1, timed(0.3))
    time_again(other, run, (timed_again, timed(0.4)), noise=0.02, baseline=openblas)
    other.finish_run(run, "done", 1.0)
    assert (store.merge(other_url), given(store)) == ((0, 1), given(other))
    time_again(other, run, (timed_again, timed(0.3)), noise=0.01, baseline=replace(openblas, name="oneDNN"))
    other.finish_run(run, "done", 1.0)
    assert (store.merge(other_url), given(store)) == ((0, 0), given(other))


def test_rounds_of_both_are_kept_and_the_quietest_counts(store: Store, other: Store, other_url: str) -> None:
    run = begin(other)
    trial = add(other, run, 0, outcome(timed(0.5)))
    store.merge(other_url)
    (mine,) = store.trials(TrialQuery())
    ours, theirs = (Baseline(name, 1, timed(0.3)) for name in ("OpenBLAS", "oneDNN"))
    time_again(store, mine.run, (mine.id, timed(0.4)), noise=0.02, baseline=ours)
    time_again(other, run, (trial, timed(0.3)), noise=0.01, baseline=theirs)
    time_again(other, run, (trial, timed(0.2)), noise=0.0, unreliable="load")
    for _ in range(2):
        assert store.merge(other_url) == (0, 0)
        assert [each.quality.noise for each in store.rounds(mine.run)] == [0.02, 0.01, 0.0]
        assert store.trial(mine.id).final == timed(0.3)
        found = store.run(mine.run)
        assert (found.baseline, found.noise, found.reliability.unreliable) == (theirs, 0.01, "")


def test_an_outcome_that_is_here_is_kept(store: Store, other: Store, other_url: str) -> None:
    run = begin(other)
    pending = other.propose(run, 0, 0, CANDIDATE)
    store.merge(other_url)
    (here,) = store.runs()
    (mine,) = store.proposals(here.id)
    store.record(mine.id, outcome(timed(0.5)), SCRIPT)
    store.finish_run(here.id, "done", 9.0)
    other.record(pending, outcome(Failure(Stage.RUN, "time limit of 10 s")), SCRIPT)
    time_again(other, run, (pending, timed(0.1)))
    other.finish_run(run, "interrupted", 3.0)
    assert (store.merge(other_url), store.trial(mine.id).record) == ((0, 0), outcome(timed(0.5)))
    assert store.trial(mine.id).final is None
    assert (store.run(here.id).status, store.run(here.id).seconds) == ("done", 9.0)


def test_a_time_that_an_earlier_failure_replaces_ranks_no_trial(
    store: Store, other: Store, other_url: str
) -> None:
    run = begin(other)
    pending = [other.propose(run, number, number, CANDIDATE) for number in range(2)]
    store.merge(other_url)
    (here,) = store.runs()
    other.record(pending[0], outcome(Failure(Stage.RUN, "no")), SCRIPT)
    for mine, seconds in zip(store.proposals(here.id), (0.1, 0.2), strict=True):
        store.record(mine.id, outcome(timed(seconds)), SCRIPT)
    store.finish_run(here.id, "done", 9.0)
    store.merge(other_url)
    (bound,) = store.run_bounds(TrialQuery())
    assert bound.least_s == 0.2


def test_what_was_merged_is_recalled_and_counted(store: Store, other: Store, other_url: str) -> None:
    add(other, begin(other), 0, outcome(timed(0.5)))
    store.merge(other_url)
    assert store.counts(present(store.recall(KEY, sha256(SCRIPT))).run).measured == 1


def test_a_file_that_is_not_there_is_refused_and_not_made(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be opened: No such file or directory"):
        store.merge(str(tmp_path / "absent.db"))
    assert not (tmp_path / "absent.db").exists()


@pytest.mark.postgres
def test_a_server_is_merged_into_a_file(postgres_url: str, other: Store) -> None:
    with Store.open(postgres_url) as server:
        fill(server)
        assert (other.merge(postgres_url), given(other)) == ((2, 6), given(server))


def continued(folder: Path, name: str, source: str) -> Store:
    copy = Store.open(str(folder / name))
    copy.merge(source)
    return copy


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, str]:
    """Makes three databases that begin with the same runs and went on differently."""
    folder = tmp_path_factory.mktemp("three")
    urls = tuple(str(folder / f"{name}.db") for name in "abc")
    with Store.open(urls[0]) as first:
        fill(first)
        run = begin(first)
        for number in range(4):
            add(first, run, number, None)
        first.finish_run(run, "interrupted", 1.0)
        with continued(folder, "b.db", urls[0]) as second, continued(folder, "c.db", urls[0]) as third:
            for place, store in enumerate((first, second, third)):
                own = store.runs()[0].id
                trials = store.proposals(own)
                text = f"// {place}\n"
                for trial in trials[: place + 2]:  # the same trials end differently
                    store.record(trial.id, outcome(timed(0.1 * (place + 1)), text), text)
                others = [one for one in store.trials(TrialQuery(status="measured")) if one.run != own]
                (known,) = (one for one in others if one.number == 1 and one.record.reused_from is None)
                time_again(store, own, *((trial.id, timed(0.2 + place)) for trial in trials[: place + 2]))
                again = replace(timed(0.3), interval_s=(0.3 - 0.01 * (3 - place), 0.31))
                time_again(store, known.run, (known.id, again), noise=0.03 - 0.01 * place)
                add(store, begin(store), 0, outcome(timed(float(place + 1))))
                if place == 1:
                    store.set_baseline(own, Baseline("OpenBLAS", 1, timed(0.3)))
                store.finish_run(own, "interrupted", 5.0 - place)
    return urls  # type: ignore[return-value]


# The order is the same work for both kinds: all orders into a file, the rotations into a server.
ROTATIONS = ((0, 1, 2), (1, 2, 0), (2, 0, 1))
ORDERS = [
    *(("sqlite", order) for order in itertools.permutations(range(3))),
    *(pytest.param("postgres", order, marks=pytest.mark.postgres) for order in ROTATIONS),
]


@pytest.fixture(scope="module")
def in_order(three: tuple[str, str, str], tmp_path_factory: pytest.TempPathFactory) -> Content:
    with Store.open(str(tmp_path_factory.mktemp("in_order") / "all.db")) as store:
        for url in three:
            store.merge(url)
        return content(store)


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("url", "order"), ORDERS, indirect=["url"])
def test_three_databases_give_the_same_in_any_order(
    store: Store, three: tuple[str, str, str], order: tuple[int, ...], in_order: Content
) -> None:
    for place in order:
        store.merge(three[place])
    assert content(store) == in_order
    for place in order:
        assert store.merge(three[place]) == (0, 0)
    assert content(store) == in_order


def content(store: Store) -> Content:
    return tuple(sorted(map(repr, each)) for each in given(store))


# A copy of a database that others write to, and what is left of it when it is pruned.


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


def test_a_copy_that_cannot_be_written_is_reported_and_no_file_replaced(store: Store, tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_text("mine")
    for file, message in (
        (tmp_path / "copy.db", r"copy\.db: exists already"),
        (tmp_path / "none" / "copy.db", "no such directory"),
        (Path("/proc/copy.db"), r"/proc/\S*copy\.db\S*: "),
    ):
        with pytest.raises(UsageError, match=message):
            store.backup(file)
    assert (tmp_path / "copy.db").read_text() == "mine"


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


def test_top_trials_stay_and_others_go_with_their_scripts_but_not_of_later_runs(store: Store) -> None:
    run = prune_fill(store)
    now = datetime.datetime.now(datetime.UTC)
    assert store.prune(now - datetime.timedelta(days=1)).trials == 0
    before = past_trials(store, TrialQuery(best=True))
    assert store.prune(now + datetime.timedelta(days=1)) == Pruned(trials=3, scripts=2, programs=0)
    assert (numbers(store, run), past_trials(store, TrialQuery(best=True))) == ([1, 2], before)
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
    assert (store.prune().trials, past_trials(store, TrialQuery(best=True))) == (6, before)
    assert [numbers(store, run) for run in runs] == [[3], [3]]


def test_runs_that_may_go_on_stay_whole_and_what_is_only_verified_stays(store: Store) -> None:
    for status in ("running", "interrupted"):
        run = prune_fill(store, status)
        assert (store.prune(), numbers(store, run)) == (Pruned(0, 0, 0), [0, 1, 2, 3, 4])
    run = begin(store)
    add(store, run, 0, outcome(Verdict(0.5, 4)))
    add(store, run, 1, outcome(TOO_WIDE))
    store.finish_run(run, "done", 1.0)
    assert (store.prune().trials, numbers(store, run)) == (1, [0])


def test_an_outcome_that_stays_keeps_the_trial_that_it_is_from(store: Store) -> None:
    source_run = begin(store)
    slow = add(store, source_run, 0, outcome(timed(0.9), "// a\n"), "// a\n")
    add(store, source_run, 1, outcome(timed(0.1)))
    add(store, source_run, 2, replace(outcome(timed(0.9), "// b\n"), reused_from=slow), "// b\n")
    store.finish_run(source_run, "done", 1.0)
    reusing_run = begin(store)
    add(store, reusing_run, 0, replace(outcome(timed(0.9)), reused_from=slow))
    store.finish_run(reusing_run, "done", 1.0)
    assert (store.prune().trials, numbers(store, source_run)) == (1, [0, 1])
    (reused,) = store.trials(TrialQuery(run=reusing_run))
    assert reused.record.reused_from == slow


def test_programs_that_no_trial_names_go(store: Store) -> None:
    run = begin(store)
    for number, sha in enumerate(("a0", "a1")):
        add(
            store, run, number, replace(outcome(timed(0.5 - 0.1 * number), artifact=sha), kernel_code=PROGRAM)
        )
    store.finish_run(run, "done", 1.0)
    assert store.prune() == Pruned(trials=1, scripts=0, programs=1)
    (kept,) = store.trials(TrialQuery())
    assert store.code(kept.id) == PROGRAM


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
