"""The job queue on a real server: jobs per second, gaps between measurements, processor time per job.

Server, nodes and driver share this machine. The server does not wait for the disk (``-F``), as in the tests.
"""

import os
import random
import time
import uuid
from collections.abc import Iterator
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any, Final

from benchmarks.fleet.processor_use import family_s, parent_of, processor_s, wakes
from benchmarks.fleet.sleeping_nodes import defer, sleeping_nodes, wait_for_outcomes
from tuner.elsewhere.fleet.server import session

if TYPE_CHECKING:
    from tuner.elsewhere.fleet.server import Connection

NODES: Final = 2
AT_ONCE: Final = 8
CODE_BYTES: Final = 100_000
PAUSE_S: Final = 0.5  # at most, between two jobs of an idle node: it may look at any moment


def measured_rows(url: str, jobs: int, measurements: int, idle_s: float) -> Iterator[dict[str, Any]]:
    """Yields a row for each measured quantity."""
    for code_bytes in (0, CODE_BYTES):
        with sleeping_nodes(url, NODES, AT_ONCE, code_bytes) as nodes:
            yield {"measured": "jobs", "code_bytes": code_bytes, **throughput(url, nodes, jobs)}
    with sleeping_nodes(url, 1, 1, 0) as (node,):
        yield {"measured": "gaps", **gaps(url, measurements)}
        yield {"measured": "hops", **hops(url, measurements // 8)}
        yield {"measured": "idle", **idle(url, node, idle_s)}


def throughput(url: str, nodes: tuple[int, ...], jobs: int) -> dict[str, Any]:
    """Queues jobs while nodes do them, until the last outcome is stored; returns jobs per second."""
    run, load = str(uuid.uuid4()), os.getloadavg()[0]
    with session(url) as connection:
        before = _server_s(connection), sum(map(processor_s, nodes)), time.process_time()
        began_s = time.monotonic()
        for number in range(jobs):
            defer(connection, run, number)
        deferred_s = time.monotonic() - began_s
        wait_for_outcomes(connection, run, jobs)
        took_s = time.monotonic() - began_s
        after = _server_s(connection), sum(map(processor_s, nodes)), time.process_time()
    server_ms, nodes_ms, driver_ms = (
        round(1e3 * (late - early) / jobs, 2) for late, early in zip(after, before, strict=True)
    )
    return {
        "jobs_per_s": round(jobs / took_s, 1),
        "deferred_per_s": round(jobs / deferred_s, 1),
        "server_ms_per_job": server_ms,
        "nodes_ms_per_job": nodes_ms,
        "driver_ms_per_job": driver_ms,
        "load": load,
    }


def gaps(url: str, measurements: int) -> dict[str, Any]:
    """Measures how long a device waits between two jobs while more are queued."""
    run, load = str(uuid.uuid4()), os.getloadavg()[0]
    with session(url) as connection:
        for number in range(measurements):
            defer(connection, run, number, alone=True)
        wait_for_outcomes(connection, run, measurements)
        rows = connection.execute(
            "SELECT extract(epoch FROM lead(began) OVER (ORDER BY began) - ended)::float8 "
            "FROM fleet_work WHERE run = %s",
            (run,),
        )
        found_ms = [1e3 * gap_s for (gap_s,) in rows if gap_s is not None]
    return {**_spread(found_ms), "overlaps": sum(gap < 0 for gap in found_ms), "load": load}


def hops(url: str, jobs: int) -> dict[str, Any]:
    """Measures the time until an idle node begins a queued job."""
    run, load = str(uuid.uuid4()), os.getloadavg()[0]
    chance, found_ms = random.Random(0), []
    with session(url) as connection:
        for number in range(jobs):
            time.sleep(chance.uniform(0, PAUSE_S))
            asked_s = time.time()
            defer(connection, run, number, alone=True)
            wait_for_outcomes(connection, run, number + 1)
            row = connection.execute(
                "SELECT extract(epoch FROM began)::float8 FROM fleet_work WHERE run = %s AND number = %s",
                (run, number),
            ).fetchone()
            assert row is not None
            found_ms.append(1e3 * (row[0] - asked_s))
    return {**_spread(found_ms), "load": load}


def idle(url: str, node: int, seconds: float) -> dict[str, Any]:
    """Measures the processor time of a node without work, and of the server for that node."""
    load = os.getloadavg()[0]
    with session(url) as connection:
        before = processor_s(node), _server_s(connection), wakes(node)
        time.sleep(seconds)
        after = processor_s(node), _server_s(connection), wakes(node)
    node_share, server_share, wakes_per_s = (
        (late - early) / seconds for late, early in zip(after, before, strict=True)
    )
    return {
        "node_processor_share": round(node_share, 5),
        "server_processor_share": round(server_share, 5),
        "node_wakes_per_s": round(wakes_per_s, 1),
        "load": load,
    }


def _server_s(connection: "Connection") -> float:
    """Returns the processor seconds of all processes of the server so far."""
    first = parent_of(connection.info.backend_pid)
    return family_s(first)


def _spread(found_ms: list[float]) -> dict[str, float]:
    return {
        "median_ms": round(median(found_ms), 2),
        "nine_of_ten_ms": round(quantiles(found_ms, n=10)[-1], 2),
        "longest_ms": round(max(found_ms), 2),
    }
