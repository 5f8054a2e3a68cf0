"""Fixtures: a fleet that measurements of the queue have to themselves."""

import pytest

from tests.fleet.conftest import new_database
from tuner.fleet.install import install
from tuner.fleet.tables import FleetSettings


@pytest.fixture
def url(postgres_server: str) -> str:
    """Returns the address of a fleet without nodes."""
    url = new_database(postgres_server)
    install(url, FleetSettings())
    return url
