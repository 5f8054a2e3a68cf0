"""A node's questions to a real server that goes away, or that never was."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import pytest

from tuner.core.errors import TunerError, UsageError
from tuner.fleet import server
from tuner.fleet.server import ReconnectingSession

if TYPE_CHECKING:
    from tuner.fleet.server import Connection

Reply = TypeVar("Reply")
NOBODY = "postgresql://nobody@/none?host=/nowhere"


def asked(url: str, question: "Callable[[Connection], Reply]") -> Reply:
    """Returns the answer that a node which is to end gets."""

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
def test_a_question_whose_connection_is_lost_is_asked_again(postgres_server: str) -> None:
    lost: list[int] = []

    def selected(connection: "Connection") -> int:
        if not lost:
            lost.append(connection.info.backend_pid)
            connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return connection.info.backend_pid

    assert asked(postgres_server, selected) not in lost


@pytest.mark.postgres
def test_what_is_wrong_with_a_question_is_reported_at_once(postgres_server: str) -> None:
    calls: list[None] = []

    def refuse(_connection: "Connection") -> None:
        calls.append(None)
        raise UsageError("work: found an unknown field")

    with pytest.raises(UsageError, match=r"^work: found an unknown field$"):
        asked(postgres_server, refuse)
    assert len(calls) == 1


def test_a_server_that_stays_away_is_reported_of(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.setattr(server, "ENDING_RETRY_LIMIT_S", 0.0)
    with pytest.raises(
        TunerError, match=r"^fleet: its database went away: fleet: its database does not answer"
    ):
        asked(NOBODY, lambda connection: connection.info.backend_pid)
