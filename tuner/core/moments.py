"""Moments as people say them."""

import datetime

from tuner.core.errors import UsageError


def parse_moment(text: str, name: str = "since") -> datetime.datetime:
    """Reads a date or a moment, in UTC unless it says otherwise. Raises UsageError."""
    try:
        return with_zone(datetime.datetime.fromisoformat(text))
    except ValueError as error:
        raise UsageError(f"{name}: found {text!r}, allowed such as 2026-01-31 or 2026-01-31T12:00") from error


def with_zone(moment: datetime.datetime) -> datetime.datetime:
    """Returns the moment, in UTC where it names no zone."""
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)


def utc_text(moment: datetime.datetime) -> str:
    """Returns a moment as ISO 8601 in UTC, whole seconds."""
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
