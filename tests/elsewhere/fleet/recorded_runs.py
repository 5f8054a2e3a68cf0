"""Runs on a small recorded space, on a fleet and on one machine."""

from importlib.resources import files
from pathlib import Path

from tuner.core.matmul import Matmul
from tuner.core.queries import TrialQuery
from tuner.core.requests import FleetRequest, RunRequest
from tuner.core.runs import RunSettings
from tuner.core.trials import StoredTrial
from tuner.db.store import Store
from tuner.elsewhere.fleet.runner import fleet_backends
from tuner.targets.registry import real_backends
from tuner.targets.replay import replay_settings
from tuner.tuning.events import Interruption
from tuner.tuning.run import begin
from tuner.tuning.tuned_run import TunedRun

RECORDING = Path(str(files("tuner") / "space" / "recorded" / "matmul_48x64x40.t4.json.gz"))
TARGET = f"replay:{RECORDING}"
PROBLEM = Matmul(48, 64, 40)
PENDING = 3


def replayed(trials: int, sampler: str = "local", seed: int = 0) -> RunSettings:
    asked = RunRequest(PROBLEM, TARGET, sampler=sampler, seed=seed, trials=trials)
    return replay_settings(asked, PENDING - 1)


def tuned_on_fleet(url: str, settings: RunSettings, **asked: int | str) -> TunedRun:
    backends = fleet_backends(real_backends(), FleetRequest(url, **asked))  # type: ignore[arg-type]
    with Store.open(url) as store:
        return begin(settings, backends, store, Interruption())


def trials_of(url: str, run: int) -> tuple[StoredTrial, ...]:
    with Store.open(url) as store:
        return store.trials(TrialQuery(run=run, sort="number"))


def calm_trials(settings: RunSettings, folder: Path) -> tuple[StoredTrial, ...]:
    """Returns the trials of the same run on this machine alone."""
    database = str(folder / "calm.db")
    with Store.open(database) as store:
        run = begin(settings, real_backends(), store, Interruption()).run.id
    return trials_of(database, run)
