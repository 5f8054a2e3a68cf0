"""Dates and durations as users write them."""

import datetime
import re

from tuner.core.errors import UsageError

UNIT_S = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_moment(text: str, name: str = "since") -> datetime.datetime:
    """Returns the moment of an ISO 8601 date or time, in UTC unless the text has a zone.

    Raises UsageError for other text; its message begins with ``name``.
    """
    try:
        return with_zone(datetime.datetime.fromisoformat(text))
    except ValueError as error:
        raise UsageError(f"{name}: found {text!r}, allowed such as 2026-01-31 or 2026-01-31T12:00") from error


def with_zone(moment: datetime.datetime) -> datetime.datetime:
    """Returns ``moment`` with a time zone: unchanged where it has one, else taken as UTC."""
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)


def utc_text(moment: datetime.datetime) -> str:
    """Returns a moment as ISO 8601 in UTC, in whole seconds: 2026-01-31T12:00:00Z."""
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_seconds(text: str) -> float:
    """Returns the seconds of a duration such as ``60s``, ``5m``, ``1.5h`` or ``90`` (seconds).

    Raises UsageError for other text and for 0.
    """
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)([smh]?)", text)
    seconds = float(match[1]) * UNIT_S[match[2]] if match else 0.0
    if not seconds > 0:
        raise UsageError(f"budget: found {text!r}, allowed a time such as 60s, 5m or 1h")
    return seconds
