"""Moments and spans of time as people say them."""

import datetime

import pytest

from tuner.core.errors import UsageError
from tuner.core.moments import parse_moment, parse_seconds, with_zone


def test_a_moment_is_utc_unless_it_says_otherwise() -> None:
    assert parse_moment("2026-01-31") == datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC)
    assert parse_moment("2026-01-31T12:00+02:00").utcoffset() == datetime.timedelta(hours=2)


def test_a_moment_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="since: found 'now', allowed such as"):
        parse_moment("now")


def test_a_moment_without_a_zone_is_in_utc() -> None:
    assert with_zone(datetime.datetime(2026, 1, 31)) == datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60), ("5m", 300), ("1.5h", 5400), ("7", 7), ("0.5s", 0.5)]
)
def test_budgets(text: str, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "0", "-5s", "5 s", "1d", "1e9", "nan", "9" * 400])
def test_a_budget_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"budget: found .*, allowed a time such as 60s, 5m or 1h"):
        parse_seconds(text)
