"""Fixtures: databases of their own, since the engine's wake-ups reach all that listen in one."""

import itertools
import uuid
from collections.abc import Iterator

import pytest

from tests.elsewhere.fleet.values import Connection
from tuner.elsewhere.fleet.install import install
from tuner.elsewhere.fleet.server import session
from tuner.elsewhere.fleet.tables import FleetSettings

NAMES = (f"fleet_{number}" for number in itertools.count())
LEASE_S = 3.0


def new_database(server: str) -> str:
    name = next(NAMES)
    with session(server) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return server.replace("/postgres?", f"/{name}?")


def new_fleet(server: str, lease_s: float = LEASE_S) -> str:
    """Returns the address of a new fleet, whose leases end soon by default."""
    url = new_database(server)
    install(url, FleetSettings(lease_s))
    return url


@pytest.fixture
def empty_url(postgres_server: str) -> str:
    return new_database(postgres_server)


@pytest.fixture
def fleet_url(postgres_server: str) -> str:
    return new_fleet(postgres_server)


@pytest.fixture(scope="module")
def shared_url(postgres_server: str) -> str:
    """Returns the address of a fleet without nodes, that the tests of a file share."""
    return new_fleet(postgres_server)


@pytest.fixture
def connection(shared_url: str) -> Iterator[Connection]:
    """Gives a connection to the shared fleet, its queues empty."""
    with session(shared_url) as opened:
        opened.execute("DELETE FROM procrastinate_jobs")
        opened.execute("DELETE FROM fleet_node")
        yield opened


@pytest.fixture
def run() -> str:
    """Returns the uuid of a run that no other test has."""
    return str(uuid.uuid4())
