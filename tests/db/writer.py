"""What other processes do to a database: ``python -m tests.db.writer TASK URL ...``, told as JSON."""

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.db.test_campaigns import begin_campaign
from tests.db.values import CANDIDATE, add, begin, outcome, timed
from tuner.core.errors import UsageError
from tuner.core.queries import TrialQuery
from tuner.db.store import Store

NOBODY = 65534


def write(url: str, trials: str) -> None:
    with Store.open(url) as store:
        run = begin(store)
        for number in range(int(trials)):
            add(store, run, number, outcome(timed(0.001 + number)))
    tell(run=run)


def propose_and_die(url: str) -> None:
    store = Store.open(url)
    run = begin(store)
    add(store, run, 0, outcome(timed(0.5)))
    tell(run=run, trial=store.propose(run, 1, 42, CANDIDATE))
    os.kill(os.getpid(), signal.SIGKILL)


def run_and_wait(url: str) -> None:
    """Begins a run and a campaign, and works on them until it is killed."""
    store = Store.open(url)
    tell(run=begin(store), campaign=begin_campaign(store))
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
    with (Path(url).parent / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
        while True:
            ballast.write(b"x" * 4096)
    try:
        Store.open(url).close()
    except UsageError as error:
        tell(message=str(error), has_cause=error.__cause__ is not None)


def read_as_nobody(url: str) -> None:
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
    print(json.dumps(facts), flush=True)  # noqa: T201 - how the process answers


ROOT = Path(__file__).parents[2]
LIMIT_S = 120


def start(*options: str, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """Starts a task in a process of its own, after the words of another program where given."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return subprocess.Popen(
        [*before, sys.executable, "-W", "error", "-m", "tests.db.writer", *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def facts(process: subprocess.Popen[str], status: int = 0) -> dict[str, Any]:
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == status, err
    given: dict[str, Any] = json.loads(out)
    return given


WORK = (write, propose_and_die, run_and_wait, fill, open_full, read_as_nobody)
TASKS = {task.__name__: task for task in WORK}

if __name__ == "__main__":
    TASKS[sys.argv[1]](*sys.argv[2:])
