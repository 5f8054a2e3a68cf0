import importlib.util

import pytest

from tuner.core.errors import TunerError, UsageError
from tuner.fleet.server import KEEP_ALIVE, as_role, connected, plain_errors, server_of


@pytest.mark.parametrize(
    "url", ["postgres://me@db/t", "postgresql://me@db/t", "postgresql+psycopg://me@db/t"]
)
def test_every_spelling_of_a_server_is_taken(url: str) -> None:
    assert server_of(url) == "postgresql://me@db/t"


@pytest.mark.parametrize(
    ("url", "found"), [("runs.db", r"'runs\.db'"), ("mysql://me:secret@db/t", "a mysql URL")]
)
def test_another_database_is_refused_and_no_password_repeated(url: str, found: str) -> None:
    with pytest.raises(UsageError, match=rf"^fleet: found {found} as its database, allowed postgresql://"):
        server_of(url)


@pytest.mark.parametrize(
    ("url", "role", "found"),
    [
        ("postgresql://me:secret@db/t", "node", "postgresql://node@db/t"),
        ("postgresql://db:5432/t?sslmode=require", "node", "postgresql://node@db:5432/t?sslmode=require"),
        ("postgresql://me@/t?host=/run/pg", "node", "postgresql://node@/t?host=/run/pg"),
        ("postgresql://me@db/t", None, "postgresql://me@db/t"),
    ],
)
def test_a_role_has_the_same_address(url: str, role: str | None, found: str) -> None:
    assert as_role(url, role) == found


def test_a_missing_extra_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        UsageError, match=r"found no procrastinate and no psycopg; in a clone: pip install -e '\.\[fleet\]'$"
    ):
        connected("postgresql://db/t")


@pytest.mark.postgres
def test_what_the_server_refuses_is_one_line(postgres_server: str) -> None:
    with pytest.raises(UsageError, match=r"^fleet: its database does not answer: .*absent"):
        connected(postgres_server.replace("/postgres?", "/absent?"))
    with (
        connected(postgres_server) as connection,
        pytest.raises(TunerError, match=r"^fleet: database: syntax error"),
        plain_errors(),
    ):
        connection.execute("SELEC 1")


@pytest.mark.postgres
def test_a_connection_hears_of_a_machine_that_vanished(postgres_server: str) -> None:
    with connected(postgres_server) as connection:
        given = connection.info.get_parameters()
        assert {name: int(given[name]) for name in KEEP_ALIVE} == KEEP_ALIVE
