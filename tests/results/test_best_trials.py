"""One best: whatever a history holds, all that names a best trial names the same one."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from tests.db.values import COMPILER, outcome, sha256, time_again
from tests.examples import costly
from tests.tuning import fakes
from tuner.analysis.selected_result import select_result
from tuner.core.candidate import Candidate, TargetName
from tuner.core.records import Measurement, Record
from tuner.core.runs import BestGroup, StoredTrial, TrialQuery
from tuner.db.store import Store
from tuner.results.best_trials import (
    RunResult,
    best_here,
    best_known,
    best_results,
    best_trials_here,
    group_of,
    why_first_is_not_best,
)
from tuner.results.past_runs import best_results_among, past_trials
from tuner.results.report.page import gathered

PARTS = fakes.backends()
PROBLEM = fakes.settings().problem
MACHINES = (fakes.MACHINE, fakes.OTHER_MACHINE)
EXAMPLES = costly(5, 10)  # each writes two databases: half a second


@dataclass(frozen=True)
class Tried:
    """A trial of a history."""

    median_ms: int
    is_complete: bool = True
    lines: int = 1  # of its script
    is_stale: bool = False


@dataclass(frozen=True)
class Round:
    """A round of timing: what it adds to each first time, in turn; None where a trial took no part."""

    changes_ms: tuple[int | None, ...]
    noise: float
    is_unreliable: bool


@dataclass(frozen=True)
class Past:
    """A run of a history."""

    machine: int
    threads: int
    trials: tuple[Tried, ...]
    rounds: tuple[Round, ...] = ()
    is_other: bool = False  # of the database that is merged into the first


tried = st.builds(
    Tried, st.integers(8, 14), st.sampled_from((True, True, False)), st.integers(1, 3), st.just(False)
)
stale = st.builds(Tried, st.integers(8, 14), is_stale=st.just(True))
rounds = st.builds(
    Round,
    st.tuples(*[st.none() | st.integers(-1, 2)] * 4),
    st.sampled_from((0.005, 0.04, 0.3)),
    st.booleans(),
)
histories = st.lists(
    st.builds(
        Past,
        st.integers(0, 1),
        st.integers(1, 2),
        st.lists(tried | stale, min_size=1, max_size=4).map(tuple),
        st.lists(rounds, max_size=2).map(tuple),
        st.booleans(),
    ),
    min_size=1,
    max_size=5,
)


def timing(median_s: float, is_complete: bool = True) -> Measurement:
    """Returns a narrow timing: times of 4 % more are no tie of noise, of 1 % are."""
    spread = (0.99, 1.0, 1.01) if is_complete else (1.0,)
    samples_s = tuple(median_s * factor for factor in spread)
    return Measurement(samples_s, 1, median_s, (samples_s[0], samples_s[-1]), is_complete)


def record_of_tried(each: Tried, number: int) -> tuple[Record, str]:
    script = "x\n" * each.lines + f"// {number}\n"
    record = replace(
        outcome(timing(each.median_ms * 1e-3, each.is_complete)),
        problem=PROBLEM,
        candidate=Candidate.of("fake", {"x": number}),
        target=TargetName("fake"),
        script_sha256=sha256(script),
    )
    return record, script


def write(store: Store, past: Past) -> int:
    """Stores a run and returns its id."""
    chosen = fakes.settings(threads=past.threads)
    run = store.begin_run(chosen, MACHINES[past.machine], COMPILER, "0.1.0", None)
    ids = []
    for number, each in enumerate(past.trials):
        record, script = record_of_tried(each, number)
        ids.append(store.propose(run, number, number, record.candidate))
        store.record(ids[-1], record, script)
    for each_round in past.rounds:
        changes = zip(ids, past.trials, each_round.changes_ms, strict=False)
        times = [(i, timing((t.median_ms + change) * 1e-3)) for i, t, change in changes if change is not None]
        if times:
            why = "load" if each_round.is_unreliable else ""
            time_again(store, run, *times, noise=each_round.noise, unreliable=why)
    for trial, each in zip(ids, past.trials, strict=True):
        if each.is_stale:
            store.mark_stale(trial, "failed in an audit")
    store.finish_run(run, "done", 1.0)
    return run


@contextmanager
def merged(history: list[Past]) -> Iterator[tuple[Store, Store]]:
    """Gives two databases of the same runs: each merged from both halves, in another order."""
    with tempfile.TemporaryDirectory() as folder:
        urls = [str(Path(folder) / name) for name in ("first.db", "second.db")]
        with Store.open(urls[0]) as first, Store.open(urls[1]) as second:
            for past in history:
                write(second if past.is_other else first, past)
            if any(past.is_other for past in history):
                first.merge(urls[1])
            second.merge(urls[0])
            yield first, second


def by_definition(store: Store) -> dict[BestGroup, tuple[str, int]]:
    """Returns the best of each group, by reading every run: of reliable answers first the fastest."""
    found: dict[BestGroup, RunResult] = {}
    for run in store.runs():
        selected = select_result(store.trials(TrialQuery(run=run.id, sort="number")), run.noise)
        if selected is None:
            continue
        each, group = RunResult(run, selected), group_of(selected.best)
        if group not in found or each.rank < found[group].rank:
            found[group] = each
    return {group: (each.run.uuid, each.best.number) for group, each in found.items()}


def in_groups(trials: tuple[StoredTrial, ...]) -> dict[BestGroup, int]:
    assert len({group_of(trial) for trial in trials}) == len(trials)
    return {group_of(trial): trial.id for trial in trials}


FAST, SLOW, EARLY = Tried(8), Tried(12), Tried(7, is_complete=False)
LOST = Past(0, 1, (FAST, SLOW), (Round((None, 0), 0.01, False),))  # its fastest took no part in the finals


@pytest.mark.slow
@EXAMPLES
@example(history=[LOST, Past(0, 1, (Tried(10),), is_other=True), Past(0, 1, (EARLY,)), Past(1, 2, (EARLY,))])
@given(history=histories)
def test_all_that_names_a_best_trial_names_the_same(history: list[Past]) -> None:
    with merged(history) as stores:
        of_run = {run.uuid: run.id for run in stores[0].runs()}
        expected = by_definition(stores[0])
        assert by_definition(stores[1]) == expected
        store = stores[0]
        numbered = {(trial.run, trial.number): trial.id for trial in store.trials(TrialQuery())}
        best = {group: numbered[of_run[run], number] for group, (run, number) in expected.items()}
        assert in_groups(past_trials(store, TrialQuery(best=True))) == best
        assert in_groups(tuple(each.selected.best for each in gathered(store).best)) == best
        by_median = TrialQuery(sort="median")
        marked = best_results_among(store, by_median, past_trials(store, by_median))
        assert in_groups(tuple(each.best for each in marked)) == best
        here = {group: trial for group, trial in best.items() if group.machine == fakes.MACHINE.name}
        assert in_groups(best_trials_here(store, PARTS, TrialQuery())) == here
        for group, trial in best.items():
            exported = best_known(store, PARTS, PROBLEM, "fake", group.threads, group.machine)
            assert exported.best.id == trial
        for group, trial in here.items():
            assert best_here(store, PARTS, PROBLEM, "fake", group.threads).best.id == trial
        assert {group for group in best if group.machine == fakes.MACHINE.name} == set(here)


def reason(store: Store) -> str:
    trials = past_trials(store, TrialQuery(sort="median"))
    return why_first_is_not_best(store, trials, best_results_among(store, TrialQuery(sort="median"), trials))


@pytest.mark.parametrize(
    ("history", "said"),
    [
        ([Past(0, 1, (FAST, SLOW))], ""),
        (
            [Past(0, 1, (EARLY, SLOW))],
            "best: trial 2, not 1: it was early-stopped: its samples are no result",
        ),
        (
            [Past(0, 1, (replace(FAST, is_stale=True), SLOW))],
            "best: trial 2, not 1: its time no longer holds (failed in an audit)",
        ),
        ([LOST], "best: trial 2, not 1: it did not take part in the final re-measurement"),
        (
            [Past(0, 1, (replace(FAST, lines=3), FAST), (Round((0, 0, None, None), 0.01, False),))],
            "best: trial 2, not 1: trial 2 is simpler, and as fast within the noise of 1.0%",
        ),
        (
            [Past(0, 1, (FAST,), (Round((0,), 0.2, True),)), Past(0, 1, (SLOW,))],
            "best: trial 2, not 1: the timing of run 1 is unreliable (load)",
        ),
        (
            [LOST, Past(0, 1, (Tried(10),))],
            "best: trial 3, not 1: in run 1 it did not take part in the final re-measurement",
        ),
    ],
    ids=["best", "early-stopped", "stale", "no final", "simpler", "unreliable", "other run"],
)
def test_why_the_first_by_time_is_not_the_best_is_said(store: Store, history: list[Past], said: str) -> None:
    for past in history:
        write(store, past)
    assert reason(store) == said


def test_a_strategy_that_is_asked_for_has_a_best_of_its_own(store: Store) -> None:
    write(store, Past(0, 1, (FAST, SLOW)))
    assert len(past_trials(store, TrialQuery(best=True, strategy="fake"))) == 1
    assert past_trials(store, TrialQuery(best=True, strategy="other")) == ()


def test_only_the_runs_that_may_have_the_best_are_read(store: Store) -> None:
    runs = [write(store, Past(0, 1, (Tried(median_ms),))) for median_ms in (12, 8, 14)]
    read: list[int] = []

    class Noting:
        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

        def run(self, run: int) -> object:
            read.append(run)
            return store.run(run)

    found = best_results(Noting(), TrialQuery())  # type: ignore[arg-type]
    assert [each.run.id for each in found.values()] == read == [runs[1]]


def test_where_all_were_early_stopped_nothing_is_the_best(store: Store) -> None:
    write(store, Past(0, 1, (EARLY,)))
    assert past_trials(store, TrialQuery(best=True)) == ()
