"""The driver of a run on a fleet: queues the run's work, and waits for outcomes on a shared connection.

A ``Driver`` is of one run; the drivers of a process share a ``DriverConnection``, which reads the outcomes of
all their runs.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, final

from tuner.core.errors import Failure, Stage, TunerError, UsageError
from tuner.core.interfaces import Artifact
from tuner.core.requests import FleetRequest
from tuner.elsewhere.fleet import queues, tables
from tuner.elsewhere.fleet.queues import delete_old, sweep
from tuner.elsewhere.fleet.server import connected, plain_errors, session
from tuner.elsewhere.fleet.status import why_waiting
from tuner.elsewhere.fleet.tables import read_settings
from tuner.elsewhere.fleet.work import (
    COMPILE,
    Compiled,
    FleetWork,
    Outcome,
    admitted,
    admitted_artifact,
    compile_queue,
    hash_of,
    measure_queue,
)
from tuner.targets.target import ignore_report

LISTEN_S: Final = 0.5  # until the tables are read, where no notification comes
TAKEN_LIMIT_S: Final = 5.0  # that the server may need to see a killed driver's connection closed
URGENT: Final = 1000  # added to the priority of work that a whole run waits for


@final
class DriverConnection:
    """A connection to a fleet's database, shared by the drivers of all runs that one process drives.

    ``wait`` reads the outcomes of all runs, whichever run calls it. Use it in one thread.
    """

    def __init__(self, url: str) -> None:
        """Connects, and deletes old data.

        Raises UsageError for a database without a fleet, TunerError if the server fails.
        """
        self.connection = connected(url)
        self._runs: list[Driver] = []
        try:
            with plain_errors():
                self._lease_s = read_settings(self.connection).lease_s
                delete_old(self.connection)
        except BaseException:
            self.connection.close()
            raise
        self._swept_s = self._heard_s = time.monotonic()

    def lock(self, run: str) -> None:
        """Locks a run (uuid) for this process, and listens to its notifications.

        Raises UsageError if another process drives the run.
        """
        give_up_s = time.monotonic() + TAKEN_LIMIT_S
        while time.monotonic() < give_up_s:
            with plain_errors():
                row = self.connection.execute(
                    "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", (run,)
                ).fetchone()
                if row == (True,):
                    self.connection.execute(f'LISTEN "{tables.channel_of(run)}"'.encode())
                    return
            time.sleep(LISTEN_S)
        raise UsageError("fleet: another process drives this run")

    def add(self, driven: "Driver") -> None:
        self._runs.append(driven)

    def remove(self, driven: "Driver") -> None:
        """Removes a run's driver; closes the connection after the last one. Queued jobs go on."""
        if driven in self._runs:
            self._runs.remove(driven)
        if not self._runs:
            self.connection.close()

    def wait(self) -> None:
        """Waits for a notification, at most LISTEN_S seconds, then lets every run take its new outcomes.

        Jobs of lost nodes are requeued now and then. Raises TunerError if the server fails, or jobs were
        cancelled.
        """
        with plain_errors():
            is_woken = bool(list(self.connection.notifies(timeout=LISTEN_S, stop_after=1)))
            is_due = time.monotonic() - self._swept_s > self._lease_s / 4
            if is_due:
                sweep(self.connection, self._lease_s)
                self._swept_s = time.monotonic()
            busy = [run for run in self._runs if run.has_jobs]
            news = [run.read(is_thorough=False) for run in busy]
            if not any(news) and (is_woken or is_due):
                news = [run.read(is_thorough=True) for run in busy]
            self._report_why_waiting(busy, has_news=any(news))
        for run in self._runs:
            run.take()

    def _report_why_waiting(self, busy: "list[Driver]", *, has_news: bool) -> None:
        """Reports why jobs wait, each reason once per lease, as long as no outcome arrives."""
        if not has_news and time.monotonic() - self._heard_s <= self._lease_s:
            return
        self._heard_s = time.monotonic()
        if has_news:
            return
        reported: set[str] = set()
        for driver in busy:
            why = why_waiting(self.connection, driver.run, self._lease_s)
            if why and why not in reported:
                reported.add(why)
                driver.report(why)


@dataclass
class _Begun:
    work: FleetWork
    blobs: tuple[bytes, ...]
    refusals: int = 0  # outcomes that were refused


@final
class Driver:
    """The driver of one run: queues its work on the fleet, and keeps the outcomes. Used by one thread."""

    def __init__(
        self,
        request: FleetRequest,
        run: str,
        devices: tuple[str, ...],
        notify: Callable[[str], None] = ignore_report,
        limit_flop_per_s: float = math.inf,
        shared: DriverConnection | None = None,
    ) -> None:
        """Locks the run (uuid), and reads its stored outcomes and its jobs under way.

        Deletes what an earlier process left of work outside of trials: waiting jobs and outcomes.
        ``devices``: that measure, used in turn; ``notify``: gets reasons for waiting and for refused
        outcomes. Outcomes faster than ``limit_flop_per_s`` are refused. Raises UsageError if another process
        drives the run.
        """
        self.run = run  # uuid
        self._limit_flop_per_s = limit_flop_per_s
        self._begun: dict[tuple[int, str], _Begun] = {}
        # by trial: of compilations in `known`; removed by the caller that used it
        self.artifacts: dict[int, Artifact] = {}
        self.known: dict[tuple[int, str], Outcome] = {}  # of work that this process has begun
        self.on_outcomes: Callable[[], None] = lambda: None  # called after each wait, of any run
        self._devices = devices
        self._priority = request.priority
        self._shared = DriverConnection(request.url) if shared is None else shared
        self._connection = self._shared.connection
        try:
            self._shared.lock(run)
            with plain_errors():
                # work of an earlier process outside of trials (number < 0): nobody waits for its outcome
                for (number, _), job in queues.under_way(self._connection, run).items():
                    if number < 0:
                        queues.drop_waiting(self._connection, job)
                tables.delete_outcomes_outside_of_trials(self._connection, run)
                self._under_way = queues.under_way(self._connection, run)
                self._reports = tables.reports_of(self._connection, run)  # not admitted yet
        except BaseException:
            self._connection.close()
            raise
        self._tell = notify
        # negated: numbers outside of trials; none repeats one of an earlier process
        self._asked = time.time_ns()
        self._shared.add(self)

    @property
    def has_jobs(self) -> bool:
        return bool(self._under_way)

    def begin(self, work: FleetWork, blobs: tuple[bytes, ...] = ()) -> None:
        """Queues a piece of work for the nodes, and stores ``blobs``: the scripts or artifacts that it needs.

        Work that is queued already is not queued again. An outcome that an earlier process of the run stored
        moves to ``known`` if it is valid; otherwise it is deleted, and the work is queued again.
        """
        key = (work.number, work.stage)
        if key in self.known:
            return
        begun = self._begun.setdefault(key, _Begun(work, blobs))
        if key in self._reports:  # begun by an earlier process of the run
            self._take(key, begun)
        elif key not in self._under_way:
            self._defer(key, begun)

    def wait(self) -> None:
        self._shared.wait()

    def read(self, *, is_thorough: bool) -> bool:
        """Reads new reports of nodes; returns whether there are any.

        ``is_thorough``: also look for cancelled jobs; raises TunerError if there are some.
        """
        if not is_thorough:
            return self._read_reports()
        # before outcomes: a job that ends in between shows its outcome
        still = queues.under_way(self._connection, self.run)
        has_news = self._read_reports()
        if self._under_way.keys() - still.keys() - self._reports.keys():
            raise TunerError("fleet: the jobs of the run were cancelled; go on with it by --resume")
        return has_news

    def take(self) -> None:
        for key in self._begun.keys() & self._reports.keys():
            self._take(key, self._begun[key])
        self.on_outcomes()

    def report(self, why: str) -> None:
        self._tell(why)

    def _read_reports(self) -> bool:
        numbers = [number for number, _ in self._under_way]
        reports = tables.reports_of(self._connection, self.run, numbers)
        new = reports.keys() - self.known.keys() - self._reports.keys()
        self._reports |= {key: reports[key] for key in new}
        return bool(new)

    def _take(self, key: tuple[int, str], begun: _Begun) -> None:
        report = self._reports.pop(key)
        try:
            outcome = admitted(begun.work, report.text, self._limit_flop_per_s)
            if isinstance(outcome.value, Compiled):
                with plain_errors():
                    try:
                        blob = tables.blob_of(self._connection, outcome.value.blob)
                        self.artifacts[begun.work.number] = admitted_artifact(outcome.value, blob)
                    except UsageError:
                        tables.delete_blob(self._connection, outcome.value.blob)
                        raise
        except UsageError as error:
            self._refuse(key, begun, f"{report.node}: {begun.work.text}: {error}")
        else:
            self._settle(key, outcome)

    def _settle(self, key: tuple[int, str], outcome: Outcome) -> None:
        self.known[key] = outcome
        del self._begun[key]
        self._under_way.pop(key, None)

    def _refuse(self, key: tuple[int, str], begun: _Begun, why: str) -> None:
        """Queues work again whose outcome was refused; after ATTEMPTS refusals its outcome is a failure."""
        begun.refusals += 1
        self._tell(f"refused the outcome of node {why}")
        with plain_errors(), self._connection.transaction():
            tables.delete_outcome(self._connection, begun.work.key)
            if begun.refusals < queues.ATTEMPTS:
                self._defer(key, begun)
                return
        reason = f"{begun.work.stage}: {begun.refusals} outcomes were refused, the last of node {why}"
        self._settle(key, Outcome(Failure(Stage.RUN, reason), 0.0))

    def _defer(self, key: tuple[int, str], begun: _Begun) -> None:
        work = begun.work
        is_compile = work.stage == COMPILE
        if is_compile:
            queue = compile_queue(work.compiler_build)
        else:
            # round-robin by trial number; the first device for other work; after each refusal the next one
            index = begun.refusals + max(work.number, 0)
            queue = measure_queue(work.machine, self._devices[index % len(self._devices)])
        priority = self._priority + (0 if work.number >= 0 else URGENT)
        with plain_errors(), self._connection.transaction():
            for blob in begun.blobs:
                tables.replace_blob(self._connection, hash_of(blob), blob)
            job = queues.defer(self._connection, queue, work, priority, alone=not is_compile)
        self._under_way[key] = job

    def ask(self, work: FleetWork, blobs: tuple[bytes, ...] = ()) -> FleetWork:
        """Queues work that belongs to no trial, such as a baseline.

        Returns the work with a negative number, by which ``awaited`` waits for its outcome.
        """
        self._asked += 1
        numbered = replace(work, number=-self._asked)
        self.begin(numbered, blobs)
        return numbered

    def awaited(self, work: FleetWork) -> Outcome:
        """Waits for work that ``ask`` has queued; returns its outcome and deletes it.

        Raises TunerError if the server fails, or the jobs were cancelled.
        """
        key = (work.number, work.stage)
        while key not in self.known:
            self.wait()
        outcome = self.known[key]
        self.forget(*key)
        return outcome

    def outcome(self, work: FleetWork, blobs: tuple[bytes, ...] = ()) -> Outcome:
        return self.awaited(self.ask(work, blobs))

    def drop(self, number: int, stage: str) -> None:
        """Withdraws one stage of a trial's work; if a node has begun it, its outcome is not waited for."""
        self._begun.pop((number, stage), None)
        job = self._under_way.pop((number, stage), None)
        if job is not None:
            with plain_errors():
                queues.drop_waiting(self._connection, job)

    def forget(self, number: int, stage: str) -> None:
        """Deletes the outcome of one stage of a trial's work, here and in the database.

        The work can then be queued again.
        """
        with plain_errors():
            tables.delete_outcome(self._connection, (self.run, number, stage))
        self.known.pop((number, stage), None)
        self._begun.pop((number, stage), None)
        self._under_way.pop((number, stage), None)

    def close(self) -> None:
        """Ends the run's part in the shared connection; queued jobs go on."""
        self._shared.remove(self)


def alive_nodes(request: FleetRequest) -> tuple[tables.FleetNode, ...]:
    """Returns the nodes of a fleet that take jobs: neither lost nor asked to end.

    Where all are lost, waits at most a lease for a heartbeat, since after a suspend all look silent; () if
    none comes. Raises UsageError for a database without a fleet, TunerError if the server fails.
    """
    with session(request.url) as connection:
        settings = read_settings(connection)
        end_s = time.monotonic() + settings.lease_s
        while True:
            seen = [node for node in tables.stored_nodes(connection) if not node.drains]
            alive = tuple(stored.node for stored in seen if not stored.is_lost(settings.lease_s))
            if alive or not seen or time.monotonic() >= end_s:
                return alive
            time.sleep(settings.beat_s)


def busy_devices(request: FleetRequest, machine: str, devices: tuple[str, ...]) -> dict[str, int]:
    """Returns, per device of machines called ``machine``, how many jobs wait for it or run on it."""
    with session(request.url) as connection:
        jobs = {queue.queue: queue.todo + queue.doing_count for queue in queues.waiting(connection)}
    return {device: jobs.get(measure_queue(machine, device), 0) for device in devices}
