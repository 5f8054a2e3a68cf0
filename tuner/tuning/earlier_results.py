"""Initial configurations of a run: from earlier runs, files, shipped results, and the cost model.

``EarlierRuns`` queries the database. ``planned`` combines all sources into the settings of a new run: first
the user's own configurations, then those of the nearest earlier tasks, alternately with those of the shipped
results, the search-space file and the cost model.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tuner.analysis.warm_start import (
    POINTS,
    TASKS,
    Known,
    TuningTask,
    is_elsewhere,
    is_same_space,
    nearest_first,
    spread,
    warm_points,
)
from tuner.core.candidate import Candidate, TargetName
from tuner.core.compiled_code import Resources
from tuner.core.errors import UsageError
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.core.queries import BestGroup, TrialQuery
from tuner.core.runs import GIVEN, SEED, SHIPPED, SPACE_FILE, InitialConfiguration, Run, RunSettings
from tuner.core.trials import StoredTrial
from tuner.search.prior import encoded
from tuner.space.feasible_set import FeasibleSet, nearest_row
from tuner.space.recorded.recording import RecordedSpace
from tuner.targets.target import Plan, Target

if TYPE_CHECKING:
    from tuner.db.store import Store


PRIOR_TRIALS = 512  # fastest trials of a strategy on another machine that a prior is made of
SPREAD_SHARE = 0.02  # of a recording's times, the fastest: where its warm-start points are taken from
RUNS = 8  # latest similar runs whose compiled kernels are read
SHIPPED_POINTS = 4  # of shipped results, tried before those of the search-space file


class EarlierRuns:
    """Finds candidates and compiled kernels' resources in stored runs of similar tasks.

    The database is queried at first use.
    """

    def __init__(self, store: "Store") -> None:
        self._store = store
        self._files: dict[str, RecordedSpace] = {}  # by path

    @cached_property
    def _runs(self) -> tuple[Run, ...]:
        return self._store.runs()

    def known_tasks(self, settings: RunSettings, machine: Machine) -> tuple[Known, ...]:
        """Returns similar tasks with their best candidates: of ``warm_files`` first, then of stored runs.

        Stored runs are used only with a warm start, and only the TASKS nearest. Raises UsageError for a file
        that cannot be read, or has none of the run's strategies and no known problem.
        """
        task = TuningTask(settings.problem, machine, settings.threads)
        files = tuple(_of_file(self._read(file), task, settings) for file in settings.warm_files)
        return files + (self._nearest(settings, task) if settings.warm_start else ())

    def prior(self, settings: RunSettings, machine: Machine, feasible: FeasibleSet) -> str:
        """Returns known times of the problem's configurations, encoded for ``RunSettings.prior``.

        They are of ``warm_files`` and, with a warm start, of other machines' stored runs; "" without any.
        """
        task = TuningTask(settings.problem, machine, settings.threads)
        tables = []
        for space in map(self._read, settings.warm_files):
            if is_same_space(_task_of_file(space, task), task):
                candidates = map(space.feasible.candidate, range(space.rows))
                tables.append(_times_s(feasible, zip(candidates, space.times_s.tolist(), strict=True)))
        if settings.warm_start:
            elsewhere = [run for run in self._one_by_task(settings) if is_elsewhere(task_of(run), task)]
            for trials in self._best_trials(elsewhere, settings, PRIOR_TRIALS):
                times = [(trial.record.candidate, trial.best_s or np.nan) for trial in trials]
                tables.append(_times_s(feasible, times))
        return encoded(table for table in tables if not np.isnan(table).all())

    def _read(self, file: str) -> RecordedSpace:
        from tuner.space.recorded.reading import read_recorded  # not at start-up

        if file not in self._files:
            self._files[file] = read_recorded(Path(file))
        return self._files[file]

    def known_resources(self, settings: RunSettings, machine: Machine) -> dict[Candidate, Resources]:
        """Returns ptxas's report per candidate, from the 8 latest runs with equal chip, dtype and layout.

        {} for a CPU.
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
                    # the kernel that multiplies: other kernels need less shared memory
                    main = max(
                        trial.record.resources,
                        key=lambda kernel: (
                            kernel.static_shared_bytes + kernel.dynamic_shared_bytes,
                            kernel.registers,
                        ),
                    )
                    known.setdefault(trial.record.candidate, main)
        return known

    def _nearest(self, settings: RunSettings, task: TuningTask) -> tuple[Known, ...]:
        ranked = nearest_first(task, self._one_by_task(settings), task_of)
        nearest: list[Known] = []
        for start in range(0, len(ranked), TASKS):  # one query where none of the nearest lacks points
            runs = ranked[start : start + TASKS]
            for run, trials in zip(runs, self._best_trials(runs, settings, 3 * POINTS), strict=True):
                by_code: dict[str, tuple[Candidate, str]] = {}
                for trial in trials:  # some have equal code
                    by_code.setdefault(trial.record.code, (trial.record.candidate, f"run {trial.run}"))
                points = tuple(by_code.values())
                if points:
                    chosen = spread(points) if is_elsewhere(task_of(run), task) else points[:POINTS]
                    nearest.append(Known(task_of(run), chosen))
            if len(nearest) >= TASKS:
                break
        return tuple(nearest[:TASKS])

    def _one_by_task(self, settings: RunSettings) -> tuple[Run, ...]:
        runs: dict[tuple[Problem, str, int, TargetName], Run] = {}
        for run in self._runs:
            theirs = run.settings
            if theirs.target.is_of(settings.target.kind):
                runs.setdefault((theirs.problem, run.machine.name, theirs.threads, theirs.target), run)
        return tuple(runs.values())

    def _best_trials(
        self, runs: Sequence[Run], settings: RunSettings, limit: int
    ) -> tuple[list[StoredTrial], ...]:
        """Returns, for each run's task, the ``limit`` fastest trials of each of the settings' strategies."""
        trials: dict[BestGroup, list[StoredTrial]] = {}
        for run in runs:
            tuned = run.settings
            trials[_group(tuned.problem, tuned.target, tuned.threads, run.machine)] = []
        for trial in self._store.fastest_trials(trials.keys(), _strategies(settings), limit):
            record = trial.record
            trials[_group(record.problem, record.target, trial.threads, trial.machine)].append(trial)
        return tuple(trials.values())


def _group(problem: Problem, target: TargetName, threads: int, machine: Machine) -> BestGroup:
    return BestGroup(problem.key, target.text, threads, machine.name)


def task_of(run: Run) -> TuningTask:
    """Returns the task of a run, to compare it with other runs: problem, machine, number of threads."""
    return TuningTask(run.settings.problem, run.machine, run.settings.threads)


def _task_of_file(space: RecordedSpace, task: TuningTask) -> TuningTask:
    """Returns the task that a recording was tuned for; if it names no problem, with that of ``task``."""
    if space.problem is None:
        return replace(task, machine=space.machine)
    return TuningTask(space.problem, space.machine, space.threads)


def _of_file(space: RecordedSpace, task: TuningTask, settings: RunSettings) -> Known:
    theirs = _task_of_file(space, task)
    strategies = _strategies(settings)
    if space.problem is None and not any(
        searched.strategy in strategies for searched in space.feasible.spaces
    ):
        searched_text = ", ".join(searched.strategy for searched in space.feasible.spaces)
        raise UsageError(
            f"{space.name}: has no problem that this tuner knows, and none of the run's strategies: "
            f"found {searched_text}, allowed {', '.join(strategies)}"
        )
    timed = np.flatnonzero(np.isfinite(space.times_s))
    count = max(3 * POINTS, int(SPREAD_SHARE * len(timed)))
    by_code: dict[int, tuple[Candidate, str]] = {}
    for row in timed[np.argsort(space.times_s[timed], kind="stable")].tolist():
        candidate = space.feasible.candidate(row)
        if candidate.strategy in strategies:
            by_code.setdefault(space.codes[row], (candidate, space.name))
        if len(by_code) == count:
            break
    points = tuple(by_code.values())
    return Known(theirs, spread(points) if is_same_space(theirs, task) else points[:POINTS])


def _times_s(feasible: FeasibleSet, times: Iterable[tuple[Candidate, float]]) -> npt.NDArray[np.float64]:
    """Returns the seconds of each configuration of ``feasible``, NaN where ``times`` has none."""
    table = np.full(feasible.rows, np.nan)
    for candidate, time_s in times:
        row = feasible.row_of(candidate)
        if row is not None:
            table[row] = np.fmin(table[row], time_s)
    return table


def _strategies(settings: RunSettings) -> tuple[str, ...]:
    return tuple(strategy.name for strategy in settings.strategies)


# Configurations that a run proposes before its sampler does.
# These are chosen when the run begins, stored, and proposed again when the run resumes.


def planned(
    settings: RunSettings, machine: Machine, target: Target, store: "Store"
) -> tuple[RunSettings, Plan]:
    """Returns (settings with initial configurations, plan); the plan has the feasible set and the order.

    Settings that have initial configurations already are returned unchanged. Raises UsageError if no
    configuration is feasible.
    """
    if settings.first is not None:
        return settings, target.plan(settings, machine)
    task = TuningTask(settings.problem, machine, settings.threads)
    earlier = EarlierRuns(store)
    warm_start_points = warm_points(task, earlier.known_tasks(settings, machine))
    shipped = _shipped_points(settings, machine)
    # a plan of a sampled space also contains those of these points that are feasible
    given = tuple(map(_given, settings.seeds))
    plan = target.plan(replace(settings, first=given + warm_start_points + shipped), machine)
    require_feasible(settings.seeds, plan.feasible)
    seeds = plan.seeds(earlier.known_resources(settings, machine))
    feasible = plan.feasible
    settings = replace(settings, prior=earlier.prior(settings, machine, feasible))
    nearest = [(point, nearest_row(point.candidate, feasible)) for point in warm_start_points]
    made_feasible = tuple(
        replace(point, candidate=feasible.candidate(row)) for point, row in nearest if row is not None
    )
    shipped = tuple(point for point in shipped if feasible.row_of(point.candidate) is not None)
    listed = (InitialConfiguration(feasible.candidate(row), SPACE_FILE) for row in plan.first)
    seeded = (InitialConfiguration(feasible.candidate(row), SEED) for row in seeds)
    others = interleaved(made_feasible, (*shipped, *listed, *seeded))
    return replace(settings, first=_distinct((*given, *others))), plan


def _given(candidate: Candidate) -> InitialConfiguration:
    return InitialConfiguration(candidate, GIVEN)


def require_feasible(seeds: tuple[Candidate, ...], feasible: FeasibleSet) -> None:
    """Raises UsageError for the first of the user's configurations that is not in the feasible set."""
    for candidate in seeds:
        if feasible.row_of(candidate) is None:
            reason = "the search space lacks it"
            constraint = feasible.violated(candidate)
            if constraint is not None:
                reason = constraint.full_text
            raise UsageError(f"seed {candidate.text}: is not feasible: {reason}")


def _shipped_points(settings: RunSettings, machine: Machine) -> tuple[InitialConfiguration, ...]:
    """Returns the initial configurations that shipped results choose; () on a GPU, or without warm start."""
    if machine.chip or not settings.warm_start:
        return ()
    from tuner.tuning.pretuned import shipped_picks  # loads YAML
    from tuner.tuning.rule import ProblemSpaces  # loads YAML

    picks = shipped_picks(ProblemSpaces.shipped(machine, settings.threads), settings.problem)
    chosen = () if picks is None else picks.candidates[:SHIPPED_POINTS]
    return tuple(InitialConfiguration(candidate, SHIPPED) for candidate in chosen)


def rows_of_first(settings: RunSettings, plan: Plan) -> tuple[int, ...]:
    """Returns the indices, in the plan's feasible set, of the initial configurations ``settings.first``.

    If ``settings.first`` is None, those of the plan. Configurations that are not in the set are left out.
    """
    if settings.first is None:
        return plan.first
    rows = (plan.feasible.row_of(point.candidate) for point in settings.first)
    return tuple(row for row in rows if row is not None)


def interleaved(
    known: tuple[InitialConfiguration, ...], others: tuple[InitialConfiguration, ...]
) -> tuple[InitialConfiguration, ...]:
    """Returns ``known`` and ``others`` alternately, ``known`` first, each configuration once.

    A configuration that is in both counts as one of ``known``.
    """
    known = _distinct(known)
    others = _distinct((*known, *others))[len(known) :]
    return tuple(point for pair in zip_longest(known, others) for point in pair if point is not None)


def _distinct(points: tuple[InitialConfiguration, ...]) -> tuple[InitialConfiguration, ...]:
    by_candidate: dict[Candidate, InitialConfiguration] = {}
    for point in points:
        by_candidate.setdefault(point.candidate, point)
    return tuple(by_candidate.values())
