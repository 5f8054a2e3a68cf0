"""What history asks, over SQLite and PostgreSQL alike."""

import datetime
import sqlite3
from contextlib import closing
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from tests.db.values import (
    COMPILER,
    KEY,
    MACHINE,
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
from tests.statement_cache import statements
from tests.tuning.fakes import present
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import TIMED_OUT, Failure, Stage, UsageError
from tuner.core.matmul import Matmul
from tuner.core.queries import TaskQuery, TrialQuery
from tuner.core.records import Measurement, Verdict
from tuner.db.address import parse_address
from tuner.db.database import open_engine
from tuner.db.models import ProblemRow
from tuner.db.queries import bounds, trials_of_query
from tuner.db.store import Store
from tuner.results.past_runs import past_trials

OTHER = Matmul(64, 128, 256, "f64", "nt", "bias_relu")
DIRECT = Candidate.of("matmul_cpu_direct", {"tile_m": 4})
DESKTOP = replace(MACHINE, name="Ryzen 9 avx2", isa="avx2")


@dataclass(frozen=True)
class Past:
    slow: int  # 0.4 s, then 0.3 s as a finalist
    fast: int  # 0.2 s, then 0.25 s as a finalist
    failed: int
    verified: int
    other: int  # another problem, strategy, number of threads: 0.1 s
    desktop: int  # another machine: 0.5 s


@pytest.fixture(scope="module")
def past(shared_store: Store) -> Past:
    return fill(shared_store)


def fill(store: Store) -> Past:
    here = begin(store)
    outcomes = (outcome(timed(0.4)), outcome(timed(0.2)), outcome(TOO_WIDE), outcome(Verdict(0.1, 4)))
    slow, fast, failed, verified = (add(store, here, n, each) for n, each in enumerate(outcomes))
    add(store, here, 4, None)  # proposed: its outcome never arrived
    time_again(store, here, (slow, timed(0.3)), (fast, timed(0.25)), noise=0.02)
    there = begin(store, replace(SETTINGS, problem=OTHER, threads=2))
    other = add(store, there, 0, replace(outcome(timed(0.1)), candidate=DIRECT))
    desktop = add(store, begin(store, machine=DESKTOP), 5, outcome(timed(0.5)))
    return Past(slow, fast, failed, verified, other, desktop)


def query_of(**options: Any) -> TrialQuery:
    of_task = {field.name for field in fields(TaskQuery)} & options.keys()
    return TrialQuery(TaskQuery(**{name: options.pop(name) for name in of_task}), **options)


def ids(store: Store, **options: Any) -> list[int]:
    query = query_of(**options)
    return [trial.id for trial in (past_trials(store, query) if query.best else store.trials(query))]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, "slow fast failed verified other desktop"),
        ({"operation": "matmul"}, "slow fast failed verified other desktop"),
        ({"operation": "conv"}, ""),
        ({"shape": "64x128x256"}, "other"),
        ({"dtype": "f64"}, "other"),
        ({"layout": "nn"}, "slow fast failed verified desktop"),
        ({"epilogue": "bias_relu"}, "other"),
        ({"align": "16"}, "slow fast failed verified other desktop"),
        ({"align": "64"}, ""),
        ({"cache": "warm"}, "slow fast failed verified other desktop"),
        ({"cache": "cold"}, ""),
        ({"target": "cpu", "threads": 2}, "other"),
        ({"target": "cuda"}, ""),
        ({"machine": DESKTOP.name}, "desktop"),
        ({"strategy": "matmul_cpu_direct"}, "other"),
        ({"strategy": "\0' OR 1=1 --"}, ""),
        ({"status": "measured"}, "slow fast other desktop"),
        ({"status": "verified"}, "verified"),
        ({"status": "failed"}, "failed"),
        ({"status": "measured", "machine": MACHINE.name, "shape": "512x512x512"}, "slow fast"),
        ({"limit": 2}, "slow fast"),
        ({"sort": "-created", "limit": 2}, "desktop other"),
        ({"sort": "median", "limit": 4}, "other fast slow desktop"),
        ({"sort": "-median", "limit": 4}, "desktop slow fast other"),
        ({"sort": "-number", "limit": 2}, "desktop verified"),
        ({"best": True}, "fast other desktop"),
        ({"best": True, "machine": MACHINE.name, "threads": 1}, "fast"),
        ({"best": True, "status": "failed"}, ""),
        ({"best": True, "sort": "median", "limit": 1}, "other"),
    ],
    ids=str,
)
def test_a_query_finds_exactly_what_it_asks_for(
    shared_store: Store, past: Past, options: Any, names: str
) -> None:
    assert ids(shared_store, **options) == [getattr(past, name) for name in names.split()]


def test_trials_of_a_run_or_since_a_time_in_any_zone_are_found(shared_store: Store, past: Past) -> None:
    assert ids(shared_store, run=shared_store.trial(past.other).run) == [past.other]
    assert ids(shared_store, run=2**40) == []
    created = shared_store.trial(past.other).created
    east = created.astimezone(datetime.timezone(datetime.timedelta(hours=9)))
    assert ids(shared_store, since=east) == [past.other, past.desktop]
    assert ids(shared_store, since=created + datetime.timedelta(days=1)) == []


def test_the_best_is_the_first_of_equally_fast_trials_and_none_that_was_cut_short(store: Store) -> None:
    run = begin(store)
    add(store, run, 0, outcome(timed(0.1, is_complete=False)))
    whole = add(store, run, 1, outcome(timed(0.2)))
    assert ids(store, best=True) == [whole]
    run = begin(store, replace(SETTINGS, problem=OTHER))
    first = add(store, run, 0, outcome(timed(0.2)))
    add(store, run, 1, replace(outcome(timed(0.2)), reused_from=first))
    assert ids(store, best=True) == [whole, first]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"status": "ok"}, "^status: found 'ok', allowed measured, verified, failed$"),
        ({"sort": "speed"}, "^sort: found 'speed', allowed created, median, number, "),
        ({"sort": "--median"}, "^sort: found '--median'"),
        ({"limit": -1}, "^limit: found -1, allowed 1 or more$"),
        ({"limit": 0}, "^limit: found 0, allowed 1 or more$"),
        ({"threads": 10**30}, "a number does not fit 64 bits"),
    ],
    ids=str,
)
def test_a_query_with_a_wrong_word_says_what_is_allowed(
    shared_store: Store, options: Any, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        shared_store.trials(query_of(**options))


@pytest.mark.slow
def test_many_trials_are_reported_with_few_questions(store: Store) -> None:
    run = begin(store)
    for number in range(20):
        add(store, run, number, outcome(timed(1.0), f"// {number}"), f"// {number}")
    with statements() as asked:
        assert [trial.script_text for trial in store.trials(TrialQuery())] == [f"// {i}" for i in range(20)]
    assert len(asked) <= 6


def test_a_stale_time_is_the_best_of_nothing_and_stays_in_history(store: Store) -> None:
    run = begin(store)
    fast, slow = (add(store, run, number, outcome(timed(s))) for number, s in enumerate((0.1, 0.2)))
    time_again(store, run, (fast, timed(0.1)), noise=0.02)
    store.mark_stale(fast, "fails at stage verify")
    assert [trial.id for trial in past_trials(store, TrialQuery(best=True))] == [slow]
    time_again(store, run, (fast, timed(0.05)), noise=0.01)
    assert [trial.id for trial in past_trials(store, TrialQuery(best=True))] == [slow]
    assert store.trial(fast).stale == "fails at stage verify"
    assert {trial.id for trial in store.trials(TrialQuery())} == {fast, slow}


def test_the_best_is_not_asked_of_sql_alone_and_of_a_shape_of_an_index(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^best: found True, allowed in tuner\.results\.best_trials$"):
        trials_of_query(TrialQuery(best=True))
    with Store.open(str(tmp_path / "plan.db")) as store:
        add(store, begin(store), 0, outcome(timed(0.1)))
    bound = bounds(TrialQuery(TaskQuery(shape="512x512x512")))
    statement = bound.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True})
    with closing(sqlite3.connect(tmp_path / "plan.db")) as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
    assert any("ix_trial_run_id_ranked_s" in step for step in plan)
    assert not [step for step in plan if step.startswith(("SCAN trial", "SCAN measurement"))]


# Which outcome of the past holds for a candidate.


@pytest.mark.drawn(2)
@pytest.mark.parametrize("result", [timed(0.5), Verdict(0.25, 4096)], ids=["timed", "verified"])
def test_a_known_outcome_is_recalled_by_script_or_code(store: Store, result: Measurement | Verdict) -> None:
    known = add(store, begin(store), 0, outcome(result, artifact="c0de"))
    for script, artifact in ((sha256(SCRIPT), None), (None, "c0de"), (sha256(SCRIPT), "c0de")):
        found = present(store.recall(KEY, script, artifact))
        assert (found.id, found.record) == (known, outcome(result, artifact="c0de"))


def test_nothing_is_recalled_without_equal_code_or_under_another_key(store: Store) -> None:
    add(store, begin(store), 0, outcome(timed(0.5), artifact="c0de"))
    add(store, begin(store), 0, replace(outcome(TOO_WIDE), script_sha256=""), script="")
    for script, artifact in (("", ""), (sha256("another"), ""), ("", "beef"), (sha256(SCRIPT), "beef")):
        assert store.recall(KEY, script, artifact) is None
    assert store.recall(KEY) is None
    others: dict[str, Any] = {
        "machine": "Ryzen 9 avx2",
        "compiler": replace(COMPILER, mlir="LLVM 22"),
        "threads": 2,
    }
    others |= {"problem": Matmul(512, 512, 513), "target": TargetName("simulator")}
    for name, other in others.items():
        assert store.recall(replace(KEY, **{name: other}), sha256(SCRIPT)) is None
    assert store.recall(KEY, sha256(SCRIPT)) is not None


def test_other_sources_know_equal_code_and_no_script_and_another_verifier_knows_neither(store: Store) -> None:
    add(store, begin(store), 0, outcome(timed(0.5), artifact="c0de"))
    edited = replace(KEY, compiler=replace(COMPILER, pipeline_sha256="cd" * 32))
    assert store.recall(edited, sha256(SCRIPT)) is None
    assert store.recall(edited, None, "c0de") is not None
    verified = replace(KEY, compiler=replace(COMPILER, verifier="2"))
    assert store.recall(verified, sha256(SCRIPT)) is None
    assert store.recall(verified, None, "c0de") is None


@pytest.mark.drawn(2)
@pytest.mark.parametrize("stage", Stage)
def test_failures_are_recalled_when_they_would_repeat(store: Store, stage: Stage) -> None:
    add(store, begin(store), 0, outcome(Failure(stage, "why")))
    found = store.recall(KEY, sha256(SCRIPT))
    repeats = stage in (Stage.BIND, Stage.COMPILE, Stage.RESOURCES, Stage.VERIFY)
    assert (found and found.record) == (outcome(Failure(stage, "why")) if repeats else None)


def test_a_timeout_of_a_compiler_is_not_recalled(store: Store) -> None:
    add(store, begin(store), 0, outcome(Failure(Stage.COMPILE, f"{TIMED_OUT} 30 s: ptxas")))
    assert store.recall(KEY, sha256(SCRIPT)) is None


def test_the_latest_outcome_is_recalled_unless_it_is_incomplete_pending_reused_or_stale(store: Store) -> None:
    run = begin(store)
    add(store, run, 0, outcome(timed(0.5, is_complete=False)))
    add(store, run, 1, None)
    original = add(store, run, 2, outcome(timed(0.4)))
    add(store, run, 3, replace(outcome(timed(0.4)), reused_from=original))
    assert present(store.recall(KEY, sha256(SCRIPT))).id == original
    latest = add(store, begin(store), 0, outcome(timed(0.6)))
    assert present(store.recall(KEY, sha256(SCRIPT))).id == latest
    for known in (latest, original):
        store.mark_stale(known, "the code is another one now")
    assert store.recall(KEY, script_sha256=sha256(SCRIPT)) is None


def test_runs_with_an_epilogue_of_another_version_are_left_out_and_counted(store: Store, url: str) -> None:
    fill(store)
    known = store.count_of_trials(TrialQuery())
    run = begin(store, replace(SETTINGS, problem=replace(OTHER, epilogue="bias_gelu")))
    add(store, run, 0, outcome(timed(0.1)))
    engine = open_engine(parse_address(url))
    with engine.begin() as connection:
        of_run = sa.update(ProblemRow).where(ProblemRow.epilogue == "bias_gelu")
        connection.execute(of_run.values(epilogue="softplus", key="matmul 64x128x256 f64 nt softplus"))
    engine.dispose()
    assert store.unknown_problems() == (("matmul 64x128x256 f64 nt softplus", 1),)
    assert run not in {each.id for each in store.runs()}
    assert len(past_trials(store, TrialQuery())) == store.count_of_trials(TrialQuery()) == known
    with pytest.raises(UsageError, match=r"^matmul .* softplus: this version does not know that problem: ep"):
        store.run(run)
