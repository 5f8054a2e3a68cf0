"""A run that is killed and resumed, compared with the same run that nothing happened to."""

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.support.run_differences import Difference, differences
from tuner.core.candidate import REPLAY, TargetName
from tuner.core.errors import TunerError, last_line
from tuner.core.matmul import Matmul
from tuner.core.queries import TrialQuery
from tuner.core.requests import RunRequest
from tuner.core.runs import RunSettings
from tuner.core.trials import StoredTrial
from tuner.db.store import Store
from tuner.search.samplers import SAMPLERS, require_sampler
from tuner.space.recorded.reading import read_recorded
from tuner.targets.backends import Backends
from tuner.targets.replay import replay_settings
from tuner.tuning.events import Interruption
from tuner.tuning.run import begin

WORKERS = 2  # several proposals are in flight at the kill
STARTING_S = 1.5  # a kill this early may happen before the run is stored
WITHIN_S = 0.01  # a kill happens at most so long after the proposal that was waited for
KILLS_LIMIT = 3  # of one run
POLL_S = 0.001
KILLED = -signal.SIGKILL


@dataclass(frozen=True)
class ResumeCheck:
    """The result of killing and resuming one run: its differences from the same run without a kill."""

    sampler: str
    kills: int  # kills of a living process
    trials: int
    differences: tuple[Difference, ...]  # from the uninterrupted run

    @property
    def is_exact(self) -> bool:
        """Returns whether each trial is that of the uninterrupted run."""
        return not self.differences


def settings_on(file: Path, samplers: tuple[str, ...], trials: int, seed: int) -> list[RunSettings]:
    """Returns the settings of runs that replay the recording ``file``, one per sampler; (): all."""
    for name in samplers:
        require_sampler(name)
    problem = read_recorded(file).problem or Matmul(1, 1, 1)  # a recording of another tuner names none
    target = TargetName(REPLAY, str(file)).text
    return [
        replay_settings(RunRequest(problem, target, sampler=name, seed=seed, trials=trials), WORKERS)
        for name in samplers or tuple(SAMPLERS)
    ]


def tune_arguments(settings: RunSettings, file: Path) -> tuple[str, ...]:
    """Returns the command-line arguments after ``tuner tune`` for a run on the recording ``file``."""
    problem = settings.problem
    options = {
        "--dtype": problem.dtype,
        "--layout": problem.layout,
        "--epilogue": problem.epilogue,
        "--output-dtype": problem.result_dtype,
        "--align": problem.align,
        "--cache": problem.cache,
        "--target": f"replay:{file}",
        "--sampler": settings.sampler,
        "--trials": str(settings.trials),
        "--seed": str(settings.seed),
        "--workers": str(settings.workers),
    }
    return (problem.operation, problem.shape, *(given for pair in options.items() for given in pair))


def uninterrupted_trials(settings: RunSettings, backends: Backends, folder: Path) -> tuple[StoredTrial, ...]:
    """Runs a replay in a new database in ``folder``, without a kill; returns its trials by number."""
    with Store.open(str(folder / f"uninterrupted_{settings.sampler}.db")) as store:
        tuned = begin(settings, backends, store, Interruption())
        if tuned.is_interrupted:
            raise KeyboardInterrupt
        return store.trials(TrialQuery(run=tuned.run.id, sort="number"))


def check_resume(
    settings: RunSettings,
    file: Path,  # of the recording
    uninterrupted: tuple[StoredTrial, ...],
    database: Path,  # new: contains this run alone
    rng: np.random.Generator,
) -> ResumeCheck:
    """Kills ``tuner tune`` at random moments, resumes it, and compares its trials with ``uninterrupted``."""
    with Store.open(str(database)) as store:
        kills = 0
        while kills < KILLS_LIMIT and _killed(settings, file, database, store, rng):
            kills += 1
            if rng.random() < 1 / KILLS_LIMIT:
                break
        with _child(settings, file, database, _run_of(store)) as child:
            _finish(child)
        trials = store.trials(TrialQuery(run=_run_of(store), sort="number"))
    return ResumeCheck(settings.sampler, kills, len(trials), differences(uninterrupted, trials))


def _killed(
    settings: RunSettings, file: Path, database: Path, store: Store, rng: np.random.Generator
) -> bool:
    assert settings.trials is not None
    run = _run_of(store)
    before = 0 if run is None else store.counts(run).proposed
    wanted = int(rng.integers(before, settings.trials + 1))  # ``before``: kill at any time after the start
    started_s = time.monotonic()
    with _child(settings, file, database, run) as child:
        while wanted > before and child.poll() is None and _proposed(store) < wanted:
            time.sleep(POLL_S)
        time.sleep(float(rng.random()) * (WITHIN_S if wanted > before else STARTING_S))
        child.kill()
        _, said = child.communicate()
    if child.returncode not in (0, KILLED):
        raise _failed(child.returncode, said, time.monotonic() - started_s)
    return child.returncode == KILLED  # else the run finished before


def _finish(child: subprocess.Popen[str]) -> None:
    started_s = time.monotonic()
    _, said = child.communicate()
    if child.returncode != 0:
        raise _failed(child.returncode, said, time.monotonic() - started_s)


@contextlib.contextmanager
def _child(
    settings: RunSettings, file: Path, database: Path, run: int | None
) -> Iterator[subprocess.Popen[str]]:
    arguments = ("--resume", str(run)) if run is not None else tune_arguments(settings, file)
    with subprocess.Popen(
        [sys.executable, "-m", "tuner", "tune", *arguments, "--db", str(database), "--json"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            yield child
        finally:
            child.kill()  # Ctrl-C may have come


def _run_of(store: Store) -> int | None:
    runs = store.runs(1)
    return runs[0].id if runs else None


def _proposed(store: Store) -> int:
    return store.info().trials


def _failed(code: int, said: str, seconds: float) -> TunerError:
    return TunerError(f"tuner tune: exited with {code} after {seconds:.1f} s: {last_line(said)}")
