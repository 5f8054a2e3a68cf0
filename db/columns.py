"""Column types that behave the same on SQLite and on PostgreSQL."""

import datetime
import zlib

import sqlalchemy as sa
from sqlalchemy.engine import Dialect


class PlainText(sa.TypeDecorator[str]):
    """Text that both databases can store; other characters are stored as visible escapes.

    The reason of a failure may quote what a crashed compiler printed: PostgreSQL stores no NUL, UTF-8 has no
    lone surrogates.
    """

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Returns the text as it is stored."""
        return None if value is None else plain(value)


class UtcDateTime(sa.TypeDecorator[datetime.datetime]):
    """A moment: stored from any time zone, read as UTC. SQLite stores no zone, so UTC is stored there."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(
        self, value: datetime.datetime | None, dialect: Dialect
    ) -> datetime.datetime | None:
        """Returns the moment in UTC. Raises ValueError for a time without a zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"time: found {value.isoformat()} without a zone, allowed one with a zone")
        return value.astimezone(datetime.UTC)

    def process_result_value(
        self, value: datetime.datetime | None, dialect: Dialect
    ) -> datetime.datetime | None:
        """Returns the moment in UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            return value.replace(tzinfo=datetime.UTC)
        return value.astimezone(datetime.UTC)


class Compressed(sa.TypeDecorator[bytes]):
    """Bytes that are stored compressed by zlib, such as code."""

    impl = sa.LargeBinary
    cache_ok = True

    def process_bind_param(self, value: bytes | None, dialect: Dialect) -> bytes | None:
        """Returns the compressed bytes."""
        return None if value is None else zlib.compress(value)

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> bytes | None:
        """Returns the uncompressed bytes."""
        return None if value is None else zlib.decompress(value)


def plain(text: str) -> str:
    r"""Returns the text with NUL and lone surrogates as ``\x00`` and ``\udc80``."""
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")
