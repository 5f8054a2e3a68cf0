"""Fixtures: an empty database of each kind, and a store in it."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from tuner.db.address import ServerAddress, parse_address
from tuner.db.store import Store

# Tests of fleets use a store on PostgreSQL, too.
KINDS = ["sqlite", pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.slow])]
NAMES = (f"test_{number}" for number in itertools.count())


def empty_schema(server: str) -> str:
    """Returns the address of a new schema: made in a millisecond, a database takes a quarter of a second."""
    name = next(NAMES)
    address = parse_address(server)
    assert isinstance(address, ServerAddress)
    with sa.create_engine(address.url, poolclass=sa.NullPool).begin() as connection:
        connection.execute(sa.schema.CreateSchema(name))
    return f"{server}&options=-csearch_path%3D{name}"


def empty_database(request: pytest.FixtureRequest, folder: Path) -> str:
    if request.param == "sqlite":
        return str(folder / "results" / "tuner.db")
    return empty_schema(request.getfixturevalue("postgres_server"))


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    return empty_schema(postgres_server)


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return empty_database(request, tmp_path)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url) as opened:
        yield opened


@pytest.fixture(scope="module", params=KINDS)
def shared_store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store that the tests of a file only read."""
    with Store.open(empty_database(request, tmp_path_factory.mktemp("shared"))) as opened:
        yield opened
