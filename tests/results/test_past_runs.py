"""Past trials by what users say of them."""

import datetime
import importlib.util
import sys

import pytest

from tests import trials as made
from tests.db import values
from tuner.core.errors import Failure, Stage, UsageError
from tuner.db.store import Store
from tuner.results.past_runs import Trials, asked_query, past_trials

NOON = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)


@pytest.mark.parametrize("since", [NOON, NOON.replace(tzinfo=None), "2026-01-31T12:00"])
def test_a_moment_may_be_said_in_any_way(since: object) -> None:
    assert asked_query(since=since).since == NOON


@pytest.mark.parametrize(
    ("text", "stored"), [("f32", ""), ("f64", ""), ("f16", "f16"), ("", ""), (None, None)]
)
def test_c_of_its_natural_type_is_found_by_its_name(text: str | None, stored: str | None) -> None:
    assert asked_query(output=text).task.output == stored


def test_an_unknown_condition_is_refused() -> None:
    with pytest.raises(UsageError, match="history: found 'color', allowed operation, shape"):
        asked_query(color="red")


def test_a_trial_whose_outcome_never_arrived_is_none_to_tell(store: Store) -> None:
    run = values.begin(store)
    known = values.add(store, run, 0, values.outcome(values.timed(1e-3)))
    values.add(store, run, 1, None)
    assert [trial.id for trial in past_trials(store, asked_query(run=run))] == [known]


SLOW, FAILED = made.trial(4, made.measurement(2e-3)), made.trial(5, Failure(Stage.VERIFY, "wrong"))


def test_a_row_has_the_columns_of_the_csv_and_one_of_each_knob() -> None:
    first, second = Trials((SLOW, FAILED)).rows()
    assert (first["trial"], first["shape"], first["median_s"]) == (104, "8x8x8", 2e-3)
    assert (first["knob.knob_0"], first["status"], first["stage"]) == (4, "measured", None)
    assert (second["median_s"], second["stage"], second["reason"]) == (None, "verify", "wrong")


def test_without_pandas_its_installation_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match=r"^missing dependency 'pandas'; pip install pandas$"):
        Trials((SLOW,)).to_frame()


@pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="pandas is optional")
def test_a_frame_has_a_row_per_trial() -> None:
    frame = Trials((SLOW, FAILED)).to_frame()
    assert list(frame["trial"]) == [104, 105]
    assert frame["knob.knob_0"].sum() == 9
