"""A node as a process of its own, on a real server."""

from dataclasses import replace

import pytest

from tests.fleet.fake_node import REQUEST, started_node
from tests.tuning.fakes import FAKE
from tuner.core.errors import TunerError
from tuner.fleet import tables
from tuner.fleet.install import install
from tuner.fleet.node import run_node
from tuner.fleet.server import session
from tuner.fleet.settings import LEAST_LEASE_S, FleetSettings

LIMIT_S = 60


@pytest.fixture
def brief_url(empty_url: str) -> str:
    """Returns the address of a fleet whose nodes tell often that they live."""
    install(empty_url, FleetSettings(LEAST_LEASE_S))
    return empty_url


@pytest.mark.postgres
def test_a_heartbeat_that_comes_to_nothing_is_told_of_and_the_next_one_is_heard(brief_url: str) -> None:
    with session(brief_url) as connection, started_node(brief_url) as node:
        assert node.stdout is not None
        assert ": works for fake on " in node.stdout.readline()
        connection.execute("ALTER TABLE fleet_node RENAME TO elsewhere")
        assert ': heartbeat: fleet: database: relation "fleet_node" does not exist' in node.stdout.readline()
        connection.execute("ALTER TABLE elsewhere RENAME TO fleet_node")
        (seen,) = tables.nodes(connection)
        assert tables.drain(connection, seen.node.name)
        assert node.wait(LIMIT_S) == 0


def test_a_node_without_room_does_not_begin() -> None:
    asking = replace(REQUEST, keep_free_bytes=1 << 60)
    with pytest.raises(TunerError, match=r": found \d+ MiB free, allowed 1099511627776 or more$"):
        run_node("postgresql://nobody@nowhere/none", asking, FAKE, print)
