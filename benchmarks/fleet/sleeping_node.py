"""A node whose work is to sleep, so that only the job queue's own cost is left.

    python -m benchmarks.fleet.sleeping_node URL QUEUE AT_ONCE CODE_BYTES

For each job the node queries whether the job has an outcome, sleeps, and stores code, interval and outcome in
one transaction, as a real node does: ``tuner.elsewhere.fleet.node``.
"""

import asyncio
import random
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

from tuner.elsewhere.fleet import queues, tables
from tuner.elsewhere.fleet.node_children import now
from tuner.elsewhere.fleet.server import session
from tuner.elsewhere.fleet.tables import read_settings
from tuner.elsewhere.fleet.work import Compiled, FleetWork, Outcome, Service, hash_of

if TYPE_CHECKING:
    from tuner.elsewhere.fleet.server import Connection

Reply = TypeVar("Reply")
WORK_S: Final = 0.01
PACKED_SHARE: Final = 0.1  # of code, which compresses well


def main() -> None:
    """Works until SIGTERM."""
    url, queue, at_once, code_bytes = sys.argv[1:]
    service = Service(queue, int(at_once))
    asyncio.run(_serve(url, service, int(code_bytes)))


async def _serve(url: str, service: Service, code_bytes: int) -> None:
    ending = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ending.set)
    with session(url) as connection, ThreadPoolExecutor(1) as asking:
        beat_s = read_settings(connection).beat_s

        async def ask(question: "Callable[[Connection], Reply]") -> Reply:
            return await asyncio.get_running_loop().run_in_executor(asking, question, connection)

        async def do(work: FleetWork) -> None:
            if await ask(lambda opened: tables.has_outcome(opened, work.key)):
                return
            began = now()
            await asyncio.sleep(WORK_S)
            interval = tables.Interval(began, now())
            await ask(lambda opened: _settle(opened, work, interval, _code(work, code_bytes)))

        await queues.serve(url, (service,), do, beat_s, ending)


def _settle(connection: "Connection", work: FleetWork, interval: tables.Interval, code: bytes) -> None:
    with connection.pipeline(), connection.transaction():
        sha256 = hash_of(code)
        if code:
            tables.store_blob(connection, sha256, code)
        tables.store_execution(connection, work, tables.Execution("sleeping", work.machine, interval))
        tables.store_outcome(
            connection, work.key, Outcome(Compiled(sha256, sha256, is_refused=False), WORK_S), "sleeping"
        )


def _code(work: FleetWork, code_bytes: int) -> bytes:
    """Returns a different text for each job."""
    varied = random.Random(f"{work.run} {work.number}").randbytes(int(code_bytes * PACKED_SHARE)).hex()
    return varied.ljust(code_bytes).encode()[:code_bytes]


if __name__ == "__main__":
    main()
