"""A node as a process of its own, on a real server."""

import json
import signal
import subprocess
import time
from dataclasses import replace

import pytest

from tests.fleet.fake_node import REQUEST, queue_script, started_node
from tests.tuning.fakes import FAKE
from tuner.core.errors import TunerError
from tuner.fleet import queues, tables
from tuner.fleet.install import install
from tuner.fleet.node import run_node
from tuner.fleet.server import session
from tuner.fleet.tables import LEAST_LEASE_S, FleetSettings

LIMIT_S = 120
SLEEPING = json.dumps({"x": 3, "at": "compile", "deed": "sleep"}).encode()


@pytest.fixture
def brief_url(empty_url: str) -> str:
    """Returns the address of a fleet whose nodes tell often that they live."""
    install(empty_url, FleetSettings(LEAST_LEASE_S))
    return empty_url


def test_a_node_without_package_does_not_begin() -> None:
    asking = replace(REQUEST, keep_free_bytes=1 << 60)
    with pytest.raises(TunerError, match=r": found \d+ MiB free, allowed 1099511627776 or more$"):
        run_node("postgresql://nobody@nowhere/none", asking, FAKE.outcomes, print)


@pytest.mark.slow
@pytest.mark.postgres
def test_a_node_goes_on_after_a_heartbeat_in_vain_and_ends_at_the_second_ctrl_c(
    brief_url: str, run: str
) -> None:
    with session(brief_url) as connection, started_node(brief_url) as node:
        assert node.stdout is not None
        assert ": works for fake on " in node.stdout.readline()
        connection.execute("ALTER TABLE fleet_node RENAME TO elsewhere")
        assert ': heartbeat: fleet: database: relation "fleet_node" does not exist' in node.stdout.readline()
        connection.execute("ALTER TABLE elsewhere RENAME TO fleet_node")
        queue_script(connection, run, SLEEPING)
        while not any(each.doing_count for each in queues.waiting(connection)):
            assert node.poll() is None
            time.sleep(0.02)
        node.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            node.wait(0.3)
        node.send_signal(signal.SIGINT)
        assert node.wait(LIMIT_S) != 0
        assert tables.nodes(connection) == ()
