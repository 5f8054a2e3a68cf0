"""Finds good candidates and resources of similar tasks in earlier runs and recordings."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tuner.analysis.task_distance import TuningTask, nearest_first
from tuner.analysis.warm_start import POINTS, TASKS, Known
from tuner.core.candidate import Candidate
from tuner.core.errors import UsageError
from tuner.core.kernel_program import Resources
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.core.runs import Run, RunSettings, StoredTrial, TrialQuery
from tuner.core.target_name import TargetName

if TYPE_CHECKING:
    from tuner.db.store import Store

RUNS = 8  # the latest so many similar runs whose compiled kernels are read


class EarlierRuns:
    """Finds good candidates and the resources of compiled kernels in a database's runs of similar tasks.

    A task is a problem on a machine with a number of threads. The list of runs is read once, at first use.
    """

    def __init__(self, store: "Store") -> None:
        self._store = store

    @cached_property
    def _runs(self) -> tuple[Run, ...]:
        return self._store.runs()

    def known_tasks(self, settings: RunSettings, machine: Machine) -> tuple[Known, ...]:
        """Returns similar tuning tasks with their best candidates: the warm-start points of a new run.

        Tasks of the settings' ``warm_files`` (recordings) come first, then, with ``warm_start``, those of the
        database, the most similar first. Raises UsageError for a file that is no recording of a known
        problem.
        """
        task = TuningTask(settings.problem, machine, settings.threads)
        files = tuple(_of_file(Path(file), _strategies(settings)) for file in settings.warm_files)
        return files + (self._nearest(settings, task) if settings.warm_start else ())

    def known_resources(self, settings: RunSettings, machine: Machine) -> dict[Candidate, Resources]:
        """Returns ptxas's report (registers, shared memory) per candidate of earlier runs; {} for a CPU.

        The candidates are those of the latest RUNS (8) runs with the same chip, dtype and layout.
        Of several kernels of a candidate the one with most shared memory counts.
        """
        known: dict[Candidate, Resources] = {}
        problem = settings.problem
        like = [
            run
            for run in (self._runs if machine.chip else ())
            if run.machine.chip == machine.chip
            and (run.settings.problem.dtype, run.settings.problem.layout) == (problem.dtype, problem.layout)
        ]
        for run in like[:RUNS]:
            for trial in self._store.trials(TrialQuery(run=run.id)):
                if trial.record.resources:
                    known.setdefault(trial.record.candidate, _main_kernel(trial.record.resources))
        return known

    def _nearest(self, settings: RunSettings, task: TuningTask) -> tuple[Known, ...]:
        """Returns the nearest tasks that have measured candidates, at most TASKS."""
        found: list[Known] = []
        for run in nearest_first(task, self._one_by_task(settings), task_of):
            known = Known(task_of(run), _points(self._best_trials(run, settings)))
            found += [known] * bool(known.points)
            if len(found) == TASKS:
                break
        return tuple(found)

    def _one_by_task(self, settings: RunSettings) -> tuple[Run, ...]:
        """Returns the latest run of each task on a target of the settings' kind, latest first.

        Not used for replays, which have no warm start from the database.
        """
        runs: dict[tuple[Problem, str, int, TargetName], Run] = {}
        for run in self._runs:
            theirs = run.settings
            if theirs.target.is_of(settings.target.kind):
                runs.setdefault((theirs.problem, run.machine.name, theirs.threads, theirs.target), run)
        return tuple(runs.values())

    def _best_trials(self, run: Run, settings: RunSettings) -> list[StoredTrial]:
        """Returns the fastest trials of a run's task, of strategies of the new run only, fastest first."""
        theirs = run.settings
        found = [
            trial
            for strategy in _strategies(settings)
            for trial in self._store.trials(
                TrialQuery.measured(
                    theirs.problem,
                    theirs.target,
                    run.machine,
                    theirs.threads,
                    strategy=strategy,
                    sort="median",
                    limit=3 * POINTS,  # some have equal code
                )
            )
        ]
        return sorted(found, key=lambda trial: (trial.best_s or 0.0, trial.id))


def _main_kernel(kernels: tuple[Resources, ...]) -> Resources:
    """Returns the resources of the kernel that multiplies: other kernels need less shared memory."""
    return max(
        kernels, key=lambda each: (each.static_shared_bytes + each.dynamic_shared_bytes, each.registers)
    )


def task_of(run: Run) -> TuningTask:
    """Returns what a run tunes for, to compare it with other runs: problem, machine, number of threads."""
    return TuningTask(run.settings.problem, run.machine, run.settings.threads)


def _points(trials: list[StoredTrial]) -> tuple[tuple[Candidate, str], ...]:
    """Returns (candidate, source) of up to POINTS trials; of trials with equal code only the first."""
    by_code: dict[str, tuple[Candidate, str]] = {}
    for trial in trials:
        record = trial.record
        by_code.setdefault(record.code, (record.candidate, f"run {trial.run}"))
    return tuple(by_code.values())[:POINTS]


def _of_file(file: Path, strategies: tuple[str, ...]) -> Known:
    from tuner.space.recorded.reading import read_recorded

    space = read_recorded(file)
    if space.problem is None:
        raise UsageError(f"{file}: has no problem that this tuner knows")
    rows = [int(row) for row in np.argsort(space.times_s, kind="stable") if np.isfinite(space.times_s[row])]
    by_code: dict[int, Candidate] = {}
    for row in rows:
        candidate = space.feasible.candidate(row)
        if candidate.strategy in strategies:
            by_code.setdefault(space.codes[row], candidate)
        if len(by_code) == POINTS:
            break
    points = tuple((candidate, space.name) for candidate in by_code.values())
    return Known(TuningTask(space.problem, space.machine, space.threads), points)


def _strategies(settings: RunSettings) -> tuple[str, ...]:
    """Returns the names of the strategies in a run's settings."""
    return tuple(each.name for each in settings.strategies)
