"""A PostgreSQL server that is killed while it works."""

import contextlib
import os
import signal
import time

from tuner.elsewhere.fleet.leftovers import SERVER_FILE
from tuner.elsewhere.fleet.local_fleet import folder_of, start
from tuner.runtime.workers.processes import DEAD, started_by, state_of


def restart_after_crash(url: str) -> None:
    """Kills a server's processes by SIGKILL and starts the server again.

    Raises NoServerError where that fails.
    """
    folder = folder_of(url)
    lock = folder / SERVER_FILE
    first = int(lock.read_text().splitlines()[0])
    processes = (first, *started_by(first, ""))
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    while any(state_of(process) not in DEAD for process in processes):
        time.sleep(0.01)
    for left in (lock, *folder.glob(".s.PGSQL.*")):  # where nobody reaps the dead, they seem to run on
        left.unlink()
    start(folder)
