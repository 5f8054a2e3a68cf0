"""Moments as people say them."""

import datetime

import pytest

from tuner.core.errors import UsageError
from tuner.core.moments import parse_moment, with_zone


def test_a_moment_is_utc_unless_it_says_otherwise() -> None:
    assert parse_moment("2026-01-31") == datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC)
    assert parse_moment("2026-01-31T12:00+02:00").utcoffset() == datetime.timedelta(hours=2)


def test_a_moment_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="since: found 'now', allowed such as"):
        parse_moment("now")


def test_a_moment_without_a_zone_is_in_utc() -> None:
    assert with_zone(datetime.datetime(2026, 1, 31)) == datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC)
