"""Stored trials -> constraints that exclude the failed trials of a problem."""

import datetime
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tuner.analysis.constraint_mining import Observation, Suggestion, mine
from tuner.core.errors import Failure
from tuner.core.machine import variables_of
from tuner.core.problem import Problem
from tuner.core.runs import StoredTrial, TaskQuery, TrialQuery
from tuner.core.target_name import TargetName
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

    The constraints are mined from the strategy's stored trials of every problem of the same operation, and of
    every machine and target: a constraint of the search space applies to all of these, so it must exclude no
    success anywhere. Each constraint explains at least ``min_support`` failed points. ``since``: only trials
    proposed at this moment or later. Replays are left out.
    """
    query = TrialQuery(TaskQuery(operation=problem.operation), strategy=space.strategy, since=since)
    found = mine(observations(store.trials(query)), space.names, min_support)
    return tuple(each for each in found if place(problem, target) in dict(each.problems))


def observations(trials: Iterable[StoredTrial]) -> tuple[Observation, ...]:
    """Returns one observation per candidate, problem, target, machine and number of threads.

    It is a success if one of the trials worked; otherwise it has the failure of the last trial. Replays are
    left out: their outcomes are copies of recorded ones.
    """
    points: dict[object, list[StoredTrial]] = {}
    for trial in trials:
        if trial.record.target.has_machine:
            points.setdefault(_key(trial), []).append(trial)
    return tuple(_observation(tried) for tried in points.values())


def place(problem: Problem, target: TargetName) -> str:
    """Returns text that names a problem and its target: "matmul 64x64x64 f32 nn none for cpu"."""
    return f"{problem.key} for {target}"


def _key(trial: StoredTrial) -> object:
    record = trial.record
    return record.problem, record.target, trial.machine, trial.threads, record.candidate


def _observation(tried: list[StoredTrial]) -> Observation:
    records = [trial.record for trial in tried]
    failures = [each.outcome if isinstance(each.outcome, Failure) else None for each in records]
    record, trial = records[-1], tried[-1]
    variables = variables_of(record.problem, trial.machine, trial.threads)
    return Observation(
        values=(*variables, *record.candidate.choices),
        failure=None if None in failures else failures[-1],
        trials=len(tried),
        problem=place(record.problem, record.target),
    )
