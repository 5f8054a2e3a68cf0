"""Past trials by what users say of them."""

import datetime

import pytest

from tests.db import values
from tuner.core.errors import UsageError
from tuner.db.store import Store
from tuner.run_history.past_runs import asked_query, past_trials

NOON = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)


@pytest.mark.parametrize("since", [NOON, NOON.replace(tzinfo=None), "2026-01-31T12:00"])
def test_a_moment_may_be_said_in_any_way(since: object) -> None:
    assert asked_query(since=since).since == NOON


@pytest.mark.parametrize(
    ("word", "stored"), [("f32", ""), ("f64", ""), ("f16", "f16"), ("", ""), (None, None)]
)
def test_c_of_its_natural_type_is_found_by_its_name(word: str | None, stored: str | None) -> None:
    assert asked_query(output=word).output == stored


def test_an_unknown_condition_is_refused() -> None:
    with pytest.raises(UsageError, match="history: found 'color', allowed operation, shape"):
        asked_query(color="red")


def test_a_trial_whose_outcome_never_arrived_is_none_to_tell(store: Store) -> None:
    run = values.begin(store)
    known = values.add(store, run, 0, values.outcome(values.timed(1e-3)))
    values.add(store, run, 1, None)
    assert [trial.id for trial in past_trials(store, asked_query(run=run))] == [known]
