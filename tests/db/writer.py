"""What other processes do to a database: ``python -m tests.db.writer TASK URL ...``, told as JSON."""

import json
import os
import resource
import signal
import sys
import tempfile
from pathlib import Path

from tests.db.test_groups import CAMPAIGN, MEMBERS
from tests.db.values import CANDIDATE, COMPILER, MACHINE, add, begin, outcome, timed
from tuner.core.errors import UsageError
from tuner.core.runs import TrialQuery
from tuner.db.store import Store

NOBODY = 65534


def write(url: str, trials: str) -> None:
    """Stores a run with trials, beside other writers."""
    with Store.open(url) as store:
        run = begin(store)
        for number in range(int(trials)):
            add(store, run, number, outcome(timed(0.001 + number)))
    tell(run=run)


def propose_and_die(url: str) -> None:
    """Proposes a trial and is killed as soon as the call has returned."""
    store = Store.open(url)
    run = begin(store)
    add(store, run, 0, outcome(timed(0.5)))
    trial = store.propose(run, 1, 42, CANDIDATE)
    tell(run=run, trial=trial)
    os.kill(os.getpid(), signal.SIGKILL)


def run_and_wait(url: str) -> None:
    """Begins a run and a campaign, and works on them until it is killed."""
    store = Store.open(url)
    run = begin(store)
    campaign = store.begin_campaign(CAMPAIGN, MEMBERS, MACHINE, COMPILER, "0.1.0", None)
    tell(run=run, campaign=campaign)
    signal.pause()


def fill(url: str, limit_bytes: str = "") -> None:
    """Stores trials until the disk, or the size a file may have, is used up; then reads them back."""
    store = Store.open(url)
    run = begin(store)
    stored = 0
    if limit_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit_bytes), int(limit_bytes)))
    try:
        while stored < 10_000:
            script = f"// {stored}\n" + "x" * 10_000
            add(store, run, stored, outcome(timed(1.0), script), script)
            stored += 1
    except UsageError as error:
        store.close()
        with Store.open(url) as again:
            whole = again.trials(TrialQuery(run=run))
        tell(message=str(error), stored=stored, found=len(whole))


def open_full(url: str) -> None:
    """Opens a new database on a disk without room."""
    with (Path(url).parent / "ballast").open("wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(b"x" * 4096)
        except OSError:
            pass
    refuse(url)


def refuse(url: str) -> None:
    """Opens a database that must be refused."""
    try:
        Store.open(url).close()
    except UsageError as error:
        tell(message=str(error), has_cause=error.__cause__ is not None)


def read_as_nobody(url: str) -> None:
    """Queries a database that this user may read."""
    become_nobody()
    with Store.open(url) as store:
        tell(found=len(store.trials(TrialQuery())))


def become_nobody() -> None:
    """Gives up root's rights, which no file mode limits; loads before what nobody may not reach."""
    with tempfile.TemporaryDirectory() as folder, Store.open(f"{folder}/warm.db") as store:
        store.info()
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def tell(**facts: object) -> None:
    """Prints facts for the test that started this process."""
    print(json.dumps(facts), flush=True)  # noqa: T201 - how the process answers


TASKS = {
    task.__name__: task
    for task in (write, propose_and_die, run_and_wait, fill, open_full, refuse, read_as_nobody)
}

if __name__ == "__main__":
    TASKS[sys.argv[1]](*sys.argv[2:])
