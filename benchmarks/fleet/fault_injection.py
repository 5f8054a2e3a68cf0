"""Fault injection: a run on a fleet of real processes here, in which one part after another fails."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, final

from benchmarks.resumed_runs import tune_arguments
from tests.support.crashed_postgres import restart_after_crash
from tests.support.small_disk import fill_disk, small_disk
from tuner.core.errors import TunerError
from tuner.core.runs import Run, RunSettings
from tuner.db.store import Store
from tuner.elsewhere.fleet import queues
from tuner.elsewhere.fleet.local_fleet import LOOK_S, LocalNodes
from tuner.elsewhere.fleet.server import connected
from tuner.elsewhere.fleet.work import COMPILE, EVALUATE

MEASURES: Final = ("--measure", "--device", "of this check")
DISK_FULL: Final = ("--keep-free", str(1 << 40))  # MiB: more than any disk has
DISK_KIB: Final = 2048  # one MiB more than a node begins with
STILL_S: Final = 0.03  # a job that is worked at so long after its node stopped stays so
LIMIT_S: Final = 120.0  # of all that is waited for


class QuickerError(Exception):
    """The run ended before a fault could be injected."""


@final
class FaultInjection:
    """A driver, one node that compiles and one that measures; each can be made to fail while it works."""

    def __init__(self, url: str, nodes: LocalNodes) -> None:
        """Starts the nodes."""
        self._url = url
        self._nodes = nodes
        self._count = 0
        self._connection = connected(url)
        self._compiling = self._started("--compile", "1")
        self._measuring = self._started(*MEASURES)
        self._driver = ""
        nodes.wait_until_ready(self._compiling, self._measuring)

    def close(self) -> None:
        """Leaves the database; the processes are the nodes'."""
        self._connection.close()

    def begin(self, settings: RunSettings, file: Path) -> Run:
        """Starts a driver; returns its run, once the run is stored."""
        with Store.open(self._url) as store:
            before = store.runs(1)
            self._drive(*tune_arguments(settings, file))
            while (found := store.runs(1)) == before:
                self._require_driver()
                time.sleep(LOOK_S)
        self._run = found[0]
        return self._run

    def finish(self) -> None:
        """Returns when the run is over. Raises TunerError where its driver fails."""
        if self._nodes.wait(self._driver, LIMIT_S) != 0:
            raise TunerError(f"{self._driver}: {self._nodes.last_line(self._driver)}")

    def wait_for_evaluated(self, more: int) -> None:
        """Waits until ``more`` further trials are evaluated.

        Raises QuickerError where the run ends before.
        """
        wanted = self._evaluated() + more
        self._wait_until(lambda: self._evaluated() >= wanted, f"{more} more trials judged")

    def fill_disk(self) -> None:
        """Gives the work to a node with a full disk: the node returns its job and ends.

        Another node joins.
        """
        with self._driver_stopped():
            full = self._with_full_disk()
            self._nodes.ask_to_end(self._compiling)
        self._wait_until(lambda: self._nodes.has_ended(full), f"end of {full} as the disk is full")
        self._compiling = self._started("--compile", "1")

    def kill_compiling_node(self) -> None:
        """Kills the compiling node while it works; another node joins later."""
        self._stop_at_work(self._compiling, is_compiling=True)
        self._nodes.kill(self._compiling)
        self._compiling = self._started("--compile", "1")

    def kill_measuring_node(self) -> None:
        """Kills the measuring node while it works; another node takes over the device."""
        self._stop_at_work(self._measuring, is_compiling=False)
        self._nodes.kill(self._measuring)
        self._measuring = self._started(*MEASURES)

    def stop_measuring_node(self) -> None:
        """Stops the measuring node until its lease ends, while another node takes over the device."""
        stopped = self._measuring
        self._stop_at_work(stopped, is_compiling=False)
        lost = self._at_work(is_compiling=False)
        self._measuring = self._started(*MEASURES)
        self._nodes.wait_until_ready(self._measuring)
        self._wait_until(
            lambda: self._at_work(is_compiling=False) != lost, f"lease of {stopped} that is over"
        )
        self._send(stopped, signal.SIGCONT)
        self._nodes.ask_to_end(stopped)

    def kill_driver(self) -> None:
        """Kills the driver and goes on with the run."""
        self._require_driver()
        self._nodes.kill(self._driver)
        self._resume()

    def kill_database(self) -> None:
        """Kills the server and starts it again; resumes the run, whose driver has given up."""
        self._require_driver()
        restart_after_crash(self._url)
        self._connection.close()
        self._connection = connected(self._url)
        self._nodes.wait(self._driver, LIMIT_S)
        self._resume()

    @contextlib.contextmanager
    def _driver_stopped(self) -> Iterator[None]:
        """Lets the run wait while a node starts: on a busy machine the run could end first."""
        self._require_driver()
        self._send(self._driver, signal.SIGSTOP)
        try:
            yield
        finally:
            self._send(self._driver, signal.SIGCONT)

    def _resume(self) -> None:
        """Resumes the run, which would be refused without nodes."""
        self._nodes.wait_until_ready(self._compiling, self._measuring)
        self._drive("--resume", str(self._run.id))

    def _drive(self, *options: str) -> None:
        self._count += 1
        self._driver = f"driver{self._count}"
        self._nodes.start_command(self._driver, ("tune", *options, "--fleet", "--db", self._url, "--json"))

    def _started(self, *options: str, before: tuple[str, ...] = ()) -> str:
        self._count += 1
        name = f"node{self._count}"
        self._nodes.start(name, *options, before=before)
        return name

    def _with_full_disk(self) -> str:
        """Starts a node and fills its disk.

        A node without a disk of its own gets an unreachable space requirement.
        """
        disk = self._nodes.folder / "disk"
        disk.mkdir()
        try:
            before = ("env", f"TMPDIR={disk}", *small_disk(disk, DISK_KIB))
        except TunerError:
            return self._started("--compile", "1", *DISK_FULL)
        full = self._started("--compile", "1", "--keep-free", "1", before=before)
        self._nodes.wait_until_ready(full)
        fill_disk(self._nodes.process(full), disk)
        return full

    def _stop_at_work(self, name: str, *, is_compiling: bool) -> None:
        """Stops the only node of its kind while the node has a job of the run."""
        self._wait_until(lambda: self._is_stopped_at_work(name, is_compiling), f"{name} at work")

    def _is_stopped_at_work(self, name: str, is_compiling: bool) -> bool:
        if not self._at_work(is_compiling):
            return False
        self._send(name, signal.SIGSTOP)
        time.sleep(STILL_S)
        if self._at_work(is_compiling):
            return True
        self._send(name, signal.SIGCONT)
        return False

    def _send(self, name: str, number: signal.Signals) -> None:
        """Lets a process stand still, what it has started go on; or go on itself."""
        os.kill(self._nodes.process(name), number)

    def _at_work(self, is_compiling: bool) -> set[tuple[int, int]]:
        """Returns (job, earlier attempts) of the run's jobs that nodes of a kind are doing."""
        jobs = queues.lost_jobs(self._connection, lease_s=0.0)  # whoever has them
        mine = [job for job in jobs if job.work.run == self._run.uuid]
        return {(job.id, job.attempts) for job in mine if (job.work.stage == COMPILE) == is_compiling}

    def _evaluated(self) -> int:
        row = self._connection.execute(
            "SELECT count(*) FROM fleet_outcome WHERE run = %s AND stage = %s", (self._run.uuid, EVALUATE)
        ).fetchone()
        assert row is not None
        return int(row[0])

    def _wait_until(self, is_so: Callable[[], bool], what: str) -> None:
        give_up_s = time.monotonic() + LIMIT_S
        while not is_so():
            self._require_driver()
            if time.monotonic() > give_up_s:
                names = (self._driver, self._compiling, self._measuring)
                said = "; ".join(f"{name}: {self._nodes.last_line(name)}" for name in names)
                raise TunerError(f"fleet: found no {what}, allowed within {LIMIT_S:g} s; {said}")
            time.sleep(LOOK_S / 10)

    def _require_driver(self) -> None:
        if self._nodes.has_ended(self._driver):
            self.finish()
            raise QuickerError


FAULTS: Final[dict[str, Callable[[FaultInjection], None]]] = {
    "compiling node's disk full": FaultInjection.fill_disk,
    "compiling node killed": FaultInjection.kill_compiling_node,
    "measuring node killed": FaultInjection.kill_measuring_node,
    "driver killed": FaultInjection.kill_driver,
    "measuring node stopped": FaultInjection.stop_measuring_node,
    "database killed": FaultInjection.kill_database,
}
