"""Column types that behave the same on SQLite and PostgreSQL, and values as JSON columns."""

import datetime
import json
import zlib
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

from tuner.core.candidate import Candidate, candidate_document
from tuner.core.errors import UsageError
from tuner.core.runs import InitialConfiguration
from tuner.core.serialization import decode, with_zone


class PlainText(sa.TypeDecorator[str]):
    """A column type of SQLAlchemy for text; NUL and lone surrogates are stored as visible escapes.

    Compilers that crash may print NUL, which PostgreSQL refuses, and lone surrogates, which UTF-8 lacks.
    """

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else plain(value)


class UtcDateTime(sa.TypeDecorator[datetime.datetime]):
    """A column type of SQLAlchemy for moments: takes datetimes of any time zone, stores and returns UTC.

    SQLite stores no time zone.
    """

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(
        self, value: datetime.datetime | None, dialect: Dialect
    ) -> datetime.datetime | None:
        """Returns the moment to store, in UTC; None for None. Raises ValueError for a time without a zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"time: found {value.isoformat()} without a zone, allowed one with a zone")
        return value.astimezone(datetime.UTC)

    def process_result_value(
        self, value: datetime.datetime | None, dialect: Dialect
    ) -> datetime.datetime | None:
        """Returns a stored moment in UTC; None for NULL. A stored value without a zone is taken as UTC."""
        return None if value is None else with_zone(value).astimezone(datetime.UTC)


class Compressed(sa.TypeDecorator[bytes]):
    """A column type of SQLAlchemy for bytes that are stored compressed by zlib, such as code."""

    impl = sa.LargeBinary
    cache_ok = True

    def process_bind_param(self, value: bytes | None, dialect: Dialect) -> bytes | None:
        return None if value is None else zlib.compress(value)

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> bytes | None:
        return None if value is None else zlib.decompress(value)


def plain(text: str) -> str:
    r"""Returns the text with each NUL and lone surrogate as an escape, such as ``\x00`` and ``\udc80``."""
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")


Value = TypeVar("Value")

QUOTED_LIMIT = 80  # characters of a quoted value


def candidate_from_json(strategy: str, knobs: object) -> Candidate:
    """Returns a candidate from its strategy and JSON of its knobs. Raises UsageError for damaged knobs."""
    if not isinstance(knobs, dict) or not all(type(value) in (int, str) for value in knobs.values()):
        text = json.dumps(knobs)[:QUOTED_LIMIT]
        raise UsageError(f"database: found knobs {text}, allowed names with numbers or texts; it is damaged")
    return Candidate.of(strategy, knobs)


def initial_to_json(configuration: InitialConfiguration) -> dict[str, Any]:
    """Returns an initial configuration (proposed before the sampler's) as a JSON object to store."""
    return {
        **candidate_document(configuration.candidate),
        "origin": configuration.origin,
        "source": configuration.source,
    }


def initial_from_json(stored: dict[str, Any]) -> InitialConfiguration:
    """Returns the initial configuration of a JSON object that ``initial_to_json`` made.

    Raises UsageError for damaged knobs.
    """
    candidate = candidate_from_json(stored["strategy"], stored["knobs"])
    return InitialConfiguration(candidate, stored["origin"], stored["source"])


def json_value(type_: type[Value], stored: object) -> Value | None:
    """Returns the value of type ``type_`` of a JSON column, as ``encode`` wrote it; None for NULL.

    Raises UsageError for JSON that does not fit the type.
    """
    return None if stored is None else decode(type_, stored, f"database: {type_.__name__}")
