"""Fixtures: a database of its own for each test, since the engine's wake-ups reach all that listen in one."""

import itertools

import psycopg
import pytest

from tuner.fleet.install import install
from tuner.fleet.settings import FleetSettings

NAMES = (f"fleet_{number}" for number in itertools.count())


@pytest.fixture
def empty_url(postgres_server: str) -> str:
    """Returns the address of an empty database."""
    name = next(NAMES)
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return postgres_server.replace("/postgres?", f"/{name}?")


@pytest.fixture
def fleet_url(empty_url: str) -> str:
    """Returns the address of a fleet whose leases end soon."""
    install(empty_url, FleetSettings(lease_s=3.0))
    return empty_url
