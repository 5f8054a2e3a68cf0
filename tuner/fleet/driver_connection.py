"""The connection of a process that drives runs on a fleet: one for all runs of a group."""

import time
from typing import Final, Protocol, final

from tuner.core.errors import UsageError
from tuner.fleet import tables
from tuner.fleet.server import connected, plain_errors
from tuner.fleet.settings import read_settings
from tuner.fleet.status import why_waiting
from tuner.fleet.sweep import delete_old, sweep

LISTEN_S: Final = 0.5  # until the tables are read, where no notification comes
TAKEN_LIMIT_S: Final = 5.0  # that the server may need to see a killed driver's connection closed


class DrivenRun(Protocol):
    """A run whose outcomes a connection reads while any of its runs waits."""

    @property
    def run(self) -> str:
        """Returns the uuid of the run."""
        ...

    @property
    def has_jobs(self) -> bool:
        """Returns whether jobs of the run are queued or being done."""
        ...

    def read(self, *, is_thorough: bool) -> bool:
        """Reads new reports; returns whether there are any.

        ``is_thorough``: also looks for jobs that were cancelled. Raises TunerError if the run was cancelled.
        """
        ...

    def take(self) -> None:
        """Adds what was read to the known outcomes, and queues the work that follows from them."""
        ...

    def report(self, why: str) -> None:
        """Reports the reason why the run waits."""
        ...


@final
class DriverConnection:
    """A connection to a fleet's database, shared by the drivers of all runs that one process drives.

    A notification is for one run, but whichever run waits, the outcomes of all of them are read: so the next
    work of each run is queued as soon as the work before it is done. Used by one thread.
    """

    def __init__(self, url: str) -> None:
        """Connects. Raises UsageError where the database has no fleet, TunerError where the server fails."""
        self.connection = connected(url)
        self._runs: list[DrivenRun] = []
        try:
            self._lease_s = read_settings(self.connection).lease_s
            with plain_errors():
                delete_old(self.connection)
        except BaseException:
            self.connection.close()
            raise
        self._swept_s = self._heard_s = time.monotonic()

    def lock(self, run: str) -> None:
        """Takes the lock of a run, by its uuid, and listens to the run's notifications.

        The lock ends with the connection. Raises UsageError while another process holds it.
        """
        give_up_s = time.monotonic() + TAKEN_LIMIT_S
        while time.monotonic() < give_up_s:
            row = self.connection.execute(
                "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", (run,)
            ).fetchone()
            if row == (True,):
                with plain_errors():
                    self.connection.execute(f'LISTEN "{tables.channel_of(run)}"'.encode())
                return
            time.sleep(LISTEN_S)
        raise UsageError("fleet: another process drives this run")

    def add(self, driven: DrivenRun) -> None:
        """Adds a run, which was locked, to those whose outcomes are read."""
        self._runs.append(driven)

    def remove(self, driven: DrivenRun) -> None:
        """Removes a run; closes the connection after the last one. Queued work continues."""
        if driven in self._runs:
            self._runs.remove(driven)
        if not self._runs:
            self.connection.close()

    def wait(self) -> None:
        """Waits for a notification, 0.5 s at most (LISTEN_S), then lets every run take its new outcomes.

        At intervals it also requeues the work of lost nodes. Raises TunerError if a run was cancelled.
        """
        with plain_errors():
            is_woken = bool(list(self.connection.notifies(timeout=LISTEN_S, stop_after=1)))
            is_due = time.monotonic() - self._swept_s > self._lease_s / 4
            if is_due:
                sweep(self.connection, self._lease_s)
                self._swept_s = time.monotonic()
            busy = [each for each in self._runs if each.has_jobs]
            news = [each.read(is_thorough=False) for each in busy]
            if not any(news) and (is_woken or is_due):
                news = [each.read(is_thorough=True) for each in busy]
            self._report_why_waiting(busy, has_news=any(news))
        for each in self._runs:
            each.take()

    def _report_why_waiting(self, busy: list[DrivenRun], *, has_news: bool) -> None:
        """Reports each reason once per lease, as long as no outcome comes."""
        if not has_news and time.monotonic() - self._heard_s <= self._lease_s:
            return
        self._heard_s = time.monotonic()
        if has_news:
            return
        reported: set[str] = set()
        for each in busy:
            why = why_waiting(self.connection, each.run, self._lease_s)
            if why and why not in reported:
                reported.add(why)
                each.report(why)
