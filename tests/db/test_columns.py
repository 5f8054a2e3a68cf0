import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.dialects import sqlite

from tuner.db.columns import Compressed, PlainText, UtcDateTime, plain

DIALECT = sqlite.dialect()


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_text_that_can_be_stored_is_unchanged(text: str) -> None:
    assert plain(text) == text


@given(st.text(st.characters(categories=["Cs", "Lu"], include_characters="\0")))
def test_any_text_becomes_text_that_can_be_stored(text: str) -> None:
    assert "\0" not in plain(text)
    plain(text).encode("utf-8")


def test_what_cannot_be_stored_stays_visible() -> None:
    assert plain("a\0b\udc80") == r"a\x00b\udc80"
    assert PlainText().process_bind_param(None, DIALECT) is None


@given(st.datetimes(datetime.datetime(1971, 1, 1), timezones=st.timezones()))
def test_an_instant_is_stored_and_given_in_utc(time: datetime.datetime) -> None:
    column = UtcDateTime()
    stored = column.process_bind_param(time, DIALECT)
    assert stored is not None
    assert stored.tzinfo is datetime.UTC
    for reported in (stored, stored.replace(tzinfo=None), time):
        assert column.process_result_value(reported, DIALECT) == stored


def test_no_time_stays_no_time() -> None:
    assert UtcDateTime().process_bind_param(None, DIALECT) is None
    assert UtcDateTime().process_result_value(None, DIALECT) is None


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="found 2026-01-01T00:00:00 without a zone"):
        UtcDateTime().process_bind_param(datetime.datetime(2026, 1, 1), DIALECT)


@given(st.binary())
def test_compressed_bytes_come_back(content: bytes) -> None:
    stored = Compressed().process_bind_param(content, DIALECT)
    assert Compressed().process_result_value(stored, DIALECT) == content


def test_code_is_stored_smaller_and_nothing_as_nothing() -> None:
    stored = Compressed().process_bind_param(b"fma.rn.f32 %f1, %f2, %f3, %f4;\n" * 100, DIALECT)
    assert stored is not None
    assert len(stored) < 200
    assert Compressed().process_bind_param(None, DIALECT) is None
    assert Compressed().process_result_value(None, DIALECT) is None
