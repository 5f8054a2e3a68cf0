"""What earlier runs and recordings know of tasks like one that begins."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tuner.errors import UsageError
from tuner.kernel import Resources
from tuner.machine import Machine
from tuner.nearest import Task, nearest_first
from tuner.problem import Problem
from tuner.report import record_of
from tuner.runs import Run, RunSettings, StoredTrial, TrialQuery
from tuner.space import Candidate
from tuner.target_name import REPLAY, TargetName
from tuner.warm_start import POINTS, TASKS, Known

if TYPE_CHECKING:
    from tuner.db.store import Store

RUNS = 8  # whose compiled kernels are looked at, the latest


def known_tasks(settings: RunSettings, machine: Machine, store: "Store") -> tuple[Known, ...]:
    """Returns the nearest tasks with their best candidates. Raises UsageError for a file that is none."""
    task = Task(settings.problem, machine, settings.threads)
    files = tuple(_of_file(Path(file), _strategies(settings)) for file in settings.warm_files)
    return files + (_of_store(settings, task, store) if settings.warm_start else ())


def known_resources(settings: RunSettings, machine: Machine, store: "Store") -> dict[Candidate, Resources]:
    """Returns what ptxas told of candidates of earlier runs: on such a chip, types and layout as here."""
    known: dict[Candidate, Resources] = {}
    problem = settings.problem
    like = [
        run
        for run in (store.runs() if machine.chip else ())
        if run.machine.chip == machine.chip
        and (run.settings.problem.dtype, run.settings.problem.layout) == (problem.dtype, problem.layout)
    ]
    for run in like[:RUNS]:
        for trial in store.trials(TrialQuery(run=run.id)):
            if trial.record is not None and trial.record.resources:
                known.setdefault(trial.record.candidate, _main_kernel(trial.record.resources))
    return known


def _main_kernel(kernels: tuple[Resources, ...]) -> Resources:
    """Returns the kernel that multiplies: others copy or add up, and need less."""
    return max(
        kernels, key=lambda each: (each.static_shared_bytes + each.dynamic_shared_bytes, each.registers)
    )


def _of_store(settings: RunSettings, task: Task, store: "Store") -> tuple[Known, ...]:
    """Asks for the best of each near task until enough of them know something."""
    found: list[Known] = []
    for run in nearest_first(task, _runs_by_task(settings, store), task_of):
        known = Known(task_of(run), _points(_best_trials(run, settings, store)))
        found += [known] * bool(known.points)
        if len(found) == TASKS:
            break
    return tuple(found)


def _runs_by_task(settings: RunSettings, store: "Store") -> tuple[Run, ...]:
    """Returns one run of each task on such a target, the latest first; replays measured nothing."""
    kind = TargetName.parse(settings.target).kind
    runs: dict[tuple[Problem, str, int, str], Run] = {}
    for run in store.runs():
        theirs = run.settings
        if TargetName.parse(theirs.target).kind == kind != REPLAY:
            runs.setdefault((theirs.problem, run.machine.name, theirs.threads, theirs.target), run)
    return tuple(runs.values())


def task_of(run: Run) -> Task:
    """Returns what a run tuned."""
    return Task(run.settings.problem, run.machine, run.settings.threads)


def _best_trials(run: Run, settings: RunSettings, store: "Store") -> list[StoredTrial]:
    """Returns the fastest trials of a run's task, by strategies that the new run has, the fastest first."""
    problem = run.settings.problem
    found = [
        trial
        for strategy in _strategies(settings)
        for trial in store.trials(
            TrialQuery.of(
                problem,
                target=run.settings.target,
                machine=run.machine.name,
                threads=run.settings.threads,
                strategy=strategy,
                status="measured",
                sort="median",
                limit=3 * POINTS,  # some are the same code
            )
        )
    ]
    return sorted(found, key=lambda trial: (trial.best_s or 0.0, trial.id))


def _points(trials: list[StoredTrial]) -> tuple[tuple[Candidate, str], ...]:
    """Returns the candidates, of equal code only the first."""
    by_code: dict[str, tuple[Candidate, str]] = {}
    for trial in trials:
        record = record_of(trial)
        by_code.setdefault(record.code, (record.candidate, f"run {trial.run}"))
    return tuple(by_code.values())[:POINTS]


def _of_file(file: Path, strategies: tuple[str, ...]) -> Known:
    from tuner.recorded import read_recorded

    space = read_recorded(file)
    if space.problem is None:
        raise UsageError(f"{file}: found no problem of this tuner, allowed a space that it recorded")
    rows = [int(row) for row in np.argsort(space.times_s, kind="stable") if np.isfinite(space.times_s[row])]
    by_code: dict[int, Candidate] = {}
    for row in rows:
        candidate = space.feasible.candidate(row)
        if candidate.strategy in strategies:
            by_code.setdefault(space.codes[row], candidate)
        if len(by_code) == POINTS:
            break
    points = tuple((candidate, space.name) for candidate in by_code.values())
    return Known(Task(space.problem, space.machine, space.threads), points)


def _strategies(settings: RunSettings) -> tuple[str, ...]:
    """Returns the names of a run's strategies, which may be stored with a path."""
    return tuple(text.partition("=")[0] for text in settings.strategies)
