from pathlib import Path

import pytest

from tuner.core.errors import UsageError
from tuner.db.address import FileAddress, ServerAddress, parse_address


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/data/tuner.db", "/data/tuner.db"),
        ("sqlite:////data/tuner.db", "/data/tuner.db"),
        ("/data/50% of a/tu?ner#.db", "/data/50% of a/tu?ner#.db"),
        ("~/tuner.db", f"{Path.home()}/tuner.db"),
        ("postgres/tuner.db", f"{Path.cwd()}/postgres/tuner.db"),
        ("sqlite.db", f"{Path.cwd()}/sqlite.db"),
        ("./postgresql:a", f"{Path.cwd()}/postgresql:a"),
        ("/data/a:b@c.db", "/data/a:b@c.db"),
        ("tuner.db", f"{Path.cwd()}/tuner.db"),
        ("sqlite:///tuner.db", f"{Path.cwd()}/tuner.db"),
    ],
)
def test_a_path_or_sqlite_url_means_a_file(text: str, path: str) -> None:
    assert parse_address(text) == FileAddress(Path(path))


def test_a_file_is_shown_as_its_url() -> None:
    assert FileAddress(Path("/data/tuner.db")).shown == "sqlite:////data/tuner.db"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_every_spelling_of_postgresql_means_psycopg(scheme: str) -> None:
    address = parse_address(f"{scheme}://me@host:5433/results?sslmode=require")
    assert isinstance(address, ServerAddress)
    expected = "postgresql+psycopg://me@host:5433/results?sslmode=require"
    assert address.url.render_as_string(hide_password=False) == expected


def test_a_password_is_kept_but_never_shown() -> None:
    address = parse_address("postgresql://me:secret@host/results")
    assert isinstance(address, ServerAddress)
    assert address.url.password == "secret"
    assert address.shown == "postgresql+psycopg://me:***@host/results"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "^database: found '', allowed a file's path, "),
        ("a\0b", r"^database: found 'a\\x00b', allowed"),
        ("mysql://host/results", "^database: found a mysql URL, allowed"),
        ("postgresql+asyncpg://host/results", r"found a postgresql\+asyncpg URL, allowed"),
        ("postgresql://me:secret@host:port/results", "found a malformed postgresql URL, allowed"),
        ("://", "found a malformed  URL, allowed"),
        ("sqlite://", "^database: found sqlite://, allowed"),
        ("sqlite:///:memory:", "found sqlite:///:memory:, allowed"),
        ("sqlite:///a.db?mode=ro", r"found sqlite:///a.db\?mode=ro, allowed"),
        ("sqlite://host/a.db", "found sqlite://host/a.db, allowed"),
        (
            "postgresql//me:secret@host/results",
            "found a mistyped URL, allowed .*; a file of that name: ./NAME$",
        ),
        ("postgres:/results", "found a mistyped URL"),
        ("postgresql:results", "found a mistyped URL"),
        ("mysql//results", "found a mistyped URL"),
        ("http:/results", "found a mistyped URL"),
        ("postgress://me:secret@host/results", "found a postgress URL, allowed"),
        ("me:secret@postgresql://host/results", "malformed URL, allowed"),
        ("me:secret@host/results", "found a mistyped URL"),
        ("host=host password=secret", "found a mistyped URL"),
        ("sqlite://me:secret@/a.db", r"found sqlite://me:\*\*\*@/a.db, allowed"),
        ("~nobody-of-that-name/a.db", "found '~nobody-of-that-name/a.db', allowed"),
    ],
)
def test_what_is_no_address_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        parse_address(text)
    assert "secret" not in str(refused.value)
