"""The store over SQLite and PostgreSQL alike."""

import datetime
import math
from dataclasses import replace
from functools import partial

import pytest

from tests.db.values import (
    CANDIDATE,
    COMPILER,
    MACHINE,
    PROBLEM,
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
from tuner.core.candidate import Candidate
from tuner.core.errors import Failure, Stage, UsageError
from tuner.core.matmul import Matmul
from tuner.core.queries import Counts, TrialQuery
from tuner.core.records import HostConditions, Measurement, Verdict
from tuner.core.reliability import RELIABLE, unreliable
from tuner.core.roofline import Roofline
from tuner.core.runs import Baseline, LibraryTime
from tuner.core.trials import Proposal
from tuner.db.database import REVISIONS
from tuner.db.store import Store


def test_a_run_begins_as_running_with_nothing_measured_and_the_latest_is_reported_first(store: Store) -> None:
    before = datetime.datetime.now(datetime.UTC)
    run = store.run(begin(store))
    assert before <= run.created <= datetime.datetime.now(datetime.UTC)
    assert run.created.tzinfo is datetime.UTC
    assert (run.machine, run.compiler, run.tuner_version) == (MACHINE, COMPILER, "0.1.0")
    assert (run.status, run.seconds, run.noise, run.baseline) == ("running", None, None, None)
    second, third = begin(store), begin(store)
    assert [each.id for each in store.runs()] == [third, second, run.id]
    assert [each.id for each in store.runs(2)] == [third, second]


def test_seconds_of_a_run_and_of_its_search_add_up(store: Store) -> None:
    run = begin(store)
    store.finish_run(run, "interrupted", 2.5)
    assert (store.run(run).status, store.run(run).seconds) == ("interrupted", 2.5)
    store.resume_run(run)
    assert store.run(run).status == "running"
    store.finish_run(run, "done", 1.0)
    assert (store.run(run).status, store.run(run).seconds) == ("done", 3.5)
    run = begin(store)
    store.record(store.propose(run, 0, 7, CANDIDATE), outcome(timed(1.0)), SCRIPT, run_seconds=2.5)
    assert store.run(run).seconds == 2.5
    store.finish_run(run, "done", 0.5)
    assert store.run(run).seconds == 3.0
    run = begin(store)
    assert store.run(run).idle_share is None
    store.add_search(run, 3.0, 1.0)
    store.add_search(run, 1.0, 0.0)
    assert (store.run(run).search_s, store.run(run).idle_s, store.run(run).idle_share) == (4.0, 1.0, 0.25)


def test_a_roofline_and_a_baseline_before_the_first_round_are_stored_and_replaced(store: Store) -> None:
    run = begin(store)
    assert store.run(run).roofline is None
    for roofline in (Roofline(1e11, 1e10), Roofline(2e11, 1e10, "a document")):
        store.set_roofline(run, roofline)
        assert store.run(run).roofline == roofline
    with pytest.raises(UsageError, match=r"run: found 99, allowed 1 to 1"):
        store.set_roofline(99, roofline)
    for median_s in (0.2, 0.1):
        baseline = Baseline("OpenBLAS 0.3.30 SkylakeX", 1, timed(median_s))
        store.set_baseline(run, baseline)
        assert store.run(run).baseline == baseline


def test_a_roofline_is_known_where_a_run_on_the_same_machine_has_it(store: Store) -> None:
    asking, quiet = begin(store), begin(store)
    measured, later = begin(store), begin(store)
    assert store.known_roofline(asking) is None
    store.set_roofline(measured, Roofline(1e11, 1e10))
    time_again(store, quiet, noise=0.005)
    assert store.known_roofline(asking) == Roofline(1e11, 1e10)
    assert store.known_roofline(quiet) is None  # nothing was timed there: it may have been disturbed
    time_again(store, measured, noise=0.01, unreliable="load")
    assert store.known_roofline(quiet) is None
    time_again(store, measured, noise=0.005)
    assert store.known_roofline(quiet) == Roofline(1e11, 1e10)
    store.set_roofline(later, Roofline(9e10, 1e10))
    assert store.known_roofline(asking) == Roofline(1e11, 1e10)  # a quiet one is better than the latest
    f64 = replace(SETTINGS, problem=replace(PROBLEM, dtype="f64"))
    others = [begin(store, settings) for settings in (replace(SETTINGS, threads=3), f64)]
    others.append(begin(store, machine=replace(MACHINE, logical_cores=77)))
    assert [store.known_roofline(other) for other in others] == [None, None, None]
    # with quantized activations i8 is multiplied, whatever the type of A in memory is
    plain, quantized = (
        Matmul(1, 64, 64, weights="i4", group_size=64, activations=each) for each in ("", "i8")
    )
    by_f32, by_i8 = (begin(store, replace(SETTINGS, problem=each)) for each in (plain, quantized))
    assert store.known_roofline(by_f32) == Roofline(1e11, 1e10)
    assert store.known_roofline(by_i8) is None
    store.set_roofline(by_i8, Roofline(1e12, 1e10))
    assert store.known_roofline(by_f32) == Roofline(1e11, 1e10)
    assert store.known_roofline(begin(store, replace(SETTINGS, problem=quantized))) == Roofline(1e12, 1e10)


def test_the_choice_of_a_baseline_and_the_times_it_was_chosen_by_are_stored(store: Store) -> None:
    run = begin(store, replace(SETTINGS, baseline_library="best"))
    mkl = LibraryTime("mkl", "MKL 2026.2 avx512", 0.1, (0.1, 0.2))
    libraries = (mkl, LibraryTime("blis", "", failure="exited with SIGSEGV"))
    alone = Baseline("MKL 2026.2 avx512", 1, timed(0.1), libraries=libraries)
    store.set_baseline(run, alone)
    assert (store.run(run).settings.baseline_library, store.run(run).baseline) == ("best", alone)
    trial = add(store, run, 0, outcome(timed(0.5)))
    together = replace(alone, measurement=timed(0.2), is_interleaved=True, libraries=libraries[::-1])
    time_again(store, run, (trial, timed(0.4)), noise=0.02, baseline=together)
    assert store.run(run).baseline == together


def test_each_round_is_kept_and_the_quietest_answers(store: Store) -> None:
    run = begin(store)
    trial = add(store, run, 0, outcome(timed(0.5)))
    quiet, loud, quieter = (Baseline(name, 1, timed(0.3)) for name in ("quiet", "loud", "quieter"))
    store.set_baseline(run, loud)
    time_again(store, run, (trial, timed(0.4)), noise=0.02, baseline=quiet)
    time_again(store, run, (trial, timed(0.1)), noise=0.3, baseline=loud)
    time_again(store, run, (trial, timed(0.2)), noise=0.001, unreliable="load", baseline=loud)
    time_again(store, run, (trial, timed(0.35)), noise=0.02, baseline=loud)  # as quiet as an earlier one
    found, given = store.trial(trial), store.run(run)
    assert (found.final, found.best_s) == (timed(0.4), 0.4)
    assert found.reliability == unreliable("found 3 samples, 6 are needed")
    assert (given.noise, given.baseline, given.reliability.unreliable) == (0.02, quiet, "")
    assert found.record == outcome(timed(0.5))
    time_again(store, run, (trial, timed(0.3)), noise=0.01, baseline=quieter)
    found, given = store.trial(trial), store.run(run)
    assert (found.final, given.noise, given.baseline) == (timed(0.3), 0.01, quieter)
    assert [each.number for each in store.rounds(run)] == [1, 2, 3, 4, 5]
    assert [each.is_answering for each in store.rounds(run)] == [False] * 4 + [True]


def test_an_unreliable_round_counts_without_another_and_one_of_no_run_is_refused(store: Store) -> None:
    run = begin(store)
    trial = add(store, run, 0, outcome(timed(0.5)))
    time_again(store, run, (trial, timed(0.4)), unreliable="load")
    assert store.trial(trial).reliability.unreliable == store.run(run).reliability.unreliable == "load"
    assert store.run(run).baseline is None
    for ask in (store.rounds, partial(time_again, store)):
        with pytest.raises(UsageError, match=r"run: found 99, allowed 1 to 1"):
            ask(99)
    with pytest.raises(UsageError, match=r"trial: found 7, allowed 1 to 1"):
        time_again(store, run, (7, timed(0.1)))
    assert len(store.rounds(run)) == 1


def test_each_time_says_whether_the_machine_was_quiet_while_it_was_taken(store: Store) -> None:
    quiet = HostConditions(0.1, 0.0, 0.0, 0.0, 0.0, 1e-3, 0.0)
    first_times = {
        "quiet": quiet,
        "loaded": replace(quiet, others_cores=3.0, waited_share=0.4),
        "slower clock": replace(quiet, reference_s=1.5e-3),
        "no readings": None,  # an old database, or a GPU
    }
    run = begin(store)
    trials = {
        name: add(store, run, number, outcome(replace(timed(0.5), host=host)))
        for number, (name, host) in enumerate(first_times.items())
    }
    time_again(store, run, (trials["quiet"], replace(timed(0.4), samples_s=(0.4,) * 6)), noise=0.01)
    found = {name: store.trial(trial).reliability for name, trial in trials.items()}
    assert {name: each.word for name, each in found.items()} == {
        "quiet": "reliable",  # timed again, in a quiet round
        "loaded": "unreliable",
        "slower clock": "unreliable",
        "no readings": "unknown",
    }
    assert "other programs kept 3.0 processors busy" in found["loaded"].reason
    assert "the reference kernel was slower than earlier by 50%" in found["slower clock"].reason
    stored = {each.id: each.reliability.word for each in store.trials(TrialQuery(run=run))}
    assert stored == {trials[name]: each.word for name, each in found.items()}
    assert store.run(run).reliability == RELIABLE


def test_a_proposal_without_outcome_is_no_trial_yet(store: Store) -> None:
    run = begin(store)
    done = store.trial(add(store, run, 0, outcome(timed(1.0))))
    proposed = store.propose(run, 3, 17, CANDIDATE)
    first, second = store.proposals(run)
    assert (first.trial, first.number, first.row) == (done, 0, done.row)
    assert second == Proposal(proposed, 3, 17, CANDIDATE, None)
    assert store.trials(TrialQuery(run=run)) == (done,)
    with pytest.raises(UsageError, match=rf"^trial {proposed}: was proposed, .*; tuner tune --resume {run}$"):
        store.trial(proposed)


def test_a_number_is_proposed_once_per_run_and_its_outcome_stored_once(store: Store) -> None:
    run = begin(store)
    store.propose(run, 0, 1, CANDIDATE)
    with pytest.raises(UsageError, match=f"trial 0 was proposed already: another process works on run {run}"):
        store.propose(run, 0, 2, CANDIDATE)
    assert store.propose(begin(store), 0, 2, CANDIDATE)
    trial = add(store, begin(store), 0, outcome(TOO_WIDE))
    with pytest.raises(UsageError, match=f"trial {trial} has an outcome already"):
        store.record(trial, outcome(timed(1.0)), SCRIPT)
    assert store.trial(trial).record == outcome(TOO_WIDE)
    trial = store.propose(begin(store), 0, 0, CANDIDATE)
    other = replace(outcome(TOO_WIDE), candidate=Candidate.of("matmul_cpu_direct", {"tile_m": 4}))
    with pytest.raises(ValueError, match=r"found an outcome of matmul_cpu_direct\(tile_m=4\)"):
        store.record(trial, other, SCRIPT)


def test_a_script_that_does_not_match_its_hash_is_refused(store: Store) -> None:
    trial = store.propose(begin(store), 0, 0, CANDIDATE)
    for hash_, text in ((sha256(SCRIPT), "another text"), ("", SCRIPT), (sha256(SCRIPT), "")):
        with pytest.raises(ValueError, match="script: found hash"):
            store.record(trial, replace(outcome(TOO_WIDE), script_sha256=hash_), text)
    assert store.trials(TrialQuery()) == ()


def test_a_time_that_is_no_number_is_refused(store: Store) -> None:
    run = begin(store)
    trial = store.propose(run, 0, 0, CANDIDATE)
    for bad in (math.nan, math.inf):
        with pytest.raises(ValueError, match="allowed finite seconds"):
            store.record(trial, outcome(Measurement((0.1, bad), 1, 0.1, (0.1, 0.1))), SCRIPT)
        with pytest.raises(ValueError, match="allowed finite seconds"):
            store.set_baseline(run, Baseline("OpenBLAS", 1, Measurement((0.1,), 1, 0.1, (0.1, bad))))
    assert (store.proposals(run)[0].trial, store.run(run).baseline) == (None, None)


def test_a_verdict_of_nan_and_a_reason_with_bytes_that_are_no_text_are_stored_visibly(store: Store) -> None:
    wrong = replace(outcome(Failure(Stage.VERIFY, "element (0, 1) is NaN")), verdict=Verdict(math.nan, 4))
    verdict = store.trial(add(store, begin(store), 0, wrong)).record.verdict
    assert verdict is not None
    assert math.isnan(verdict.max_error)
    assert verdict.elements == 4
    record = outcome(Failure(Stage.COMPILE, "crashed: \0\udcff"))
    found = store.trial(add(store, begin(store), 0, record)).record
    assert found.outcome == Failure(Stage.COMPILE, r"crashed: \x00\udcff")


def test_an_unknown_id_names_those_that_exist(store: Store) -> None:
    run = begin(store)
    trial = add(store, run, 0, None)
    for number in (0, -1, 99, 2**40, 2**63, -(10**30)):
        with pytest.raises(UsageError, match=f"^trial: found {number}, allowed {trial} to {trial}$"):
            store.trial(number)
        for call in (store.run, store.counts, store.resume_run):
            with pytest.raises(UsageError, match=f"^run: found {number}, allowed {run} to {run}$"):
                call(number)
        with pytest.raises(UsageError, match=f"^run: found {number}, "):
            store.propose(number, 0, 0, CANDIDATE)


def test_a_call_that_is_refused_says_why_and_leaves_nothing_behind(store: Store) -> None:
    with pytest.raises(UsageError, match=r"^run: found 1, allowed none: the database has no run$"):
        store.run(1)
    with pytest.raises(UsageError, match="a number does not fit 64 bits"):
        begin(store, replace(SETTINGS, seed=2**63))
    run = begin(store)
    with pytest.raises(ValueError, match="found 'perfect', allowed running, done, interrupted"):
        store.finish_run(run, "perfect", 1.0)
    trial = store.propose(run, 0, 0, CANDIDATE)
    with pytest.raises(UsageError, match="a number does not fit 64 bits"):
        store.record(trial, outcome(Measurement((1.0,), 2**63, 1.0, (1.0, 1.0))), SCRIPT)
    assert store.proposals(run)[0].trial is None


def test_counts_report_what_became_of_a_run_and_a_reused_outcome_names_its_trial(store: Store) -> None:
    run = begin(store)
    assert store.counts(run) == Counts()
    add(store, run, 1, replace(outcome(timed(1.0)), reused_from=add(store, run, 0, outcome(timed(1.0)))))
    add(store, run, 2, outcome(Verdict(0.5, 4)))
    add(store, run, 3, outcome(TOO_WIDE))
    add(store, run, 4, None)
    add(store, begin(store), 0, outcome(TOO_WIDE))
    assert store.counts(run) == Counts(proposed=5, measured=2, verified=1, failed=1, reused=1)
    run = begin(store)
    reused = replace(outcome(timed(1.0)), reused_from=add(store, run, 0, outcome(timed(1.0))))
    assert store.trial(add(store, run, 1, reused)).record == reused


def test_equal_problems_machines_and_scripts_are_stored_once(store: Store) -> None:
    for _ in range(2):
        add(store, begin(store), 0, outcome(timed(1.0)))
    found = store.info()
    assert (found.runs, found.trials, found.problems) == (2, 2, (PROBLEM.key,))
    assert found.revision == REVISIONS[-1]
