"""Constraints that the failed trials of a strategy suggest, mined from the stored trials of an operation."""

import datetime
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tuner.analysis.constraint_mining import Observation, Suggestion, mine
from tuner.core.candidate import TargetName
from tuner.core.errors import Failure
from tuner.core.machine import variables_of
from tuner.core.problem import Problem
from tuner.core.queries import TaskQuery, TrialQuery
from tuner.core.trials import StoredTrial
from tuner.space.search_space import SearchSpace

if TYPE_CHECKING:
    from tuner.db.store import Store


def suggestions(
    store: "Store",
    space: SearchSpace,
    problem: Problem,
    target: TargetName,
    min_support: int,
    since: datetime.datetime | None = None,
) -> tuple[Suggestion, ...]:
    """Returns constraints for the strategy of ``space`` that exclude failed trials of a problem on a target.

    Each excludes ``min_support`` failures or more, and no success, among all trials of the strategy and the
    operation since ``since`` (None: all): a constraint applies to all problems, machines, targets. Replays
    are left out.
    """
    query = TrialQuery(TaskQuery(operation=problem.operation), strategy=space.strategy, since=since)
    mined = mine(observations(store.trials(query)), space.names, min_support)
    return tuple(
        suggestion for suggestion in mined if problem_and_target(problem, target) in dict(suggestion.problems)
    )


def observations(trials: Iterable[StoredTrial]) -> tuple[Observation, ...]:
    """Returns one observation per candidate, problem, target, machine and number of threads.

    It is a success if any of its trials worked, else the last failure. Replays, which are copies, are left
    out.
    """
    points: dict[object, list[StoredTrial]] = {}
    for trial in trials:
        record = trial.record
        if record.target.has_machine:
            key = (record.problem, record.target, trial.machine, trial.threads, record.candidate)
            points.setdefault(key, []).append(trial)
    return tuple(map(_observation, points.values()))


def problem_and_target(problem: Problem, target: TargetName) -> str:
    """Returns text that names a problem and its target: "matmul 64x64x64 f32 nn none for cpu"."""
    return f"{problem.key} for {target}"


def _observation(tried: list[StoredTrial]) -> Observation:
    outcomes = [trial.record.outcome for trial in tried]
    failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    trial = tried[-1]
    record = trial.record
    variables = variables_of(record.problem, trial.machine, trial.threads)
    return Observation(
        values=(*variables, *record.candidate.choices),
        failure=failures[-1] if len(failures) == len(tried) else None,
        trials=len(tried),
        problem=problem_and_target(record.problem, record.target),
    )
