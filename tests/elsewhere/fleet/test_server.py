import asyncio
import importlib.util
from collections.abc import Callable
from typing import TypeVar

import pytest

from tests.elsewhere.fleet.values import Connection
from tuner.core.errors import TunerError, UsageError, install_extra
from tuner.elsewhere.fleet import server
from tuner.elsewhere.fleet.server import (
    KEEP_ALIVE,
    ReconnectingSession,
    as_role,
    connected,
    plain_errors,
    server_of,
)
from tuner.elsewhere.fleet.tables import FleetSettings


def test_every_spelling_of_a_server_is_taken_and_no_password_repeated_also_for_a_role() -> None:
    for scheme in ("postgres", "postgresql", "postgresql+psycopg"):
        assert server_of(f"{scheme}://me@db/t") == "postgresql://me@db/t"
    for url, found in (("runs.db", r"'runs\.db'"), ("mysql://me:secret@db/t", "a mysql URL")):
        message = rf"^fleet: found {found} as its database, allowed postgresql://"
        with pytest.raises(UsageError, match=message) as refused:
            server_of(url)
        assert "secret" not in str(refused.value)
    for url, role, found in (
        ("postgresql://me:secret@db/t", "node", "postgresql://node@db/t"),
        ("postgresql://db:5432/t?sslmode=require", "node", "postgresql://node@db:5432/t?sslmode=require"),
        ("postgresql://me@/t?host=/run/pg", "node", "postgresql://node@/t?host=/run/pg"),
        ("postgresql://me@db/t", None, "postgresql://me@db/t"),
    ):
        assert as_role(url, role) == found


def test_a_missing_extra_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"found no procrastinate and no psycopg") as refused:
        connected("postgresql://db/t")
    assert refused.value.hint == install_extra("fleet")


@pytest.mark.postgres
def test_what_the_server_refuses_is_one_line_and_vanished_machines_are_heard_of(postgres_server: str) -> None:
    with pytest.raises(UsageError, match=r"^fleet: its database does not answer: .*absent"):
        connected(postgres_server.replace("/postgres?", "/absent?"))
    with connected(postgres_server) as connection:
        with pytest.raises(TunerError, match=r"^fleet: database: syntax error"), plain_errors():
            connection.execute("SELEC 1")
        given = connection.info.get_parameters()
        assert {name: int(given[name]) for name in KEEP_ALIVE} == KEEP_ALIVE


# A node's questions to a real server that goes away, or that never was.

Reply = TypeVar("Reply")
NOBODY = "postgresql://nobody@/none?host=/nowhere"


def asked(url: str, question: Callable[[Connection], Reply]) -> Reply:
    async def once() -> Reply:
        ending = asyncio.Event()
        ending.set()
        database = ReconnectingSession(url, ending)
        try:
            return await database.ask(question)
        finally:
            database.close()

    return asyncio.run(once())


@pytest.mark.postgres
def test_a_lost_question_is_asked_again_and_a_wrong_one_reported_at_once(postgres_server: str) -> None:
    lost: list[int] = []

    def selected(connection: Connection) -> int:
        if not lost:
            lost.append(connection.info.backend_pid)
            connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return connection.info.backend_pid

    assert asked(postgres_server, selected) not in lost
    calls: list[None] = []

    def refuse(_connection: Connection) -> None:
        calls.append(None)
        raise UsageError("work: found an unknown field")

    with pytest.raises(UsageError, match=r"^work: found an unknown field$"):
        asked(postgres_server, refuse)
    assert len(calls) == 1


def test_a_server_that_stays_away_is_reported_of(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.setattr(server, "ENDING_RETRY_LIMIT_S", 0.0)
    away = r"^fleet: its database went away: fleet: its database does not answer"
    with pytest.raises(TunerError, match=away):
        asked(NOBODY, lambda connection: connection.info.backend_pid)


def test_several_heartbeats_fit_a_lease_and_one_that_they_cannot_keep_is_refused() -> None:
    assert FleetSettings(lease_s=30.0).beat_s == 10.0
    for lease_s in (0.5, 0.0, float("nan")):
        with pytest.raises(UsageError, match=r"lease: found .* s, allowed 1 s or more"):
            FleetSettings(lease_s)
