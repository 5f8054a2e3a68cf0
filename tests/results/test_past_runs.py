"""Past trials by what users say of them."""

import datetime
import gc
import importlib.util
import sys
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.run_differences import differences
from tests.trials import measurement, run, top_trial, trial
from tests.tuning import fakes
from tuner.analysis.ratios import Comparable, NotComparable
from tuner.core.candidate import Candidate
from tuner.core.errors import Failure, Stage, UsageError
from tuner.core.queries import TrialQuery
from tuner.core.records import Verdict
from tuner.core.trials import StoredTrial
from tuner.db import rows
from tuner.db import store as db_store
from tuner.db.store import Store
from tuner.results.database_name import database_text, naming_database, which_database
from tuner.results.differences import trial_difference
from tuner.results.output.json_documents import listed_document
from tuner.results.past_runs import Trials, each_past_trial, page_of_trials, past_trials
from tuner.results.queries import trial_query

NOON = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)


def test_conditions_may_be_said_in_any_way_and_an_unknown_one_is_refused() -> None:
    for since in (NOON, NOON.replace(tzinfo=None), "2026-01-31T12:00"):
        assert trial_query(since=since).since == NOON
    for text, stored in (("f32", ""), ("f64", ""), ("f16", "f16"), ("", ""), (None, None)):
        assert trial_query(output=text).task.output == stored
    with pytest.raises(UsageError, match="history: found 'color', allowed operation, shape"):
        trial_query(color="red")


OTHER = Candidate("another", (("only_here", "x"),))
SLOW, FAILED = trial(4, measurement(2e-3)), trial(5, Failure(Stage.VERIFY, "wrong"))


def test_a_row_has_the_columns_of_the_csv_and_a_frame_needs_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Trials((SLOW, FAILED)).rows()
    assert (first["trial"], first["shape"], first["median_s"]) == (104, "8x8x8", 2e-3)
    assert (first["knob.knob_0"], first["status"], first["stage"]) == (4, "measured", None)
    assert (second["median_s"], second["stage"], second["reason"]) == (None, "verify", "wrong")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match=r"^missing dependency 'pandas'; pip install pandas$"):
        Trials((SLOW,)).to_frame()


@pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="pandas is optional")
def test_a_frame_has_a_row_per_trial() -> None:
    frame = Trials((SLOW, FAILED)).to_frame()
    assert list(frame["trial"]) == [104, 105]
    assert frame["knob.knob_0"].sum() == 9


RUN = run()
FAST = trial(1, measurement(1e-3), measurement(1e-3), knobs=2)
SLOWER = top_trial(2, measurement(2e-3))


def test_knobs_that_one_does_not_have_differ_and_the_second_is_compared_with_the_first() -> None:
    found = trial_difference(RUN, FAST, SLOWER, (), ())
    assert found.knobs == (("knob_0", 1, 2), ("knob_1", 1, None))
    assert isinstance(found.compared, Comparable)
    assert found.compared.longer == pytest.approx(1.0)
    assert trial_difference(RUN, FAST, FAILED, (), ()).compared is None
    for other in (replace(FAST, final=None), replace(FAST, run=4)):
        found = trial_difference(RUN, other, SLOWER, (), ())
        assert found.compared == NotComparable("not timed interleaved in one round")


def test_only_stages_that_both_have_are_compared_and_the_first_that_differs_is_named() -> None:
    ours = (("script", "a\nb\nc"), ("payload", "p"), ("code", "    llvm.store %2, %1"))
    found = trial_difference(RUN, FAST, SLOWER, ours, (("script", "a\nx\nc\nd"), ("payload", "p")))
    script, payload = found.stages
    assert (script.stage, script.added, script.removed) == ("script", 2, 1)
    assert (payload.stage, payload.lines) == ("payload", ())
    assert (found.first_stage, found.instructions) == ("script", ())
    ours = (("script", "a"), ("loops", "b"), ("code", "c"))
    theirs = (("script", "a"), ("loops", "x"), ("code", "y"))
    assert trial_difference(RUN, FAST, SLOWER, ours, theirs).first_stage == "loops"
    assert trial_difference(RUN, FAST, SLOWER, ours, ours).first_stage is None
    store, load = "    llvm.store %2, %1\n", "    %3 = llvm.load %1\n"
    found = trial_difference(RUN, FAST, SLOWER, (("code", store * 2 + load),), (("code", store + load * 9),))
    assert found.instructions == (("load", 1, 9), ("store", 2, 1))


# Runs are compared trial by trial.

FIRST = (trial(0, measurement(1.0)), trial(1, Failure(Stage.RUN, "no")), trial(2, measurement(2.0)))


def with_record(**changes: object) -> StoredTrial:
    return replace(FIRST[0], record=replace(FIRST[0].record, **changes))  # type: ignore[arg-type]


def test_everything_else_counts_once_per_trial() -> None:
    for what, other in {
        "row": replace(FIRST[0], row=9),
        "final": replace(FIRST[0], final=measurement(2.0)),
        "outcome": with_record(outcome=measurement(1.5)),
        "verdict": with_record(verdict=Verdict(0.5, 64)),
        "code": with_record(artifact_sha256="other"),
        "script": with_record(script_sha256="other"),
        "reused from": with_record(reused_from=101),
    }.items():
        (found,) = differences(FIRST, (other, *FIRST[1:]))
        assert (found.number, found.what) == (0, what)
        assert found.text.startswith(f"trial 0: {what}: ")


def test_a_trial_that_one_run_lacks_is_a_difference_and_ids_and_clocks_are_none() -> None:
    assert [each.number for each in differences(FIRST, FIRST[:2])] == [2]
    assert [each.number for each in differences(FIRST[:1], FIRST)] == [1, 2]
    assert differences(FIRST, tuple(replace(one, id=one.id + 50, run=9) for one in FIRST)) == ()


def test_origins_are_compared_by_number() -> None:
    ours = (FIRST[0], replace(with_record(reused_from=100), id=101, number=1))
    theirs = tuple(replace(one, id=one.id + 50) for one in ours)
    moved = replace(theirs[1], record=replace(theirs[1].record, reused_from=150))
    assert differences(ours, (theirs[0], moved)) == ()
    assert "trial 100 of another run" in differences(ours, theirs)[0].second


# Which database is meant: the one named, that of the environment, the user's own.


def test_a_name_counts_then_the_environment_then_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNER_DB", "other.db")
    assert which_database("named.db") == which_database(Path("named.db")) == "named.db"
    assert which_database("") == ""
    assert which_database(None) == "other.db"
    monkeypatch.setenv("TUNER_DB", "")
    assert which_database(None).endswith("tuner/tuner.db")
    monkeypatch.delenv("TUNER_DB")
    assert which_database(None).endswith("tuner/tuner.db")
    with pytest.raises(UsageError, match=r"^database: found 3, allowed a file's path or a URL$"):
        which_database(3)  # type: ignore[arg-type]


def test_the_next_command_names_it_without_a_password() -> None:
    for named, options in {
        None: "",
        "a b.db": " --db 'a b.db'",
        Path("a.db"): " --db a.db",
        "me@home.db": " --db me@home.db",
        "postgresql://me@host/results": " --db postgresql://me@host/results",
        "postgresql://me:secret@host/results": " --db URL",
        "postgresql://me:sec@ret@host/results": " --db URL",
        "postgresql://me@host/results?password=secret": " --db URL",
        "postgresql:///results?host=host&user=me&password=secret": " --db URL",
    }.items():
        assert database_text(named) == options


def test_the_advice_of_an_error_names_it() -> None:
    for name, advice, message in (
        ("a.db", ("tuner tune",), r"nothing; tuner tune --db a\.db$"),
        (None, ("tuner tune",), r"nothing; tuner tune$"),
        ("a.db", (), r"^nothing$"),
    ):
        with pytest.raises(UsageError, match=message), naming_database(name):
            raise UsageError("nothing", *advice)


# A page of a long history: what it shows is read, and nothing else.


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Gives a database of three runs of 12 trials, which the tests of this file only read."""
    with Store.open(str(tmp_path_factory.mktemp("history") / "results.db")) as opened:
        for seed in range(3):
            fakes.tune(opened, trials=12, seed=seed)
        yield opened


@pytest.mark.parametrize("sort", ["created", "-created", "median", "-median", "number"])
@pytest.mark.parametrize("conditions", [{}, {"strategy": "fake"}, {"status": "measured"}, {"run": 2}])
def test_a_page_is_a_part_of_what_a_query_without_a_limit_gives(
    history: Store, sort: str, conditions: dict[str, Any]
) -> None:
    query = TrialQuery(sort=sort, **conditions)
    everything = past_trials(history, query)
    page, count = page_of_trials(history, query, 5)
    assert count == len(everything) > 5
    assert page == (everything[-5:] if sort == "created" else everything[:5])
    assert page_of_trials(history, query, 1000) == (everything, count)


def test_of_a_long_history_only_the_trials_of_the_page_are_read(
    history: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20 lines of 200,000 trials took 1.9 GB: all of them were read."""
    read: list[int] = []
    trial_of = rows.trial_of

    def counted(row: Any, *others: Any) -> StoredTrial:
        read.append(row.id)
        return trial_of(row, *others)

    monkeypatch.setattr(rows, "trial_of", counted)
    for sort in ("created", "median"):
        read.clear()
        page, _ = page_of_trials(history, TrialQuery(sort=sort), 4)
        assert sorted(read) == sorted(each.id for each in page)


def test_a_listing_of_all_trials_holds_some_hundred_in_memory(
    history: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200,000 trials as JSON took 2.3 GB: all of them and all lines were made before one was printed."""
    monkeypatch.setattr(db_store, "READ_AT_ONCE", 5)
    rows_of_trials: weakref.WeakSet[Any] = weakref.WeakSet()
    trial_of = rows.trial_of

    def counted(row: Any, *others: Any) -> StoredTrial:
        rows_of_trials.add(row)
        return trial_of(row, *others)

    monkeypatch.setattr(rows, "trial_of", counted)
    most = 0
    listed: list[int] = []
    for found in each_past_trial(history, TrialQuery()):
        if len(listed) % 6 == 0:  # a collection takes a tenth of a second
            gc.collect()
            most = max(most, len(rows_of_trials))
        listed.append(listed_document(found, ())["trial"])
    assert len(listed) > 30
    assert most <= 10
    assert listed == [each.id for each in past_trials(history, TrialQuery())]


@pytest.mark.parametrize("sort", ["created", "-median"])
@pytest.mark.parametrize("conditions", [{}, {"best": True}, {"limit": 7}, {"run": 2}])
def test_a_streamed_listing_is_what_is_read_at_once(
    history: Store, sort: str, conditions: dict[str, Any]
) -> None:
    query = TrialQuery(sort=sort, **conditions)
    assert tuple(each_past_trial(history, query)) == past_trials(history, query)
    with pytest.raises(UsageError, match="run: found 9, allowed 1 to 3"):
        each_past_trial(history, replace(query, run=9, best=False, limit=None))


@pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="pandas is optional")
def test_a_frame_is_what_pandas_makes_of_rows_with_other_knobs() -> None:
    pandas = importlib.import_module("pandas")
    trials = Trials((SLOW, replace(FAILED, record=replace(FAILED.record, candidate=OTHER)), SLOW))
    pandas.testing.assert_frame_equal(trials.to_frame(), pandas.DataFrame(trials.rows()))
