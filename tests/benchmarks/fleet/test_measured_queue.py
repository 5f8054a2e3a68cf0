import pytest

from benchmarks.fleet.measured_queue import gaps, hops, idle, throughput
from benchmarks.fleet.sleeping_nodes import sleeping_nodes, wait_until
from tuner.fleet.server import session

pytestmark = pytest.mark.postgres


@pytest.mark.slow
def test_a_sleeping_node_does_each_job_once_and_is_measured(url: str) -> None:
    with sleeping_nodes(url, 1, 4, 1000) as nodes:
        found = throughput(url, nodes, 20)
        assert 0 < found["jobs_per_s"] <= found["deferred_per_s"]
        assert gaps(url, 5)["overlaps"] == 0
        assert hops(url, 2)["median_ms"] > 0
        assert 0 <= idle(url, nodes[0], 0.1)["node_processor_share"] < 1
    with session(url) as connection:
        assert connection.execute("SELECT count(*) FROM fleet_work").fetchone() == (27,)
        blobs = connection.execute("SELECT count(*) FROM fleet_blob").fetchone()
    assert blobs == (27,)  # each has code of its own


@pytest.mark.slow
def test_what_does_not_come_is_not_waited_for_without_end(
    postgres_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.fleet.sleeping_nodes.LIMIT_S", 0.01)
    limit = r"found no, allowed yes within 0\.01 s"
    with session(postgres_server) as connection, pytest.raises(TimeoutError, match=limit):
        wait_until(connection, "SELECT %s > 1", 1)
