"""Column types that mean the same on SQLite and on PostgreSQL."""

import datetime
import zlib

import sqlalchemy as sa
from sqlalchemy.engine import Dialect


class PlainText(sa.TypeDecorator[str]):
    """Text that both databases take: what they cannot hold is written as a visible escape.

    A reason may quote what a crashed compiler printed: PostgreSQL has no NUL, UTF-8 no lone surrogates.
    """

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Returns the text as it is stored."""
        return None if value is None else plain(value)


class UtcDateTime(sa.TypeDecorator[datetime.datetime]):
    """An instant: takes any time zone, gives UTC. SQLite keeps no zone, so it is given UTC only."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(
        self, value: datetime.datetime | None, dialect: Dialect
    ) -> datetime.datetime | None:
        """Raises ValueError for a time without a zone: it names no instant."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"time: found {value.isoformat()} without a zone, allowed one with a zone")
        return value.astimezone(datetime.UTC)

    def process_result_value(
        self, value: datetime.datetime | None, dialect: Dialect
    ) -> datetime.datetime | None:
        """Returns the instant in UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            return value.replace(tzinfo=datetime.UTC)
        return value.astimezone(datetime.UTC)


class Compressed(sa.TypeDecorator[bytes]):
    """Bytes that shrink a lot, as code does: stored compressed."""

    impl = sa.LargeBinary
    cache_ok = True

    def process_bind_param(self, value: bytes | None, dialect: Dialect) -> bytes | None:
        """Returns the bytes as they are stored."""
        return None if value is None else zlib.compress(value)

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> bytes | None:
        """Returns the bytes as they were."""
        return None if value is None else zlib.decompress(value)


def plain(text: str) -> str:
    r"""Returns the text with NUL and lone surrogates as ``\x00`` and ``\udc80``."""
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")
