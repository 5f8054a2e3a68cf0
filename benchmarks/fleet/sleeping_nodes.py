"""Nodes of ``benchmarks.fleet.sleeping_node`` as processes, and jobs for these nodes."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tuner.core.candidate import TargetName
from tuner.core.matmul import Matmul
from tuner.elsewhere.fleet import queues
from tuner.elsewhere.fleet.server import session
from tuner.elsewhere.fleet.work import EVALUATE, FleetWork

if TYPE_CHECKING:
    from tuner.elsewhere.fleet.server import Connection

QUEUE: Final = "sleeping"
LOOK_S: Final = 0.02
LIMIT_S: Final = 120


@contextlib.contextmanager
def sleeping_nodes(url: str, count: int, at_once: int, code_bytes: int) -> Iterator[tuple[int, ...]]:
    """Gives the process ids of nodes that poll for work; ends the nodes after the block."""
    options = (url, QUEUE, str(at_once), str(code_bytes))
    command = [sys.executable, "-m", "benchmarks.fleet.sleeping_node", *options]
    with session(url) as connection:
        connection.execute("DELETE FROM procrastinate_workers")
        started = [subprocess.Popen(command) for _ in range(count)]
        try:
            wait_until(connection, "SELECT count(*) >= %s FROM procrastinate_workers", count)
            yield tuple(process.pid for process in started)
        finally:
            for process in started:
                process.terminate()
            for process in started:
                process.wait(LIMIT_S)


def defer(connection: "Connection", run: str, number: int, *, alone: bool = False) -> None:
    """Queues a job; of jobs queued with ``alone`` one is done at a time."""
    work = FleetWork(
        run,
        number,
        EVALUATE,
        "compiler_build",
        "machine",
        Matmul(64, 64, 64),
        TargetName("cpu"),
        threads=1,
        seed=0,
    )
    queues.defer(connection, QUEUE, work, 0, alone=alone)


def wait_for_outcomes(connection: "Connection", run: str, count: int) -> None:
    """Waits until ``count`` jobs of a run have an outcome."""
    wait_until(connection, "SELECT count(*) >= %s FROM fleet_outcome WHERE run = %s", count, run)


def wait_until(connection: "Connection", question: str, *options: object) -> None:
    """Waits until a query returns true. Raises TimeoutError after a time limit."""
    give_up_s = time.monotonic() + LIMIT_S
    while connection.execute(question.encode(), options).fetchone() != (True,):
        if time.monotonic() > give_up_s:
            raise TimeoutError(f"{question} {options}: found no, allowed yes within {LIMIT_S} s")
        time.sleep(LOOK_S)
