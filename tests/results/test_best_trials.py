"""One best: whatever a history holds, all that names a best trial names the same one."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from tests.db.values import COMPILER, outcome, time_again
from tests.examples import costly
from tests.trials import trial
from tests.tuning import fakes
from tuner.analysis.ratios import Comparable, NotComparable
from tuner.analysis.selected_result import select_result
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import UsageError
from tuner.core.interfaces import Script
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.queries import BestGroup, TrialQuery
from tuner.core.records import Measurement, Verdict
from tuner.core.trials import StoredTrial
from tuner.db.store import Store
from tuner.results import best_trials
from tuner.results.best_trials import best_here, best_known, best_result, best_results, best_stock, group_of
from tuner.results.output.run_result import other_cache_lines
from tuner.results.past_runs import best_results_among, past_trials
from tuner.results.report.page import gathered
from tuner.targets.backends import Backends
from tuner.targets.target import TargetStatus

PARTS = fakes.backends()
EIGHT = Matmul(8, 8, 8)
MACHINES = (fakes.MACHINE, fakes.OTHER_MACHINE)
EXAMPLES = costly(5, 10)  # each writes two databases: half a second


@dataclass(frozen=True)
class Tried:
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
    machine: int
    threads: int
    trials: tuple[Tried, ...]
    rounds: tuple[Round, ...] = ()
    is_other: bool = False  # of the database that is merged into the first


tried = st.builds(Tried, st.integers(8, 14), st.sampled_from((True, True, False)), st.integers(1, 3))
stale = st.builds(Tried, st.integers(8, 14), is_stale=st.just(True))
changes = st.tuples(*[st.none() | st.integers(-1, 2)] * 4)
rounds = st.lists(st.builds(Round, changes, st.sampled_from((0.005, 0.04, 0.3)), st.booleans()), max_size=2)
some = st.lists(tried | stale, min_size=1, max_size=4).map(tuple)
pasts = st.builds(Past, st.integers(0, 1), st.integers(1, 2), some, rounds.map(tuple), st.booleans())
histories = st.lists(pasts, min_size=1, max_size=5)


def timing(median_s: float, is_complete: bool = True) -> Measurement:
    """Returns a narrow timing: times of 4 % more are not a tie within noise, of 1 % are."""
    samples_s = tuple(median_s * factor for factor in ((0.99, 1.0, 1.01) if is_complete else (1.0,)))
    return Measurement(samples_s, 1, median_s, (samples_s[0], samples_s[-1]), is_complete)


def write(store: Store, past: Past) -> int:
    chosen = fakes.settings(threads=past.threads)
    run = store.begin_run(chosen, MACHINES[past.machine], COMPILER, "0.1.0", None)
    ids = []
    for number, each in enumerate(past.trials):
        script = "x\n" * each.lines + f"// {number}\n"
        candidate = Candidate.of("fake", {"x": number})
        timed = outcome(timing(each.median_ms * 1e-3, each.is_complete), script)
        record = replace(timed, problem=EIGHT, candidate=candidate, target=TargetName("fake"))
        ids.append(store.propose(run, number, number, candidate))
        store.record(ids[-1], record, script)
    for each_round in past.rounds:
        changes = zip(ids, past.trials, each_round.changes_ms, strict=False)
        times = [(i, timing((t.median_ms + change) * 1e-3)) for i, t, change in changes if change is not None]
        if times:
            why = "load" if each_round.is_unreliable else ""
            time_again(store, run, *times, noise=each_round.noise, unreliable=why)
    for number, each in zip(ids, past.trials, strict=True):
        if each.is_stale:
            store.mark_stale(number, "failed in an audit")
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
    found: dict[BestGroup, best_trials.RunResult] = {}
    for run in store.runs():
        selected = select_result(store.trials(TrialQuery(run=run.id, sort="number")), run.noise)
        if selected is None:
            continue
        each, group = best_trials.RunResult(run, selected), group_of(selected.best)
        if group not in found or each.rank < found[group].rank:
            found[group] = each
    return {group: (each.run.uuid, each.best.number) for group, each in found.items()}


def in_groups(trials: tuple[StoredTrial, ...]) -> dict[BestGroup, int]:
    assert len({group_of(trial) for trial in trials}) == len(trials)
    return {group_of(trial): trial.id for trial in trials}


FAST, SLOW, EARLY = Tried(8), Tried(12), Tried(7, is_complete=False)
STALE = replace(FAST, is_stale=True)
LOST = Past(0, 1, (FAST, SLOW), (Round((None, 0), 0.01, False),))  # its fastest took no part in the finals
TIED = Past(0, 1, (replace(FAST, lines=3), FAST), (Round((0, 0, None, None), 0.01, False),))
DISTURBED = Past(0, 1, (FAST,), (Round((0,), 0.2, True),))


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
        assert in_groups(best_trials.best_trials_here(store, PARTS, TrialQuery())) == here
        for group, trial in best.items():
            assert best_known(store, PARTS, EIGHT, "fake", group.threads, group.machine).best.id == trial
        for group, trial in here.items():
            assert best_here(store, PARTS, EIGHT, "fake", group.threads).best.id == trial
        assert {group for group in best if group.machine == fakes.MACHINE.name} == set(here)


@pytest.mark.parametrize(
    ("history", "best", "why"),
    [
        ([Past(0, 1, (EARLY, SLOW))], 2, "it was early-stopped: its samples are not a result"),
        ([Past(0, 1, (STALE, SLOW))], 2, "its time no longer holds (failed in an audit)"),
        ([LOST], 2, "it did not take part in the final re-measurement"),
        ([TIED], 2, "trial 2 is simpler, and as fast within the noise of 1.0%"),
        ([DISTURBED, Past(0, 1, (SLOW,))], 2, "the timing of run 1 is unreliable (load)"),
        ([LOST, Past(0, 1, (Tried(10),))], 3, "in run 1 it did not take part in the final re-measurement"),
        ([Past(0, 1, (FAST, SLOW))], 1, ""),
    ],
    ids=["early-stopped", "stale", "no final", "simpler", "unreliable", "other run", "best"],
)
def test_why_the_fastest_is_not_the_best(store: Store, history: list[Past], best: int, why: str) -> None:
    for past in history:
        write(store, past)
    by_median = TrialQuery(sort="median")
    trials = past_trials(store, by_median)
    said = best_trials.why_first_is_not_best(store, trials, best_results_among(store, by_median, trials))
    assert said == (f"best: trial {best}, not 1: {why}" if why else "")


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


def test_a_strategy_has_a_best_of_its_own_but_early_stopped_trials_have_none(store: Store) -> None:
    write(store, Past(0, 1, (EARLY,)))
    assert past_trials(store, TrialQuery(best=True)) == ()
    write(store, Past(0, 1, (FAST, SLOW)))
    assert len(past_trials(store, TrialQuery(best=True, strategy="fake"))) == 1
    assert past_trials(store, TrialQuery(best=True, strategy="other")) == ()


def test_what_was_not_measured_is_named_with_what_to_type(store: Store) -> None:
    fakes.tune(store, trials=2)
    nine, here, nothing = Matmul(9, 9, 9), "fake", "nothing measured"
    for problem, machine, message, *of in (
        (Matmul(9, 8, 8), here, f"9x8x8 f32 nn none: {nothing} yet; tuner tune"),
        (EIGHT, here, r"yet; tuner tune matmul 8x8x8 --threads 2 --target fake$", "fake", 2),
        (EIGHT, here, f"cpu with threads=4: {nothing} yet", "cpu", 4),
        (EIGHT, "mine", f"{nothing} on 'mine', only on fake; .* --machine, in Python with machine=$"),
        (replace(EIGHT, align="64"), here, f"{nothing} with align=64, only with align=16; .* --align 16, in"),
        (replace(nine, align="any"), here, r"with align=any: .* yet; tuner tune matmul 9x9x9 --align any$"),
        (replace(EIGHT, cache="cold"), here, f"{nothing} with cache=cold, only with .* --cache warm, in Py"),
        (replace(nine, cache="cold"), here, "with cache=cold: .* yet; tuner tune matmul 9x9x9 --cache cold$"),
    ):
        with pytest.raises(UsageError, match=message):
            best_result(store, problem, machine, *of)  # type: ignore[arg-type]


def test_what_is_only_verified_is_named_and_the_hint_keeps_a_type(store: Store) -> None:
    fakes.tune(store, fakes.untimed_backends(), trials=3, target=TargetName("simulator"))
    with pytest.raises(UsageError, match=r"only verified, .* trial is 3 of run 1; tuner export --trial 3$"):
        best_result(store, EIGHT, fakes.MACHINE.name)
    statuses = tuple(TargetStatus(name, True, "") for name in ("cpu", "simulator"))
    with pytest.raises(UsageError, match=r"yet; tuner tune matmul 8x8x8 --dtype f16 --target simulator$"):
        best_here(store, fakes.backends(statuses), Matmul(8, 8, 8, dtype="f16"), "auto")


def test_auto_is_the_first_target_here_that_has_an_answer(store: Store) -> None:
    backends = fakes.backends(tuple(TargetStatus(name, True, "") for name in ("idle", "fake")))
    tuned = fakes.tune(store, backends, trials=2)
    for text in ("auto", "fake"):
        assert best_here(store, backends, EIGHT, text).best == (tuned.selected and tuned.selected.best)
    with pytest.raises(UsageError, match="idle: nothing measured yet"):
        best_here(store, backends, EIGHT, "idle")
    with pytest.raises(UsageError, match="target: found 'tpu', allowed auto, idle, fake"):
        best_here(store, backends, EIGHT, "tpu")


OWN_FASTEST = fakes.backends(bind=lambda *_: fakes.bind_with_custom_op)


def tuned(store: Store, parts: Backends = PARTS, trials: int = 20, problem: Problem = EIGHT) -> StoredTrial:
    """Returns the best of a run that tries the initial configurations of the space in their order."""
    best = fakes.tune(store, parts, trials=trials, sampler="exhaustive", problem=problem).best
    assert best is not None
    return best


def knob_x(found: best_trials.BestStock) -> object:
    return dict(found.trial.record.candidate.choices)["x"]


def test_a_portable_winner_is_its_own_stand_in_and_what_was_not_timed_has_none(store: Store) -> None:
    winner = tuned(store)
    found = best_stock(store, winner)
    assert found.trial is winner
    assert isinstance(found.compared, NotComparable)
    assert found.compared.is_equal
    with pytest.raises(UsageError, match="--stock: trial 104 was not timed"):
        best_stock(store, trial(4, Verdict(0.0, 1)))


def test_the_fastest_script_without_custom_ops_comes_with_its_slowdown(store: Store) -> None:
    found = best_stock(store, tuned(store, OWN_FASTEST))
    assert knob_x(found) in (6, 8)
    assert isinstance(found.compared, Comparable)
    assert (found.compared.longer, *found.compared.longer_interval) == pytest.approx((1.0, 1.0, 1.0))


@pytest.mark.slow
def test_another_runs_script_is_taken_where_it_is_faster_without_a_ratio(store: Store) -> None:
    tuned(store)
    winner = tuned(store, OWN_FASTEST)
    found = best_stock(store, winner)
    assert found.trial.run != winner.run
    assert knob_x(found) == 7
    assert found.compared == NotComparable("not timed interleaved in one round")


def test_where_all_timed_scripts_call_custom_ops_they_are_named(store: Store) -> None:
    def bind(chosen: Candidate) -> Script:
        return fakes.bind_with_custom_op(Candidate.of("fake", dict(chosen.choices) | {"x": 7}))

    winner = tuned(store, fakes.backends(bind=lambda *_: bind), trials=3)
    message = (
        r"--stock: matmul 8x8x8 f32 nn none: all 3 timed scripts call ops of tuner \(tuner\.fast\); more"
    )
    with pytest.raises(UsageError, match=message):
        best_stock(store, winner)


@pytest.mark.slow
def test_another_winner_of_another_state_is_a_line_and_the_same_one_is_none(store: Store) -> None:
    cold = replace(EIGHT, cache="cold")
    first, best = tuned(store, trials=1, problem=cold), tuned(store)
    assert first.record.script_sha256 != best.record.script_sha256
    (other,) = best_trials.other_winners(store, best)
    assert other.id == first.id
    (line,) = other_cache_lines([other])
    assert line.startswith(f"caches    cold: trial {first.id} is the best, fake")
    tuned(store, problem=cold)
    assert best_trials.other_winners(store, best) == ()
    assert other_cache_lines(()) == []
