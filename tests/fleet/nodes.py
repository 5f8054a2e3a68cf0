"""Real processes of a fleet that tests start, and the run that they work for: a small recorded space."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from tuner.core.problem import Matmul
from tuner.core.runs import RunSettings, StoredTrial, TrialQuery
from tuner.db.store import Store
from tuner.fleet import tables
from tuner.fleet.driver import FleetRequest
from tuner.fleet.kind import fleet_composition
from tuner.fleet.server import session
from tuner.tuning.interruption import Interruption
from tuner.tuning.parts.real import real_composition
from tuner.tuning.parts.recording import replay_settings
from tuner.tuning.run import begin
from tuner.tuning.run_request import RunRequest
from tuner.tuning.tuned_run import TunedRun

RECORDING = Path(str(files("tuner") / "recorded" / "matmul_48x64x40.t4.json.gz"))
PROBLEM = Matmul(48, 64, 40)
READY_S = 60
BOTH = ("--compile", "1", "--measure")
PENDING = 3


def replayed(trials: int, sampler: str = "local", seed: int = 0) -> RunSettings:
    """Returns the settings of a run on the recording."""
    asked = RunRequest(PROBLEM, f"replay:{RECORDING}", sampler=sampler, seed=seed, trials=trials)
    return replay_settings(asked, PENDING - 1)


def started(url: str, name: str, *words: str, target: str = f"replay:{RECORDING}") -> "subprocess.Popen[str]":
    """Starts a node and does not wait for it."""
    command = [sys.executable, "-m", "tuner", "fleet", "worker", "--target", target, "--name", name]
    return subprocess.Popen([*command, *words, "--db", url], stderr=subprocess.DEVNULL, text=True)


@contextlib.contextmanager
def nodes(url: str, **words: tuple[str, ...]) -> "Iterator[dict[str, subprocess.Popen[str]]]":
    """Gives nodes by their names once all of them are at work; ends them."""
    processes: dict[str, subprocess.Popen[str]] = {}
    try:
        processes |= {name: started(url, name, *given) for name, given in words.items()}
        await_nodes(url, *words)
        yield processes
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


def await_nodes(url: str, *names: str) -> None:
    """Returns when nodes of these names are at work."""
    give_up = time.monotonic() + READY_S
    with session(url) as connection:
        while not set(names) <= {each.node.name for each in tables.nodes(connection)}:
            assert time.monotonic() < give_up, names
            time.sleep(0.05)


def tuned_on_fleet(url: str, settings: RunSettings, **asked: int | str) -> TunedRun:
    """Runs to the end, driven by this process."""
    composition = fleet_composition(real_composition(), FleetRequest(url, **asked))  # type: ignore[arg-type]
    with Store.open(url) as store:
        return begin(settings, composition, store, Interruption())


def trials_of(url: str, run: int) -> tuple[StoredTrial, ...]:
    """Returns the trials of a run."""
    with Store.open(url) as store:
        return store.trials(TrialQuery(run=run, sort="number"))


def calm_trials(settings: RunSettings, folder: Path) -> tuple[StoredTrial, ...]:
    """Returns the trials of the same run on this machine alone."""
    database = str(folder / "calm.db")
    with Store.open(database) as store:
        run = begin(settings, real_composition(), store, Interruption()).run.id
    return trials_of(database, run)
